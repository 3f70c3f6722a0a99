package deltalog

import (
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"
)

func field(id int, name string, t iceberg.Type) iceberg.NestedField {
	return iceberg.NestedField{ID: id, Name: name, Type: t}
}

func required(f iceberg.NestedField) iceberg.NestedField {
	f.Required = true
	return f
}

func structOf(fields ...iceberg.NestedField) *iceberg.StructType {
	return &iceberg.StructType{FieldList: fields}
}

var prim = iceberg.PrimitiveTypes

func TestSchemaGolden(t *testing.T) {
	doc := field(2, "i", prim.Int32)
	doc.Doc = `a "count" of <things> — ключ`
	got, err := convertSchema(iceberg.NewSchema(3,
		required(field(1, "_id", prim.Int64)), doc, field(3, "f", prim.Float32), field(4, "d", prim.Float64),
		field(5, "dec", iceberg.DecimalTypeOf(38, 10)), field(6, "day", prim.Date), field(7, "tz", prim.TimestampTz),
		field(8, "имя", prim.String), field(9, "b", prim.Binary), field(10, "ok", prim.Bool),
		required(field(11, "st", structOf(required(field(12, "x", prim.Int64)), field(13, "in", structOf(required(field(14, "y", prim.String))))))),
		field(15, "l", &iceberg.ListType{ElementID: 16, Element: prim.Int64, ElementRequired: true}),
		field(17, "ls", &iceberg.ListType{ElementID: 18, Element: structOf(required(field(19, "z", prim.Bool)))}),
		field(20, "m", &iceberg.MapType{KeyID: 21, KeyType: prim.String, ValueID: 22, ValueType: prim.Float64}),
	), false)
	require.NoError(t, err)
	require.False(t, got.TimestampNtz)
	require.Equal(t, `{"type":"struct","fields":[`+
		`{"name":"_id","type":"long","nullable":false,"metadata":{"iceberg.fieldId":1}},`+
		`{"name":"i","type":"integer","nullable":true,"metadata":{"comment":"a \"count\" of <things> — ключ","iceberg.fieldId":2}},`+
		`{"name":"f","type":"float","nullable":true,"metadata":{"iceberg.fieldId":3}},`+
		`{"name":"d","type":"double","nullable":true,"metadata":{"iceberg.fieldId":4}},`+
		`{"name":"dec","type":"decimal(38,10)","nullable":true,"metadata":{"iceberg.fieldId":5}},`+
		`{"name":"day","type":"date","nullable":true,"metadata":{"iceberg.fieldId":6}},`+
		`{"name":"tz","type":"timestamp","nullable":true,"metadata":{"iceberg.fieldId":7}},`+
		`{"name":"имя","type":"string","nullable":true,"metadata":{"iceberg.fieldId":8}},`+
		`{"name":"b","type":"binary","nullable":true,"metadata":{"iceberg.fieldId":9}},`+
		`{"name":"ok","type":"boolean","nullable":true,"metadata":{"iceberg.fieldId":10}},`+
		// A required field is not nullable only where its struct cannot be NULL.
		`{"name":"st","type":{"type":"struct","fields":[{"name":"x","type":"long","nullable":false,"metadata":{"iceberg.fieldId":12}},`+
		`{"name":"in","type":{"type":"struct","fields":[{"name":"y","type":"string","nullable":true,"metadata":{"iceberg.fieldId":14}}]},"nullable":true,"metadata":{"iceberg.fieldId":13}}]},"nullable":false,"metadata":{"iceberg.fieldId":11}},`+
		`{"name":"l","type":{"type":"array","elementType":"long","containsNull":false},"nullable":true,"metadata":{"iceberg.fieldId":15}},`+
		`{"name":"ls","type":{"type":"array","elementType":{"type":"struct","fields":[{"name":"z","type":"boolean","nullable":true,"metadata":{"iceberg.fieldId":19}}]},"containsNull":true},"nullable":true,"metadata":{"iceberg.fieldId":17}},`+
		`{"name":"m","type":{"type":"map","keyType":"string","valueType":"double","valueContainsNull":true},"nullable":true,"metadata":{"iceberg.fieldId":20}}]}`, got.JSON)

	back, err := parseSchema(got.JSON)
	require.NoError(t, err)
	require.Equal(t, got.root, back)
}

// Under column mapping each name is mapped to itself, at every level.
func TestSchemaMapped(t *testing.T) {
	s := iceberg.NewSchema(1, field(1, "two words", prim.Int64), field(2, "o", structOf(field(3, "x=y", prim.String))))
	got, err := convertSchema(s, true)
	require.NoError(t, err)
	require.Equal(t, `{"type":"struct","fields":[`+
		`{"name":"two words","type":"long","nullable":true,"metadata":{"iceberg.fieldId":1,"delta.columnMapping.id":1,"delta.columnMapping.physicalName":"two words"}},`+
		`{"name":"o","type":{"type":"struct","fields":[{"name":"x=y","type":"string","nullable":true,"metadata":{"iceberg.fieldId":3,"delta.columnMapping.id":3,"delta.columnMapping.physicalName":"x=y"}}]},`+
		`"nullable":true,"metadata":{"iceberg.fieldId":2,"delta.columnMapping.id":2,"delta.columnMapping.physicalName":"o"}}]}`, got.JSON)
	require.Equal(t, map[string]string{"a": "b", mappingMode: "name", mappingMaxID: "3"}, withMapping(map[string]string{"a": "b"}, got))
	p := protocolFor(nil, got.TimestampNtz, got.Mapped, false)
	require.Equal(t, Protocol{MinReaderVersion: 3, MinWriterVersion: 7, ReaderFeatures: []string{featureMapping},
		WriterFeatures: []string{featureAppendOnly, featureMapping, featureInvariants}}, p)
	require.Empty(t, p.unsupported())
	_, err = convertSchema(iceberg.NewSchema(1, field(1, "a\nb", prim.Int64)), true)
	require.ErrorContains(t, err, "which Delta never holds")
}

func TestSchemaTimestampNtz(t *testing.T) {
	got, err := convertSchema(iceberg.NewSchema(0, field(1, "l", &iceberg.ListType{ElementID: 2, Element: structOf(field(3, "at", prim.Timestamp))})), false)
	require.NoError(t, err)
	require.True(t, got.TimestampNtz)
	require.Contains(t, got.JSON, `"timestamp_ntz"`)
}

func TestSchemaRefused(t *testing.T) {
	withDefault := field(1, "a", prim.Int64)
	withDefault.InitialDefault = int64(7)
	for want, fields := range map[string][]iceberg.NestedField{
		"column t: Delta has no type for time":                                                                  {field(1, "t", prim.Time)},
		"column u: Delta has no type for uuid":                                                                  {field(1, "u", prim.UUID)},
		"column x: Delta has no type for fixed[4]":                                                              {field(1, "x", iceberg.FixedTypeOf(4))},
		"column n: Delta has no type for timestamptz_ns":                                                        {field(1, "n", iceberg.TimestampTzNsType{})},
		"column s.l.element.t: Delta has no type for time":                                                      {field(1, "s", structOf(field(2, "l", &iceberg.ListType{ElementID: 3, Element: structOf(field(4, "t", prim.Time))})))},
		"column m.value: Delta has no type for time":                                                            {field(1, "m", &iceberg.MapType{KeyID: 2, KeyType: prim.String, ValueID: 3, ValueType: prim.Time})},
		`column s.Ab: differs from column "aB" only in case; Delta's names are the same without regard to case`: {field(1, "s", structOf(field(2, "aB", prim.Int64), field(3, "Ab", prim.Int64)))},
		`column two words: has ' ' in its name, which Delta holds only with column mapping`:                     {field(1, "two words", prim.Int64)},
		`column x=y: has '=' in its name, which Delta holds only with column mapping`:                           {field(1, "x=y", prim.Int64)},
		"column a: has an initial default value, which Delta would read as NULL from older files":               {withDefault},
	} {
		t.Run(want, func(t *testing.T) {
			err := CheckSchema(iceberg.NewSchema(0, fields...))
			var bad *SchemaError
			require.ErrorAs(t, err, &bad)
			require.EqualError(t, err, want)
		})
	}
}

func TestEvolves(t *testing.T) {
	base := []iceberg.NestedField{
		field(1, "a", prim.Int32),
		field(2, "s", structOf(field(3, "x", prim.Int64))),
		field(4, "l", &iceberg.ListType{ElementID: 5, Element: structOf(field(6, "y", prim.Float32))}),
		field(7, "m", &iceberg.MapType{KeyID: 8, KeyType: prim.String, ValueID: 9, ValueType: prim.Date}),
	}
	with := func(i int, f iceberg.NestedField) []iceberg.NestedField {
		out := append([]iceberg.NestedField{}, base...)
		out[i] = f
		return out
	}
	for name, c := range map[string]struct {
		next []iceberg.NestedField
		want string
	}{
		"same":             {base, ""},
		"reordered":        {[]iceberg.NestedField{base[3], base[1], base[0], base[2]}, ""},
		"required to not":  {with(0, required(base[0])), ""},
		"added":            {append(append([]iceberg.NestedField{}, base...), field(10, "new", prim.String)), ""},
		"added in struct":  {with(1, field(2, "s", structOf(field(3, "x", prim.Int64), field(10, "z", prim.Bool)))), ""},
		"added in element": {with(2, field(4, "l", &iceberg.ListType{ElementID: 5, Element: structOf(field(6, "y", prim.Float32), field(10, "z", prim.Bool))})), ""},
		"renamed":          {with(0, field(1, "b", prim.Int32)), "column a was renamed to b"},
		"renamed inside":   {with(1, field(2, "s", structOf(field(3, "z", prim.Int64)))), "column s.x was renamed to s.z"},
		"dropped":          {base[1:], "column a was dropped"},
		"made anew":        {with(0, field(10, "a", prim.Int32)), "column a is not the column that it was: it was dropped and made anew"},
		"widened":          {with(0, field(1, "a", prim.Int64)), "the type of column a was changed from integer to long"},
		"widened inside":   {with(2, field(4, "l", &iceberg.ListType{ElementID: 5, Element: structOf(field(6, "y", prim.Float64))})), "the type of column l.element.y was changed from float to double"},
		"widened value":    {with(3, field(7, "m", &iceberg.MapType{KeyID: 8, KeyType: prim.String, ValueID: 9, ValueType: prim.Timestamp})), "the type of column m.value was changed from date to timestamp_ntz"},
		"another kind":     {with(1, field(2, "s", prim.String)), "the type of column s was changed from struct to string"},
	} {
		t.Run(name, func(t *testing.T) {
			old, err := convertSchema(iceberg.NewSchema(0, base...), false)
			require.NoError(t, err)
			next, err := convertSchema(iceberg.NewSchema(1, c.next...), false)
			require.NoError(t, err)
			require.Equal(t, c.want, evolves(old.root, next.root))
			// Read back from a log it is judged the same.
			back, err := parseSchema(old.JSON)
			require.NoError(t, err)
			require.Equal(t, c.want, evolves(back, next.root))
		})
	}
}
