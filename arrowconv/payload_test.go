package arrowconv

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/stretchr/testify/require"
)

func TestNDJSON(t *testing.T) {
	opts := Options{Evolve: true, Format: NDJSON}
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	p := plan(t, "a: long", opts)
	src := messages{
		"{\"a\":1}\n{\"a\":2}\r\n\n {\"a\":3} \n",
		"{\"a\":4}\n{\"a\":5}\n{\"a\":6}\n{\"a\":7}\n{\"a\":8}\n{\"a\":\"bad\"}\n{\"a\":9}",
		"{\"a\":10}",
		"\n \n",
		[]any{map[string]any{"a": 11}, map[string]any{"a": 12}},
		[]any{map[string]any{"a": 13}, map[string]any{"a": "x"}},
	}
	chunk, err := p.Convert(src, nil, ArrowTuning{BatchSize: 4}, mem)
	require.NoError(t, err)
	defer chunk.Release()
	require.Equal(t, 6, chunk.Rows)
	require.Nil(t, chunk.Unknown)
	var values, origin []string
	for i, r := range chunk.Records {
		require.LessOrEqual(t, r.NumRows(), int64(4))
		for row := range int(r.NumRows()) {
			values = append(values, r.Column(0).ValueStr(row))
			origin = append(origin, fmt.Sprint(chunk.Origin[i][row]))
		}
		require.Len(t, chunk.Origin[i], int(r.NumRows()))
	}
	require.Equal(t, "1 2 3 10 11 12", strings.Join(values, " "))
	require.Equal(t, "0 0 0 2 4 4", strings.Join(origin, " "))
	require.Len(t, chunk.Errors, 3)
	require.Equal(t, `row 5: a: expected long, got "bad" (declared string, the column would take it)`, chunk.Errors[0].Error())
	require.Equal(t, 1, chunk.Errors[0].Message)
	require.Equal(t, `expected JSON objects, one a line, got an empty payload`, chunk.Errors[1].Error())
	require.Equal(t, `row 1: a: expected long, got "x" (declared string, the column would take it)`, chunk.Errors[2].Error())
}

// TestNDJSONOneRecord holds that a refused message leaves no row in a record
// that stays open.
func TestNDJSONOneRecord(t *testing.T) {
	p := plan(t, "a: long, s: string", Options{Evolve: true, Format: NDJSON})
	chunk, err := p.Convert(messages{"{\"a\":1}", "{\"a\":2,\"s\":\"x\"}\n{\"a\":true}", "{\"a\":3}"}, nil, ArrowTuning{}, nil)
	require.NoError(t, err)
	defer chunk.Release()
	require.Len(t, chunk.Records, 1)
	require.Equal(t, "[1 3]", chunk.Records[0].Column(0).String())
	require.Equal(t, []int32{0, 2}, chunk.Origin[0])
	require.Equal(t, 2, chunk.Rows)
}

// TestNDJSONUnknown holds that a refused message brings no column.
func TestNDJSONUnknown(t *testing.T) {
	p := plan(t, "a: long", Options{Evolve: true, Format: NDJSON})
	src := messages{"{\"a\":1,\"b\":1}\n{\"a\":2,\"c\":true}", "{\"d\":1}\n{\"a\":\"bad\"}", "{\"a\":3}"}
	chunk, err := p.Convert(src, nil, ArrowTuning{}, nil)
	require.NoError(t, err)
	require.Equal(t, 3, chunk.Rows)
	require.Len(t, chunk.Errors, 1)
	p, err = p.Extend(chunk.Unknown)
	require.NoError(t, err)
	require.Equal(t, "a: long, b: long, c: boolean", columns(p))
	chunk, err = p.Convert(src, func(i int) bool { return i == 1 }, ArrowTuning{}, nil)
	require.NoError(t, err)
	require.Nil(t, chunk.Unknown)
	require.EqualValues(t, 3, chunk.Records[0].NumRows())
}

// recordFromJSON makes a record of a schema.
func recordFromJSON(t testing.TB, schema *arrow.Schema, text string) arrow.RecordBatch {
	r, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(text))
	require.NoError(t, err)
	return r
}

func ipcStream(t testing.TB, records ...arrow.RecordBatch) []byte {
	var b bytes.Buffer
	w := ipc.NewWriter(&b, ipc.WithSchema(records[0].Schema()))
	for _, r := range records {
		require.NoError(t, w.Write(r))
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

func ipcFileOf(t testing.TB, records ...arrow.RecordBatch) []byte {
	var b bytes.Buffer
	w, err := ipc.NewFileWriter(&b, ipc.WithSchema(records[0].Schema()))
	require.NoError(t, err)
	for _, r := range records {
		require.NoError(t, w.Write(r))
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

func parquetOf(t testing.TB, r arrow.RecordBatch) []byte {
	var b bytes.Buffer
	w, err := pqarrow.NewFileWriter(r.Schema(), &b, parquet.NewWriterProperties(), pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	require.NoError(t, err)
	require.NoError(t, w.Write(r))
	require.NoError(t, w.Close())
	return b.Bytes()
}

func fieldsOf(pairs ...any) *arrow.Schema {
	var fields []arrow.Field
	for i := 0; i < len(pairs); i += 2 {
		fields = append(fields, arrow.Field{Name: pairs[i].(string), Type: pairs[i+1].(arrow.DataType), Nullable: true})
	}
	return arrow.NewSchema(fields, nil)
}

func TestArrowPayloads(t *testing.T) {
	types := fieldsOf("i8", arrow.PrimitiveTypes.Int8, "u16", arrow.PrimitiveTypes.Uint16, "i32", arrow.PrimitiveTypes.Int32, "u32", arrow.PrimitiveTypes.Uint32,
		"i64", arrow.PrimitiveTypes.Int64, "u64", arrow.PrimitiveTypes.Uint64, "f32", arrow.PrimitiveTypes.Float32, "f64", arrow.PrimitiveTypes.Float64,
		"s", arrow.BinaryTypes.String, "ls", arrow.BinaryTypes.LargeString, "b", arrow.FixedWidthTypes.Boolean, "d", arrow.FixedWidthTypes.Date32,
		"ts", arrow.FixedWidthTypes.Timestamp_us, "tn", &arrow.TimestampType{Unit: arrow.Nanosecond}, "tm", &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "Europe/Berlin"},
		"dec", &arrow.Decimal128Type{Precision: 10, Scale: 2}, "bin", arrow.BinaryTypes.Binary,
		"l", arrow.ListOf(arrow.PrimitiveTypes.Int16), "fl", arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int64), "st", arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int8, Nullable: true}),
		"m", arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32), "nothing", arrow.Null)
	rows := `[{"i8":-128,"u16":65535,"i32":1,"u32":4294967295,"i64":9223372036854775807,"u64":9223372036854775807,"f32":1.5,"f64":0.1,"s":"é","ls":"large","b":true,"d":"2024-02-29",
	  "ts":1704067200000001,"tn":1704067200000001000,"tm":1704067200001,"dec":"12.34","bin":"AAEC","l":[1,null],"fl":[1,2],"st":{"x":1},"m":[{"key":"k","value":1}]},{}]`
	rec := recordFromJSON(t, types, rows)
	want := "i8: int, u16: int, i32: int, u32: long, i64: long, u64: long, f32: float, f64: double, s: string, ls: string, b: boolean, d: date, ts: timestamptz, tn: timestamp, tm: timestamptz, " +
		"dec: decimal(10,2), bin: binary, l: list<int>, fl: list<long>, st: struct<x: int>, m: map<string, int>"
	first := `{"b":true,"bin":"AAEC","d":"2024-02-29","dec":"12.34","f32":1.5,"f64":0.1,"fl":[1,2],"i32":1,"i64":9223372036854775807,"i8":-128,"l":[1,null],"ls":"large","m":[{"key":"k","value":1}],"s":"é","st":{"x":1},` +
		`"tm":"2024-01-01T00:00:00.001Z","tn":"2024-01-01T00:00:00.000001","ts":"2024-01-01T00:00:00.000001Z","u16":65535,"u32":4294967295,"u64":9223372036854775807}`
	for name, payload := range map[string][]byte{"stream": ipcStream(t, rec), "file": ipcFileOf(t, rec)} {
		t.Run(name, func(t *testing.T) {
			p, got := loadPayload(t, plan(t, "", Options{Evolve: true, Format: ArrowIPC}), payload)
			require.Equal(t, want, columns(p))
			require.Len(t, got, 2)
			require.Equal(t, first, got[0])
			require.Equal(t, 21, strings.Count(got[1], ":null"))
			// The table exists now, with other columns first and one more.
			_, got = loadPayload(t, plan(t, "more: long, st: struct<y: long, x: int>, i8: long, l: list<long>", Options{Evolve: true, Format: ArrowIPC}), payload)
			require.Contains(t, got[0], `"st":{"x":1,"y":null}`)
			require.Contains(t, got[0], `"l":[1,null]`)
		})
	}
	t.Run("parquet", func(t *testing.T) {
		simple := fieldsOf("id", arrow.PrimitiveTypes.Int64, "s", arrow.BinaryTypes.String, "l", arrow.ListOf(arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Float64, Nullable: true})))
		payload := parquetOf(t, recordFromJSON(t, simple, `[{"id":1,"s":"a","l":[{"x":1.5},{}]},{"id":2,"s":null,"l":[]},{"id":3}]`))
		p, got := loadPayload(t, plan(t, "", Options{Evolve: true, Format: Parquet}), payload)
		require.Equal(t, "id: long, s: string, l: list<struct<x: double>>", columns(p))
		require.Equal(t, []string{`{"id":1,"l":[{"x":1.5},{"x":null}],"s":"a"}`, `{"id":2,"l":[],"s":null}`, `{"id":3,"l":null,"s":null}`}, got)
	})
}

// loadPayload loads one payload, which must not be refused.
func loadPayload(t *testing.T, p *Plan, payload []byte) (*Plan, []string) {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	src := rawMessages{payload}
	chunk, err := p.Convert(src, nil, ArrowTuning{BatchSize: 2}, mem)
	require.NoError(t, err)
	require.Empty(t, chunk.Errors)
	if chunk.Unknown != nil {
		p, err = p.Extend(chunk.Unknown)
		require.NoError(t, err)
		chunk, err = p.Convert(src, nil, ArrowTuning{BatchSize: 2}, mem)
		require.NoError(t, err)
		require.Empty(t, chunk.Errors)
		require.Nil(t, chunk.Unknown)
	}
	defer chunk.Release()
	var rows []string
	for i, r := range chunk.Records {
		require.True(t, r.Schema().Equal(p.Schema()))
		require.Len(t, chunk.Origin[i], int(r.NumRows()))
		require.LessOrEqual(t, r.NumRows(), int64(2))
		for row := range int(r.NumRows()) {
			rows = append(rows, rowText(t, r, row))
		}
	}
	require.Len(t, rows, chunk.Rows)
	return p, rows
}

func TestArrowRefusals(t *testing.T) {
	ns := &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"}
	wide := &arrow.Decimal256Type{Precision: 50, Scale: 0}
	decimals := array.NewDecimal256Builder(memory.DefaultAllocator, wide)
	n, err := decimal256.FromString("1"+strings.Repeat("0", 40), 50, 0)
	require.NoError(t, err)
	decimals.Append(decimal256.FromI64(5))
	decimals.Append(n)
	tooWide := array.NewRecordBatch(fieldsOf("v", wide), []arrow.Array{decimals.NewArray()}, 2)
	broken := array.NewStringBuilder(memory.DefaultAllocator)
	broken.Append("ok")
	broken.Append("\xff")
	notText := array.NewRecordBatch(fieldsOf("v", arrow.BinaryTypes.String), []arrow.Array{broken.NewArray()}, 2)
	good := ipcStream(t, recordFromJSON(t, fieldsOf("v", arrow.PrimitiveTypes.Int64), `[{"v":7}]`))
	for name, c := range map[string]struct {
		table   string
		payload []byte
		err     string
	}{
		"unsigned beyond long":  {"v: long", ipcStream(t, recordFromJSON(t, fieldsOf("v", arrow.PrimitiveTypes.Uint64), `[{"v":1},{"v":9223372036854775808}]`)), `row 1: v: expected long, got 9223372036854775808 (declared decimal(38,0), the column would take it)`},
		"nanoseconds":           {"v: timestamptz", ipcStream(t, recordFromJSON(t, fieldsOf("v", ns), `[{"v":1704067200000000001}]`)), `row 0: v: expected timestamptz, got 2024-01-01T00:00:00.000000001Z (finer than a microsecond; timestamp_precision: truncate would drop the digits)`},
		"great decimals":        {"v: decimal(38,0)", ipcStream(t, tooWide), `row 1: v: expected decimal(38,0), got 10000000000000000000000000000000000000000 (more than 38 digits before the point)`},
		"invalid text":          {"v: string", ipcStream(t, notText), `row 1: v: expected string, got "\xff" (not UTF-8)`},
		"another type":          {"v: long", ipcStream(t, recordFromJSON(t, fieldsOf("v", arrow.BinaryTypes.String), `[{"v":"7"}]`)), `row 0: v: expected long, got 7 of type utf8`},
		"a type without column": {"", ipcStream(t, recordFromJSON(t, fieldsOf("v", arrow.FixedWidthTypes.Time64us), `[{"v":"01:02:03"}]`)), `v: expected a type that the tables have, got time64[us] (cast it before`},
		"nested":                {"v: list<int>", ipcStream(t, recordFromJSON(t, fieldsOf("v", arrow.ListOf(arrow.PrimitiveTypes.Int64)), `[{"v":[1]},{"v":[2,3000000000]}]`)), `row 1: v[1]: expected int, got 3000000000`},
		"names in two cases":    {"", ipcStream(t, recordFromJSON(t, fieldsOf("v", arrow.PrimitiveTypes.Int64, "V", arrow.PrimitiveTypes.Int64), `[{"v":1,"V":2}]`)), `V: expected names that differ in more than case`},
		"not Arrow":             {"", []byte("hello world, this is text"), `expected an Arrow IPC stream or file, got`},
		"cut short":             {"v: long", good[:len(good)/2], `expected an Arrow IPC stream or file, got`},
		"empty":                 {"v: long", nil, `expected an Arrow IPC stream or file, got an empty payload`},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(t, c.table, Options{Evolve: true, Format: ArrowIPC})
			src := rawMessages{c.payload, good}
			chunk, err := p.Convert(src, nil, ArrowTuning{}, nil)
			require.NoError(t, err)
			require.NotEmpty(t, chunk.Errors)
			require.Equal(t, 0, chunk.Errors[0].Message)
			require.Contains(t, chunk.Errors[0].Error(), c.err)
			if c.table == "v: long" {
				require.Equal(t, 1, chunk.Rows)
				require.Len(t, chunk.Records, 1)
				require.Equal(t, "7", chunk.Records[0].Column(0).ValueStr(0))
			}
		})
	}
}

// TestDamagedPayloads cuts and changes payloads at random: they may be refused
// or, where only values changed, taken, but nothing may crash.
func TestDamagedPayloads(t *testing.T) {
	schema := fieldsOf("i", arrow.PrimitiveTypes.Int64, "s", arrow.BinaryTypes.String, "l", arrow.ListOf(arrow.BinaryTypes.String), "st", arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int8, Nullable: true}))
	rec := recordFromJSON(t, schema, `[{"i":1,"s":"abc","l":["x","y"],"st":{"x":1}},{"i":null,"s":"","l":[],"st":null}]`)
	for format, payloads := range map[MessageFormat][][]byte{ArrowIPC: {ipcStream(t, rec), ipcFileOf(t, rec)}, Parquet: {parquetOf(t, rec)}} {
		p := plan(t, "i: long, s: string, l: list<string>, st: struct<x: int>", Options{Evolve: true, Format: format})
		for _, payload := range payloads {
			for at := 0; at < len(payload); at += 3 {
				for _, flip := range []byte{0x01, 0xff} {
					damaged := bytes.Clone(payload)
					damaged[at] ^= flip
					chunk, err := p.Convert(rawMessages{damaged, damaged[:at]}, nil, ArrowTuning{}, nil)
					require.NoError(t, err)
					chunk.Release()
				}
			}
		}
	}
}

func TestFlights(t *testing.T) {
	payload := sharedFile(t, "flights-200k.arrow")
	p := plan(t, "", Options{Evolve: true, Format: ArrowIPC})
	chunk, err := p.Convert(rawMessages{payload}, nil, ArrowTuning{}, nil)
	require.NoError(t, err)
	p, err = p.Extend(chunk.Unknown)
	require.NoError(t, err)
	require.Equal(t, "delay: int, distance: int, time: float", columns(p))
	chunk, err = p.Convert(rawMessages{payload}, nil, ArrowTuning{}, nil)
	require.NoError(t, err)
	defer chunk.Release()
	require.Equal(t, 200_000, chunk.Rows)
	require.Len(t, chunk.Records, 20)
	r, err := ipc.NewFileReader(bytes.NewReader(payload))
	require.NoError(t, err)
	want, err := r.RecordBatchAt(0)
	require.NoError(t, err)
	row := 0
	for _, got := range chunk.Records {
		for i := range int(got.NumRows()) {
			for c := range 3 {
				require.Equal(t, want.Column(c).ValueStr(row), got.Column(c).ValueStr(i))
			}
			row++
		}
	}
}

// TestAdaptSlices holds that arrays which are parts of others are read from
// their own beginning.
func TestAdaptSlices(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	p := plan(t, "i: long, s: string, l: list<long>, st: struct<x: long>, m: map<string, long>, n: timestamp", Options{TimestampPrecision: TruncateFiner})
	schema := arrow.NewSchema(p.Schema().Fields(), nil)
	rec := recordFromJSON(t, schema, `[{"i":1},{"i":2,"s":"b","l":[2,3],"st":{"x":2},"m":[{"key":"k","value":2}]},{"i":null,"s":"c","l":[],"st":null}]`)
	c := newConverter(p)
	c.mem = mem
	for j, f := range p.root.children {
		data, _, r := c.adapt(array.NewSlice(rec.Column(j), 1, 3), f, nil)
		require.Nil(t, r)
		a := array.MakeFromData(data)
		require.True(t, array.Equal(array.NewSlice(rec.Column(j), 1, 3), a), "%v", a)
		a.Release()
		data.Release()
	}
	ns := recordFromJSON(t, fieldsOf("n", &arrow.TimestampType{Unit: arrow.Nanosecond}), `[{"n":-1},{"n":-1000},{"n":1999}]`)
	data, _, r := c.adapt(ns.Column(0), p.root.children[5], nil)
	require.Nil(t, r)
	a := array.MakeFromData(data)
	require.Equal(t, []arrow.Timestamp{-1, -1, 1}, a.(*array.Timestamp).Values())
	a.Release()
	data.Release()
}
