package deltalog

import (
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"
)

// Whatever the schema, a file of our own writing conforms to it, and the check
// tells what does not.
func TestFootersConform(t *testing.T) {
	all := iceberg.NewSchema(0,
		required(field(1, "a", prim.Int64)), field(2, "i", prim.Int32), field(3, "f", prim.Float32), field(4, "d", prim.Float64),
		field(5, "small", iceberg.DecimalTypeOf(9, 2)), field(6, "mid", iceberg.DecimalTypeOf(18, 0)), field(7, "big", iceberg.DecimalTypeOf(38, 38)),
		field(8, "day", prim.Date), field(9, "tz", prim.TimestampTz), field(10, "ntz", prim.Timestamp), field(11, "s", prim.String),
		field(12, "b", prim.Binary), field(13, "ok", prim.Bool),
		field(14, "w.y", prim.Int64), field(15, "x", structOf(field(16, "y", prim.String))),
		field(17, "l", &iceberg.ListType{ElementID: 18, Element: prim.Date}),
		field(19, "ls", &iceberg.ListType{ElementID: 20, Element: structOf(field(21, "l", &iceberg.ListType{ElementID: 22, Element: prim.Bool}))}),
		field(23, "m", &iceberg.MapType{KeyID: 24, KeyType: prim.String, ValueID: 25, ValueType: structOf(field(26, "v", prim.Float64))}),
	)
	b := newBench(t, all, nil)
	l := logStore{store: b.store, root: testRoot}
	f := b.parquetFile(all)
	rel, ok := relativePath(b.store.Location(testRoot), f.FilePath())
	require.True(t, ok)
	cols, err := readFooter(t.Context(), l, file{Path: rel})
	require.NoError(t, err)
	require.Len(t, cols, 19)
	require.Empty(t, conforms(cols, all))
	require.True(t, needsFooters(all))

	one := func(f iceberg.NestedField) *iceberg.Schema { return iceberg.NewSchema(0, f) }
	for want, c := range map[string]struct{ file, table iceberg.NestedField }{
		"it holds column a as int, and the table as long":                    {field(1, "a", prim.Int32), field(1, "a", prim.Int64)},
		"it holds column a as timestamptz, and the table as timestamp":       {field(1, "a", prim.TimestampTz), field(1, "a", prim.Timestamp)},
		"it holds column d as decimal(5, 2), and the table as decimal(9, 2)": {field(1, "d", iceberg.DecimalTypeOf(5, 2)), field(1, "d", iceberg.DecimalTypeOf(9, 2))},
		"its column a is another column than the table's":                    {field(2, "a", prim.Int64), field(1, "a", prim.Int64)},
		"it holds column b by the name a":                                    {field(1, "a", prim.Int64), field(1, "b", prim.Int64)},
		"it holds column a, which the table has not any more":                {field(2, "a", prim.Int64), field(1, "b", prim.Int64)},
		"it holds column l.element.z by the name l.element.y": {
			field(1, "l", &iceberg.ListType{ElementID: 2, Element: structOf(field(3, "y", prim.Bool))}),
			field(1, "l", &iceberg.ListType{ElementID: 2, Element: structOf(field(3, "z", prim.Bool))})},
	} {
		t.Run(want, func(t *testing.T) {
			f := b.parquetFile(one(c.file))
			rel, _ := relativePath(b.store.Location(testRoot), f.FilePath())
			cols, err := readFooter(t.Context(), l, file{Path: rel})
			require.NoError(t, err)
			require.Equal(t, want, conforms(cols, one(c.table)))
		})
	}
	// Fewer columns than the table's, or columns without field ids, are no harm.
	require.Empty(t, conforms([]leafColumn{{"a", -1, "long"}}, all))
}

func TestNeedsFooters(t *testing.T) {
	for name, want := range map[string]bool{"a": false, "_id2": false, "a-b": true, "x.y": true, "2a": true, "é": true} {
		require.Equal(t, want, needsFooters(iceberg.NewSchema(0, field(1, "s", structOf(field(2, name, prim.Int64))))), name)
	}
}
