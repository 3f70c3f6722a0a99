package arrowconv

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"
)

// one converts a value into a column of its own, as JSON and, where it is one
// in Go, as a value; it gives what is read back, or the refusal.
func one(t *testing.T, c Column, opts Options, value any) (string, string) {
	t.Helper()
	c.Name = "v"
	opts.Declared = []Column{c}
	p, err := NewPlan(nil, opts)
	require.NoError(t, err)
	var msg any
	if text, ok := value.(string); ok {
		msg = `{"v":` + text + `}`
	} else {
		msg = map[string]any{"v": value}
	}
	_, rows, errs := load(t, p, msg)
	if len(errs) > 0 {
		return "", errs[0]
	}
	return strings.TrimSuffix(strings.TrimPrefix(rows[0], `{"v":`), `}`), ""
}

func TestDeclaredTypes(t *testing.T) {
	at := time.Date(2024, 2, 29, 12, 34, 56, 123456000, time.FixedZone("", 3600))
	for _, c := range []struct {
		typ, unit string
		opts      Options
		value     any
		want, err string
	}{
		{typ: "boolean", value: `true`, want: `true`},
		{typ: "boolean", value: `"true"`, err: `v: expected boolean, got "true"`},
		{typ: "boolean", value: `1`, err: `v: expected boolean, got 1`},
		{typ: "int", value: `2147483647`, want: `2147483647`},
		{typ: "int", value: `2147483648`, err: `v: expected int, got 2147483648`},
		{typ: "int", value: `-2147483648.0`, want: `-2147483648`},
		{typ: "long", value: `1e3`, want: `1000`},
		{typ: "long", value: `1.5`, err: `v: expected long, got 1.5`},
		{typ: "long", value: `-9223372036854775808`, want: `-9223372036854775808`},
		{typ: "long", value: `9223372036854775807.0`, want: `9223372036854775807`},
		{typ: "long", value: `922337203685477580.7e1`, want: `9223372036854775807`},
		{typ: "long", value: `0.0000000000000000000000000000000000000001e40`, want: `1`},
		{typ: "long", value: `1e19`, err: `v: expected long, got 1e19`},
		{typ: "long", value: `1e999999999999999999999`, err: `v: expected long, got 1e999999999999999999999`},
		{typ: "long", value: `1.00000000000000000000000000000000000000001`, err: `v: expected long, got 1.00000000000000000000000000000000000000001`},
		{typ: "long", value: `"12"`, want: `12`},
		{typ: "long", value: `"x"`, err: `v: expected long, got "x"`},
		{typ: "long", value: `"12 "`, err: `v: expected long, got "12 "`},
		{typ: "long", value: `""`, err: `v: expected long, got ""`},
		{typ: "long", value: int64(math.MaxInt64), want: `9223372036854775807`},
		{typ: "long", value: uint64(math.MaxUint64), err: `v: expected long, got 18446744073709551615`},
		{typ: "long", value: 5.0, want: `5`},
		{typ: "long", value: 5.5, err: `v: expected long, got 5.5`},
		{typ: "long", value: json.Number("9007199254740993"), want: `9007199254740993`},
		{typ: "long", value: json.Number("abc"), err: `v: expected long, got "abc" (not a number)`},
		{typ: "float", value: `0.1`, want: `0.1`},
		{typ: "float", value: `16777217`, err: `v: expected float, got 16777217 (float cannot hold this integer exactly; declared long, the column would take it)`},
		{typ: "float", value: `1e39`, err: `v: expected float, got 1e39`},
		{typ: "float", value: 1e39, err: `v: expected float, got 1e+39`},
		{typ: "double", value: `9007199254740992`, want: `9007199254740992`},
		{typ: "double", value: `9007199254740993`, err: `v: expected double, got 9007199254740993 (double cannot hold this integer exactly; declared long, the column would take it)`},
		{typ: "double", value: int64(9007199254740993), err: `v: expected double, got 9007199254740993 (double cannot hold this integer exactly; declared long, the column would take it)`},
		{typ: "double", value: `9007199254740993.5`, want: `9007199254740994`},
		{typ: "double", value: `100000000000000000000`, want: `100000000000000000000`},
		{typ: "double", value: `100000000000000000001`, err: `v: expected double, got 100000000000000000001 (double cannot hold this integer exactly; declared decimal(38,0), the column would take it)`},
		{typ: "double", value: `1e309`, err: `v: expected double, got 1e309`},
		{typ: "double", value: `1e-400`, err: `v: expected double, got 1e-400`},
		{typ: "double", value: `0e-400`, want: `0`},
		{typ: "double", value: `5e-324`, want: `5e-324`},
		{typ: "double", value: `"2.5"`, want: `2.5`},
		{typ: "double", value: `"NaN"`, err: `v: expected double, got "NaN"`},
		{typ: "decimal(10,2)", value: `"12.34"`, want: `"12.34"`},
		{typ: "decimal(10,2)", value: `12.34`, want: `"12.34"`},
		{typ: "decimal(10,2)", value: `12.340`, want: `"12.34"`},
		{typ: "decimal(10,2)", value: `1234e-2`, want: `"12.34"`},
		{typ: "decimal(10,2)", value: `12.345`, err: `v: expected decimal(10,2), got 12.345 (more than 2 digits after the point)`},
		{typ: "decimal(10,2)", value: `"99999999999.99"`, err: `v: expected decimal(10,2), got "99999999999.99" (more than 8 digits before the point)`},
		{typ: "decimal(10,2)", value: `"abc"`, err: `v: expected decimal(10,2), got "abc"`},
		{typ: "decimal(10,2)", value: `-8`, want: `"-8"`},
		{typ: "decimal(10,2)", value: 12.34, want: `"12.34"`},
		{typ: "decimal(10,2)", value: json.Number("12.34"), want: `"12.34"`},
		{typ: "decimal(10,2)", value: int64(7), want: `"7"`},
		{typ: "decimal(38,0)", value: `99999999999999999999999999999999999999`, want: `"99999999999999999999999999999999999999"`},
		{typ: "decimal(38,0)", value: `1e38`, err: `v: expected decimal(38,0), got 1e38 (more than 38 digits before the point)`},
		{typ: "decimal(38,0)", value: uint64(math.MaxUint64), want: `"18446744073709551615"`},
		{typ: "date", value: `"2024-02-29"`, want: `"2024-02-29"`},
		{typ: "date", value: `"2023-02-29"`, err: `v: expected date, got "2023-02-29" (a date is written yyyy-mm-dd)`},
		{typ: "date", value: `19782`, err: "v: expected date, got 19782 (a number needs a declared `unit` here: d)"},
		{typ: "date", unit: "d", value: `19782`, want: `"2024-02-29"`},
		{typ: "date", value: at, err: `v: expected date, got 2024-02-29T12:34:56.123456+01:00`},
		{typ: "timestamptz", value: `"2024-02-29T12:34:56.123456+01:00"`, want: `"2024-02-29T11:34:56.123456Z"`},
		{typ: "timestamptz", value: at, want: `"2024-02-29T11:34:56.123456Z"`},
		{typ: "timestamptz", value: at.Add(time.Nanosecond), err: `v: expected timestamptz, got 2024-02-29T12:34:56.123456001+01:00 (finer than a microsecond; timestamp_precision: truncate would drop the digits)`},
		{typ: "timestamptz", opts: Options{TimestampPrecision: TruncateFiner}, value: at.Add(999), want: `"2024-02-29T11:34:56.123456Z"`},
		{typ: "timestamptz", value: `"2024-02-29T12:34:56"`, err: `v: expected timestamptz, got "2024-02-29T12:34:56" (it has no offset from UTC; declared timestamp, the column would take it)`},
		{typ: "timestamptz", value: `1731508712`, err: "v: expected timestamptz, got 1731508712 (a number needs a declared `unit` here: s, ms, us or ns)"},
		{typ: "timestamptz", unit: "s", value: `1731508712`, want: `"2024-11-13T14:38:32Z"`},
		{typ: "timestamptz", unit: "s", value: `1731508712.000001`, want: `"2024-11-13T14:38:32.000001Z"`},
		{typ: "timestamptz", unit: "ms", value: `1731508712229`, want: `"2024-11-13T14:38:32.229Z"`},
		{typ: "timestamptz", unit: "us", value: `1731508712229224`, want: `"2024-11-13T14:38:32.229224Z"`},
		{typ: "timestamptz", unit: "ns", value: `1731508712229224000`, want: `"2024-11-13T14:38:32.229224Z"`},
		{typ: "timestamptz", unit: "ns", value: `1731508712229224001`, err: `v: expected timestamptz, got 1731508712229224001 (finer than a microsecond; timestamp_precision: truncate would drop the digits)`},
		{typ: "timestamptz", unit: "ns", opts: Options{TimestampPrecision: TruncateFiner}, value: `-1`, want: `"1969-12-31T23:59:59.999999Z"`},
		{typ: "timestamptz", unit: "s", value: `1731508712229`, err: `v: expected timestamptz, got 1731508712229 (outside the years 0000 to 9999)`},
		{typ: "timestamp", value: `"2024-02-29T12:34:56.5"`, want: `"2024-02-29T12:34:56.5"`},
		{typ: "timestamp", value: `"2024-02-29T12:34:56Z"`, err: `v: expected timestamp, got "2024-02-29T12:34:56Z" (it has an offset from UTC; declared timestamptz, the column would take it)`},
		{typ: "timestamp", value: at, err: `v: expected timestamp, got 2024-02-29T12:34:56.123456+01:00 (it has an offset from UTC; declared timestamptz, the column would take it)`},
		{typ: "string", value: `5`, err: `v: expected string, got 5 (on_type_conflict: string would store its JSON text)`},
		{typ: "string", opts: Options{OnTypeConflict: ConflictsAsText}, value: map[string]any{"k": []any{1, 2.5, "x", nil, true}}, want: `"{\"k\":[1,2.5,\"x\",null,true]}"`},
		{typ: "string", value: []byte("x"), err: `v: expected string, got "eA==" (bytes keep their type; make them a string in the mapping)`},
		{typ: "binary", value: `"AAEC"`, want: `"AAEC"`},
		{typ: "binary", value: `"AAE"`, err: `v: expected binary, got "AAE" (binary is written as base64, with padding)`},
		{typ: "binary", value: `"AAF="`, err: `v: expected binary, got "AAF=" (binary is written as base64, with padding)`},
		{typ: "binary", value: `"AA\nEC"`, err: `v: expected binary, got "AA\nEC" (binary is written as base64, with padding)`},
		{typ: "binary", value: []byte{0, 1, 2}, want: `"AAEC"`},
		{typ: "list<int>", value: `[1,null]`, want: `[1,null]`},
		{typ: "list<int>", value: `[1,"x"]`, err: `v[1]: expected int, got "x"`},
		{typ: "list<int>", value: []any{1, int8(2), uint32(3)}, want: `[1,2,3]`},
		{typ: "list<int>", value: `{}`, err: `v: expected list<int>, got {}`},
		{typ: "map<string, long>", value: `{"a":1,"b":null,"a":2}`, want: `[{"key":"b","value":null},{"key":"a","value":2}]`},
		{typ: "map<string, long>", value: `{"a":"x"}`, err: `v["a"]: expected long, got "x"`},
		{typ: "map<long, string>", value: `{"7":"x"}`, want: `[{"key":7,"value":"x"}]`},
		{typ: "map<long, string>", value: map[string]any{"x": "y"}, err: `v["x"]: expected long, got "x"`},
		{typ: "struct<a: decimal(10,2), b: list<struct<c: long>>>", value: `{"b":[{"c":1},{"c":[]}]}`, err: `v.b[1].c: expected long, got []`},
		{typ: "struct<a: date>", value: map[string]any{"a": "2024-01-01"}, want: `{"a":"2024-01-01"}`},
		{typ: "struct<a: date>", value: struct{}{}, err: `v: expected struct<a: date>, got a Go value of type struct {}`},
	} {
		t.Run(fmt.Sprintf("%s/%v", c.typ, c.value), func(t *testing.T) {
			got, refused := one(t, Column{Type: c.typ, Unit: c.unit}, c.opts, c.value)
			require.Equal(t, c.err, refused)
			require.Equal(t, c.want, got)
		})
	}
}

func TestRequired(t *testing.T) {
	declared := []Column{
		{Name: "id", Type: "long", Required: true},
		{Name: "o", Type: "struct", Fields: []Column{{Name: "k", Type: "string", Required: true}}},
		{Name: "l", Type: "list", Element: &Column{Type: "long", Required: true}},
	}
	p := plan(t, "", Options{Evolve: true, Declared: declared})
	require.False(t, p.Schema().Field(0).Nullable)
	_, rows, errs := load(t, p, `{"id":1}`, `{"id":null}`, `{}`, `{"id":2,"o":{}}`, `{"id":3,"l":[1,null]}`, map[string]any{"o": nil}, `{"id":4,"o":null,"l":[2]}`)
	require.Equal(t, []string{`{"id":1,"l":null,"o":null}`, `{"id":4,"l":[2],"o":null}`}, rows)
	require.Equal(t, map[int]string{
		1: `id: expected long, required, got null`, 2: `id: expected long, required, got nothing`, 3: `o.k: expected string, required, got nothing`,
		4: `l[1]: expected long, required, got null`, 5: `id: expected long, required, got nothing`,
	}, errs)
}

// TestRequiredByDeclaration holds that a declaration refuses NULL although the
// table would take it, and leaves the table's schema as it is.
func TestRequiredByDeclaration(t *testing.T) {
	p := plan(t, "id: long, v: long", Options{Declared: []Column{{Name: "id", Type: "long", Required: true}}})
	require.True(t, p.Schema().Field(0).Nullable)
	_, rows, errs := load(t, p, `{"id":1}`, `{"v":1}`, map[string]any{"v": 1})
	require.Equal(t, []string{`{"id":1,"v":null}`}, rows)
	require.Equal(t, map[int]string{1: `id: expected long, required, got nothing`, 2: `id: expected long, required, got nothing`}, errs)
}

// TestForeignTypes holds that a column of a type that only other engines write
// stays NULL, and that a table which cannot be without is not taken.
func TestForeignTypes(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "t", Type: arrow.FixedWidthTypes.Time64us, Nullable: true}, {Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	p, err := NewPlan(schema, Options{Evolve: true})
	require.NoError(t, err)
	_, rows, errs := load(t, p, `{"id":1}`, `{"id":2,"t":null}`, `{"id":3,"t":"12:00:00"}`)
	require.Equal(t, []string{`{"id":1,"t":null}`, `{"id":2,"t":null}`}, rows)
	require.Equal(t, `t: expected null, got "12:00:00" (this output cannot write a column of type time64[us])`, errs[2])
	_, err = NewPlan(arrow.NewSchema([]arrow.Field{{Name: "t", Type: arrow.FixedWidthTypes.Time64us}}, nil), Options{})
	require.ErrorContains(t, err, `column "t" is required`)
}

func TestDeclarationErrors(t *testing.T) {
	table := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, {Name: "o", Type: arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int64, Nullable: true}), Nullable: true}}, nil)
	for _, c := range []struct {
		columns []Column
		opts    Options
		err     string
	}{
		{columns: []Column{{Name: "n", Type: "uuid"}}, err: `schema: column "n": type "uuid": no uuid in Delta: use string`},
		{columns: []Column{{Name: "n", Type: "bigint"}}, err: `unknown type "bigint": it may be boolean`},
		{columns: []Column{{Name: "n", Type: "decimal(39,2)"}}, err: `1 to 38 digits`},
		{columns: []Column{{Name: "n", Type: "decimal"}}, err: `a decimal needs its digits`},
		{columns: []Column{{Name: "n", Type: "list<long"}}, err: `expected ">"`},
		{columns: []Column{{Name: "n", Type: "list"}}, err: `a list needs its element`},
		{columns: []Column{{Name: "n", Type: "struct"}}, err: `a struct needs its fields`},
		{columns: []Column{{Name: "n", Type: "map<list<long>,long>"}}, err: `a map's key may be`},
		{columns: []Column{{Name: "n", Type: "long", Unit: "ms"}}, err: `a unit has a meaning for timestamp`},
		{columns: []Column{{Name: "n", Type: "timestamptz", Unit: "min"}}, err: `it may be s, ms, us or ns`},
		{columns: []Column{{Name: "n"}}, err: `it has no type`},
		{columns: []Column{{Type: "long"}}, err: `no name`},
		{columns: []Column{{Name: "n", Type: "long"}, {Name: "N", Type: "long"}}, err: `declared twice`},
		{columns: []Column{{Name: "_pos", Type: "long"}}, err: `reserved by Iceberg`},
		{columns: []Column{{Name: "two words", Type: "long"}}, err: `cannot be stored`},
		{columns: []Column{{Name: "a", Type: "string"}}, err: `column "a": declared string, but the table has int`},
		{columns: []Column{{Name: "a", Type: "long"}}, err: `widening it is off`},
		{columns: []Column{{Name: "A", Type: "int"}}, err: `differs only in case from column "a"`},
		{columns: []Column{{Name: "o", Type: "struct", Fields: []Column{{Name: "X", Type: "long"}}}}, err: `differs only in case from "x"`},
		{columns: []Column{{Name: "o", Type: "struct", Fields: []Column{{Name: "x", Type: "double"}}}}, err: `column "o.x": declared double, but the table has long`},
		{columns: []Column{{Name: "new", Type: "long", Required: true}}, err: `required, but the table exists without it`},
	} {
		c.opts.Declared = c.columns
		_, err := NewPlan(table, c.opts)
		require.ErrorContains(t, err, c.err)
	}
	p, err := NewPlan(table, Options{Widen: true, Declared: []Column{{Name: "a", Type: "long"}, {Name: "o", Fields: []Column{{Name: "y", Type: "date"}}}}})
	require.NoError(t, err)
	require.Equal(t, "a: long, o: struct<x: long, y: date>", columns(p))
}

// TestMetadata holds that field ids survive in records, nested ones as well,
// when the schema grows around them.
func TestMetadata(t *testing.T) {
	id := func(n int) arrow.Metadata {
		return arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{strconv.Itoa(n)})
	}
	long := arrow.PrimitiveTypes.Int64
	inner := arrow.StructOf(arrow.Field{Name: "x", Type: long, Nullable: true, Metadata: id(4)})
	table := arrow.NewSchema([]arrow.Field{
		{Name: "a", Type: long, Metadata: id(1)},
		{Name: "l", Type: arrow.ListOfField(arrow.Field{Name: "element", Type: inner, Nullable: true, Metadata: id(3)}), Nullable: true, Metadata: id(2)},
		{Name: "m", Type: arrow.MapOfFields(arrow.Field{Name: "key", Type: arrow.BinaryTypes.String, Metadata: id(6)}, arrow.Field{Name: "value", Type: inner, Nullable: true, Metadata: id(7)}), Nullable: true, Metadata: id(5)},
	}, nil)
	p, err := NewPlan(table, Options{Evolve: true})
	require.NoError(t, err)
	require.True(t, p.Schema().Equal(table))
	p, rows, errs := load(t, p, `{"a":1,"l":[{"x":1,"y":2}],"m":{"k":{"z":1}},"new":true}`)
	require.Empty(t, errs)
	require.Len(t, rows, 1)
	f := p.Schema().Field(1)
	require.Equal(t, id(2), f.Metadata)
	e := f.Type.(*arrow.ListType).ElemField()
	require.Equal(t, id(3), e.Metadata)
	require.Equal(t, id(4), e.Type.(*arrow.StructType).Field(0).Metadata)
	require.Zero(t, e.Type.(*arrow.StructType).Field(1).Metadata.Len())
	m := p.Schema().Field(2).Type.(*arrow.MapType)
	require.Equal(t, id(6), m.KeyField().Metadata)
	require.Equal(t, id(7), m.ItemField().Metadata)
	require.Equal(t, id(4), m.ItemType().(*arrow.StructType).Field(0).Metadata)
}

// TestNumbersAgainstRationals compares number reading with exact arithmetic.
func TestNumbersAgainstRationals(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	digits := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte('0' + r.IntN(10))
			if r.IntN(3) == 0 {
				b[i] = '0'
			}
		}
		return string(b)
	}
	for range 50_000 {
		text := strings.TrimLeft(digits(1+r.IntN(25)), "0")
		if text == "" {
			text = "0"
		}
		if r.IntN(2) == 0 {
			text = "-" + text
		}
		if r.IntN(2) == 0 {
			text += "." + digits(1+r.IntN(25))
		}
		if r.IntN(3) == 0 {
			text += fmt.Sprintf("e%d", r.IntN(60)-30)
		}
		want, ok := new(big.Rat).SetString(text)
		require.True(t, ok)

		d := parseDecimal([]byte(text))
		v, exact, fits := d.shifted(0)
		wantFits := want.IsInt() && want.Num().IsInt64()
		require.Equal(t, wantFits, exact && fits, text)
		if wantFits {
			require.Equal(t, want.Num().Int64(), v, text)
		}

		n, exact, fits := d.decimal128(20, 6)
		scaled := new(big.Rat).Mul(want, big.NewRat(1_000_000, 1))
		limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(20), nil)
		wantFits = scaled.IsInt() && scaled.Num().CmpAbs(limit) < 0
		require.Equal(t, wantFits, exact && fits, text)
		if wantFits {
			require.Zero(t, n.BigInt().Cmp(scaled.Num()), text)
		}
		if q, end, ok := quickDecimal([]byte(text), 0, 20, 6); ok {
			require.Equal(t, len(text), end)
			require.True(t, wantFits && q == n, text)
		}

		f, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err)
		if q, end, ok := quickDouble([]byte(text), 0); ok {
			require.Equal(t, len(text), end)
			require.Equal(t, math.Float64bits(f), math.Float64bits(q), text)
		}
		_, problem := parseDouble([]byte(text), 64)
		integer := !strings.ContainsAny(text, ".e")
		exactly := new(big.Rat).SetFloat64(f).Cmp(want) == 0
		require.Equal(t, integer && !exactly, problem == numberInexact, text)
	}
}

// TestTimesAgainstStandard compares time reading with package time.
func TestTimesAgainstStandard(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 50_000 {
		at := time.Unix(minMicros/1_000_000+r.Int64N((maxMicros-minMicros)/1_000_000), int64(r.IntN(1_000_000))*1000).In(time.FixedZone("", (r.IntN(2*1439)-1439)*60))
		if y := at.Year(); y < 0 || y > 9999 {
			continue
		}
		text := at.Format("2006-01-02T15:04:05.999999999Z07:00")
		got, problem := parseTimestamp([]byte(text), true, false)
		require.Equal(t, timeOK, problem, text)
		require.Equal(t, at.UnixMicro(), got, text)
		got, problem = parseTimestamp([]byte(at.Format("2006-01-02 15:04:05.000000000-0700")), true, false)
		require.Equal(t, timeOK, problem, text)
		require.Equal(t, at.UnixMicro(), got, text)
		day, problem := parseDate([]byte(at.Format("2006-01-02")))
		require.Equal(t, timeOK, problem)
		require.Equal(t, at.Format("2006-01-02"), arrow.Date32(day).FormattedString())
	}
	for text, want := range map[string]timeProblem{
		"2024-01-01T00:00:00Z": timeOK, "2024-01-01t00:00:00z": timeOK, "2024-01-01 00:00:00+00:00": timeOK, "2024-01-01T00:00:00+0000": timeOK, "2024-01-01T00:00:00-00:00": timeOK,
		"2024-01-01T00:00:00.1234560000000000Z": timeOK, "2024-01-01T00:00:00.1234567Z": timeFiner, "2016-12-31T23:59:60Z": timeOK, "2016-12-31T15:59:60-08:00": timeOK, "2016-12-31T23:58:60Z": timeBad,
		"2024-02-30T00:00:00Z": timeBad, "2024-00-01T00:00:00Z": timeBad, "2024-01-01T24:00:00Z": timeBad, "2024-01-01T00:60:00Z": timeBad, "2024-01-01T00:00:61Z": timeBad, "2024-01-01T00:00:00": timeNoZone,
		"2024-01-01T00:00:00.Z": timeBad, "2024-01-01T00:00:00+24:00": timeBad, "2024-01-01T00:00:00+00:60": timeBad, "2024-01-01T00:00:00+00": timeBad, "2024-01-01": timeBad, "2024-1-1T00:00:00Z": timeBad,
		"2024-01-01T00:00Z": timeBad, "0000-01-01T00:00:00Z": timeOK, "0000-01-01T00:00:00+00:01": timeRange, "9999-12-31T23:59:59.999999Z": timeOK, "9999-12-31T23:59:59-00:01": timeRange, "2024-01-01T00:00:00Zx": timeBad,
		"2024-01-01T00:00:00,5Z": timeBad, "": timeBad, "2024-01-01T00:00:00+00:000": timeBad,
	} {
		_, problem := parseTimestamp([]byte(text), true, false)
		require.Equal(t, want, problem, text)
	}
}

func TestStructuredText(t *testing.T) {
	_, rows, errs := load(t, plan(t, "s: string, m: map<string, long>", Options{Evolve: true}),
		map[string]any{"s": "ok"}, map[string]any{"s": "bad \xff"}, map[string]any{"m": map[string]any{"\xff": 1}}, map[string]any{"\xff": 1})
	require.Len(t, rows, 1)
	require.Len(t, errs, 3)
	require.Equal(t, `s: expected string, got "bad \xff" (not UTF-8)`, errs[1])
}

func TestStructuredInference(t *testing.T) {
	at := time.Date(2024, 1, 2, 3, 4, 5, 6000, time.UTC)
	p, rows, errs := load(t, plan(t, "", Options{Evolve: true}),
		map[string]any{"t": at, "b": []byte{1}, "n": json.Number("9007199254740993"), "i": 1, "f": 2.0, "o": map[string]any{"s": "x", "e": map[string]any{}}, "l": []any{1, 2.5}, "z": nil, "u": uint8(3)},
		map[string]any{"f": math.NaN(), "i": int64(5), "ts": []string{"a"}},
		map[string]any{"s": "bad \xff"}, 5, []any{}, map[string]any{"c": make(chan int)}, map[string]any{"f": math.Inf(1), "n": math.NaN()})
	require.Equal(t, "b: binary, f: double, i: long, l: list<double>, n: long, o: struct<s: string>, t: timestamptz, u: long, ts: list<string>", columns(p))
	require.Equal(t, []string{`{"b":"AQ==","f":2,"i":1,"l":[1,2.5],"n":9007199254740993,"o":{"s":"x"},"t":"2024-01-02T03:04:05.000006Z","ts":null,"u":3}`}, rows[:1])
	require.Len(t, rows, 2)
	require.Equal(t, map[int]string{
		2: `s: expected string, got "bad \xff" (not UTF-8)`, 3: `expected an object, got 5`, 4: `expected an object, got []`,
		5: `c: expected a value with a column type, got a Go value of type chan int`, 6: `n: expected long, got NaN (NaN and infinities fit float and double columns only)`,
	}, errs)
}

// TestStructuredAsJSON holds that a row means the same as JSON and as Go values.
func TestStructuredAsJSON(t *testing.T) {
	for _, events := range [][][]byte{flatEvents(300), nestedEvents(100)} {
		for _, table := range []string{"", flatType, nestedType} {
			var texts, values []any
			for _, e := range events {
				texts = append(texts, e)
			}
			values = structuredEvents(t, events)
			opts := Options{Evolve: true, InferTimestamps: true}
			_, a, errs := load(t, plan(t, table, opts), texts...)
			_, b, errs2 := load(t, plan(t, table, opts), values...)
			require.Equal(t, a, b)
			require.Equal(t, errs, errs2)
		}
	}
}
