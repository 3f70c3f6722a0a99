package deltalog

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"
)

func bound(t *testing.T, v interface{ MarshalBinary() ([]byte, error) }) []byte {
	t.Helper()
	b, err := v.MarshalBinary()
	require.NoError(t, err)
	return b
}

func TestBoundsInDeltasForm(t *testing.T) {
	dec := func(text string, scale int) []byte {
		v, ok := new(big.Int).SetString(text, 10)
		require.True(t, ok)
		return bound(t, iceberg.DecimalLiteral{Val: decimal128.FromBigInt(v), Scale: scale})
	}
	ms := int64(1_000)
	for _, c := range []struct {
		typ      iceberg.Type
		raw      []byte
		min, max string // "": none
	}{
		{prim.Int64, bound(t, iceberg.Int64Literal(math.MinInt64)), "-9223372036854775808", "-9223372036854775808"},
		{prim.Int64, bound(t, iceberg.Int32Literal(-5)), "-5", "-5"}, // written before a widening
		{prim.Int32, bound(t, iceberg.Int32Literal(7)), "7", "7"},
		{prim.Int64, []byte{1}, "", ""},
		{prim.Float64, bound(t, iceberg.Float64Literal(5e-324)), "5e-324", "5e-324"},
		{prim.Float64, bound(t, iceberg.Float64Literal(math.Inf(1))), "", ""},
		{prim.Float64, bound(t, iceberg.Float64Literal(math.NaN())), "", ""},
		{prim.Float32, bound(t, iceberg.Float32Literal(0.1)), "0.10000000149011612", "0.10000000149011612"},
		{iceberg.DecimalTypeOf(10, 2), dec("-5", 2), "-0.05", "-0.05"},
		{iceberg.DecimalTypeOf(10, 2), dec("0", 2), "0.00", "0.00"},
		{iceberg.DecimalTypeOf(10, 2), dec("-128", 2), "-1.28", "-1.28"},
		{iceberg.DecimalTypeOf(10, 0), dec("-32768", 0), "-32768", "-32768"},
		{iceberg.DecimalTypeOf(38, 10), dec("99999999999999999999999999999999999999", 10), "9999999999999999999999999999.9999999999", "9999999999999999999999999999.9999999999"},
		{iceberg.DecimalTypeOf(38, 38), dec("-99999999999999999999999999999999999999", 38), "-0.99999999999999999999999999999999999999", "-0.99999999999999999999999999999999999999"},
		{prim.Date, bound(t, iceberg.DateLiteral(-1)), `"1969-12-31"`, `"1969-12-31"`},
		{prim.Date, bound(t, iceberg.DateLiteral(2932896)), `"9999-12-31"`, `"9999-12-31"`},
		{prim.Date, bound(t, iceberg.DateLiteral(2932897)), "", ""}, // the year 10000
		{prim.TimestampTz, bound(t, iceberg.TimestampLiteral(-1)), `"1969-12-31T23:59:59.999Z"`, `"1969-12-31T23:59:59.999Z"`},
		{prim.TimestampTz, bound(t, iceberg.TimestampLiteral(-ms-1)), `"1969-12-31T23:59:59.998Z"`, `"1969-12-31T23:59:59.998Z"`},
		{prim.TimestampTz, bound(t, iceberg.TimestampLiteral(1714564800123999)), `"2024-05-01T12:00:00.123Z"`, `"2024-05-01T12:00:00.123Z"`},
		{prim.Timestamp, bound(t, iceberg.TimestampLiteral(253402300799999999)), `"9999-12-31T23:59:59.999"`, `"9999-12-31T23:59:59.999"`},
		{prim.Timestamp, bound(t, iceberg.TimestampLiteral(-62135596800000000)), `"0001-01-01T00:00:00.000"`, `"0001-01-01T00:00:00.000"`},
		{prim.Timestamp, bound(t, iceberg.TimestampLiteral(math.MinInt64)), "", ""},
		{prim.Bool, []byte{1}, "", ""},
		{prim.Binary, []byte{1}, "", ""},
		{prim.String, []byte(`a"b<ü`), `"a\"b<ü"`, `"a\"b<ü"`},
		{prim.String, []byte(""), `""`, `""`},
		{prim.String, []byte("ab\xff"), "", ""},
		{prim.String, []byte(strings.Repeat("x", 32)), `"` + strings.Repeat("x", 32) + `"`, `"` + strings.Repeat("x", 32) + `"`},
		{prim.String, []byte(strings.Repeat("x", 33)), `"` + strings.Repeat("x", 32) + `"`, `"` + strings.Repeat("x", 32) + "\x7f\""},
		{prim.String, []byte(strings.Repeat("é", 32) + "\x7f"), `"` + strings.Repeat("é", 32) + `"`, `"` + strings.Repeat("é", 32) + "\U0010FFFF\""},
		{prim.String, []byte(strings.Repeat("x", 32) + "\U0010FFFF"), `"` + strings.Repeat("x", 32) + `"`, ""},
	} {
		t.Run(fmt.Sprintf("%s %x", c.typ, c.raw), func(t *testing.T) {
			lo, ok := minValue(c.typ, c.raw)
			if !ok {
				lo = ""
			}
			hi, ok := maxValue(c.typ, c.raw)
			if !ok {
				hi = ""
			}
			require.Equal(t, c.min, lo)
			require.Equal(t, c.max, hi)
			for _, text := range []string{lo, hi} {
				require.True(t, text == "" || json.Valid([]byte(text)), text)
			}
		})
	}
}

// A reader compares by bytes; whatever the strings, the bounds hold.
func FuzzStringBounds(f *testing.F) {
	f.Add(strings.Repeat("a", 40), strings.Repeat("a", 33))
	f.Add(strings.Repeat("é", 31)+"\x7e\x7f", "b")
	f.Add(strings.Repeat("a", 32)+"\U0010FFFFz", "")
	f.Fuzz(func(t *testing.T, upper, v string) {
		if !utf8.ValidString(upper) || !utf8.ValidString(v) || v > upper {
			return
		}
		if s, ok := stringCeiling(upper); ok {
			require.LessOrEqual(t, v, s)
			require.LessOrEqual(t, utf8.RuneCountInString(s), stringPrefix+1)
		}
		require.LessOrEqual(t, firstChars(v, stringPrefix), v)
	})
}

func statsOf(t *testing.T, s *iceberg.Schema, set func(*iceberg.DataFileBuilder)) string {
	t.Helper()
	b, err := iceberg.NewDataFileBuilder(*iceberg.UnpartitionedSpec, iceberg.EntryContentData, "x", iceberg.ParquetFile, nil, nil, nil, 9, 1)
	require.NoError(t, err)
	set(b)
	out := fileStats(statsPlan(s), b.Build())
	require.True(t, json.Valid([]byte(out)), out)
	return out
}

func TestStatsGolden(t *testing.T) {
	s := iceberg.NewSchema(0, field(1, `q"x`, prim.Int64),
		field(2, "s", structOf(field(3, "in", structOf(field(4, "t", prim.String))), field(5, "ok", prim.Bool))),
		field(6, "l", &iceberg.ListType{ElementID: 7, Element: prim.Int64}),
		field(8, "b", prim.Binary), field(9, "none", prim.Int64))
	require.Equal(t, `{"numRecords":9,"minValues":{"q\"x":-3,"s":{"in":{"t":"a"}}},"maxValues":{"q\"x":4,"s":{"in":{"t":"z"}}},"nullCount":{"q\"x":0,"s":{"in":{"t":2},"ok":9},"b":1}}`,
		statsOf(t, s, func(b *iceberg.DataFileBuilder) {
			b.NullValueCounts(map[int]int64{1: 0, 4: 2, 5: 9, 7: 5, 8: 1}).
				LowerBoundValues(map[int][]byte{1: bound(t, iceberg.Int64Literal(-3)), 4: []byte("a"), 5: {0}, 7: le64(1), 8: {1}}).
				UpperBoundValues(map[int][]byte{1: bound(t, iceberg.Int64Literal(4)), 4: []byte("z"), 5: {1}, 7: le64(1), 8: {1}})
		}))
	require.Equal(t, `{"numRecords":9}`, statsOf(t, s, func(*iceberg.DataFileBuilder) {}))
}

// Float bounds stand only beside a NaN count of zero: unknown is not zero.
func TestFloatBoundsNeedNaNCount(t *testing.T) {
	s := iceberg.NewSchema(0, field(1, "f", prim.Float64))
	set := func(nans map[int]int64) func(*iceberg.DataFileBuilder) {
		return func(b *iceberg.DataFileBuilder) {
			b.LowerBoundValues(map[int][]byte{1: bound(t, iceberg.Float64Literal(-1))}).UpperBoundValues(map[int][]byte{1: bound(t, iceberg.Float64Literal(2))})
			if nans != nil {
				b.NaNValueCounts(nans)
			}
		}
	}
	require.Equal(t, `{"numRecords":9,"minValues":{"f":-1},"maxValues":{"f":2}}`, statsOf(t, s, set(map[int]int64{1: 0})))
	require.Equal(t, `{"numRecords":9}`, statsOf(t, s, set(map[int]int64{1: 1})))
	require.Equal(t, `{"numRecords":9}`, statsOf(t, s, set(map[int]int64{2: 0})))
	require.Equal(t, `{"numRecords":9}`, statsOf(t, s, set(nil)))
}

func TestStatsOfTheFirst32Leaves(t *testing.T) {
	var fields []iceberg.NestedField
	id := 0
	leaf := func() iceberg.NestedField { id++; return field(id, fmt.Sprintf("c%d", id), prim.Int64) }
	for range 10 {
		st := structOf(leaf(), leaf(), leaf())
		id++
		fields = append(fields, field(id, fmt.Sprintf("s%d", id), st))
	}
	fields = append(fields, leaf())                                                                              // the 31st
	fields = append(fields, field(90, "l", &iceberg.ListType{ElementID: 91, Element: structOf(leaf(), leaf())})) // one leaf
	fields = append(fields, field(92, "late", prim.Int64))
	nulls := map[int]int64{}
	for i := range 100 {
		nulls[i] = 1
	}
	out := statsOf(t, iceberg.NewSchema(0, fields...), func(b *iceberg.DataFileBuilder) { b.NullValueCounts(nulls) })
	require.Equal(t, 32, strings.Count(out, ":1,")+strings.Count(out, ":1}"), out)
	require.Contains(t, out, `"l":1}`)
	require.NotContains(t, out, "late")
}
