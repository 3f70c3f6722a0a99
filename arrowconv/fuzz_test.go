package arrowconv

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

// sharedData is where the data files for tests lie, if they are there.
const sharedData = "../../shared/data/"

// sharedFile reads a data file for tests. Without the folder the test is skipped.
func sharedFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(sharedData + name)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(sharedData); errors.Is(err, fs.ErrNotExist) {
			t.Skip("the folder with data for tests is absent")
		}
	}
	require.NoError(t, err)
	return b
}

type parsingCase struct {
	Name string
	Text []byte `json:"base64"`
}

func parsingCases(t testing.TB) []parsingCase {
	var cases []parsingCase
	for line := range bytes.Lines(sharedFile(t, "json-parsing-cases.jsonl")) {
		var c parsingCase
		require.NoError(t, json.Unmarshal(line, &c))
		cases = append(cases, c)
	}
	return cases
}

// differentialPlans are the plans that the two decoders are compared under.
func differentialPlans(t testing.TB) []*Plan {
	every := "b: boolean, i: int, l: long, f: float, d: double, n: decimal(10,2), n38: decimal(38,10), day: date, t: timestamp, tz: timestamptz, s: string, x: binary, " +
		"o: struct<l: long, s: string, o: struct<d: double>>, a: list<long>, as: list<string>, ao: list<struct<l: long, a: list<double>>>, m: map<string, long>, mo: map<string, struct<l: long>>, ml: map<long, string>"
	declared := []Column{
		{Name: "l", Type: "long", Required: true}, {Name: "d", Type: "double"}, {Name: "s", Type: "string"}, {Name: "tz", Type: "timestamptz", Unit: "ms"},
		{Name: "o", Type: "struct", Fields: []Column{{Name: "s", Type: "string", Required: true}}}, {Name: "a", Element: &Column{Type: "long", Required: true}},
	}
	return []*Plan{
		plan(t, every, Options{Evolve: true}),
		plan(t, every, Options{}),
		plan(t, every, Options{Evolve: true, OnTypeConflict: ConflictsAsText, TimestampPrecision: TruncateFiner, InferTimestamps: true}),
		plan(t, "", Options{Evolve: true, Declared: declared}),
		plan(t, "a_b: long, s: string, _: long", Options{Evolve: true}),
		plan(t, "", Options{Evolve: true, InferTimestamps: true}),
	}
}

var differentialSeeds = []string{
	`{"b":true,"i":1,"l":2,"f":1.5,"d":2.5,"n":12.34,"n38":1e3,"day":"2024-02-29","t":"2024-01-01T00:00:00.5","tz":"2024-01-01T00:00:00.123456Z","s":"text","x":"AAEC"}`,
	`{"o":{"l":1,"s":"é","o":{"d":-0.0}},"a":[1,null,3],"as":["a","\n","\u00e9\ud83d\ude00"],"ao":[{"l":1,"a":[1,2.5]},null,{}],"m":{"k":1,"j":null},"mo":{"k":{"l":1}},"ml":{"1":"a"}}`,
	` { "l" : 1 , "d" : 1 , "s" : "x" , "a" : [ 1 , 2 ] , "o" : { } } ` + "\n",
	`{"a b":1,"s":"x"}`, `{"a b":1,"a_b":2}`, `{"":1,"s":null}`, `{"l":1,"l":2}`, `{"l":1,"u":null,"v":{},"w":[]}`, `{"l":1,"u":5}`, `{"L":1}`,
	`{"l":-9223372036854775808,"d":9007199254740993}`, `{"l":1.0,"d":1e400}`, `{"l":01}`, `{"l":-}`, `{"d":1.}`, `{"d":.5}`, `{"d":1e}`, `{"d":123456789012345678.5}`,
	`{"n":"12.34"}`, `{"n":12.345}`, `{"n":99999999.99,"n38":-0.0000000001}`, `{"n":100000000}`, `{"n":-12.3400}`, `{"n38":1234567890123456789012345678}`,
	`{"tz":1731508712229}`, `{"tz":"2024-01-01T00:00:00"}`, `{"tz":"2024-13-01T00:00:00Z"}`, `{"tz":"2016-12-31T23:59:60Z"}`, `{"tz":"1969-12-31t23:59:59.9999999z"}`, `{"t":"9999-12-31 23:59:59.999999"}`,
	`{"s":"\ud800"}`, `{"s":"\udc00\ud800"}`, "{\"s\":\"\xff\"}", "{\"s\":\"\xed\xa0\x80\"}", "{\"s\":\"a\x00b\"}", `{"s":"\u0000\/\b\f\r\t\\\""}`, `{"s":"unfinished`, `{"s":"\`, `{"s":"\u12`,
	`{"s":5}`, `{"s":{"k": [1, 2]}}`, `{"s":true}`, `{"x":"AAE"}`, `{"x":"AAE="}`, `{"x":"AAF="}`, `{"b":tru}`, `{"b":null}`, `{"l":null}`, `{"l":nul}`, `{"m":{"k":1,"k":2}}`,
	`{"s":"\ud888\u1234"}`, `{"s":"\ud83d\u0041 and more text"}`, `{"s":"\ud83dxxxxxx"}`, `{"s":"\ud83d\ude00\ud83d\ude01"}`,
	"{\"s\":\"a long text that holds \xff somewhere in the middle of it\"}", "{\"s\":\"escape \\n first, then \xc3( invalid\"}", "{\"a long name \xff of a field\":null,\"s\":\"x\"}", `{"s":"eine längere Zeichenkette mit Umlauten äöü darin"}`,
	"{\"s\":\"a long text with a tab\there and more\"}", "{\"s\":\"ä long text with a tab\there and more\"}",
	`{"l":1}x`, `{"l":1,}`, `{,}`, `{"l"}`, `{"l":1 "d":2}`, `[]`, `5`, ``, ` `, `{}`, `{"l":1}{"l":2}`, "\ufeff{}", `{"\u006c":7}`, `{"o":{"o":{"d":{"x":1}}}}`, `{"a":[1,[2]]}`, `{"a":[1,2`, `{"a":[,]}`,
}

// maxSeed keeps the very large cases out of the corpora, where they only cost
// time; TestParsingCases runs them.
const maxSeed = 4 << 10

// FuzzDecoders holds the scanner to the strict decoder: between two good rows,
// any text must leave the same rows, the same refusals and the same unknowns.
func FuzzDecoders(f *testing.F) {
	for _, s := range differentialSeeds {
		f.Add([]byte(s))
	}
	if _, err := os.Stat(sharedData); err == nil {
		for _, c := range parsingCases(f) {
			if len(c.Text) < maxSeed {
				f.Add(c.Text)
				f.Add(slicesJoin(`{"s":`, c.Text, `}`))
				f.Add(slicesJoin(`{"as":`, c.Text, `}`))
			}
		}
	}
	plans := differentialPlans(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, p := range plans {
			compareDecoders(t, p, text)
		}
	})
}

func slicesJoin(before string, text []byte, after string) []byte {
	return append(append([]byte(before), text...), after...)
}

func compareDecoders(t *testing.T, p *Plan, text []byte) {
	good := []byte(`{"l":1,"s":"good","o":{"s":"x"},"a":[1]}`)
	src := rawMessages{good, text, good, text}
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	fast, slow := newConverter(p), newConverter(p)
	slow.strictOnly = true
	a, err := fast.convert(src, nil, ArrowTuning{}, mem)
	require.NoError(t, err)
	defer a.Release()
	b, err := slow.convert(src, nil, ArrowTuning{}, mem)
	require.NoError(t, err)
	defer b.Release()
	require.Equal(t, b.Errors, a.Errors)
	require.Equal(t, b.Rows, a.Rows)
	require.Equal(t, b.Origin, a.Origin)
	require.Len(t, a.Records, len(b.Records))
	for i := range a.Records {
		require.True(t, array.RecordEqual(b.Records[i], a.Records[i]), "%s\n%v\n%v", text, b.Records[i], a.Records[i])
	}
	require.Equal(t, b.Unknown == nil, a.Unknown == nil)
	if a.Unknown != nil {
		require.Equal(t, b.Unknown.shapes, a.Unknown.shapes)
	}
}

// TestDecodersAgree compares the decoders on rows made at random: right and
// wrong values in every spelling, in any order, some of them damaged.
func TestDecodersAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	plans := differentialPlans(t)
	for range 8_000 {
		text := randomRow(r)
		compareDecoders(t, plans[r.IntN(len(plans))], text)
	}
}

var randomValues = []string{
	`null`, `true`, `false`, `0`, `-0`, `1`, `-1`, `127`, `2147483647`, `2147483648`, `-2147483648`, `9007199254740992`, `9007199254740993`, `9223372036854775807`, `9223372036854775808`,
	`-9223372036854775808`, `999999999999999999`, `1000000000000000000`, `12345678901234567890`, `1.0`, `1.5`, `-0.0`, `1e3`, `1E+2`, `1e-2`, `100e-2`, `123.456`, `0.1`, `12.34`, `12.345`, `99999999.99`, `100000000.00`,
	`3.4028235e38`, `1e39`, `1e308`, `1e309`, `5e-324`, `1e-400`, `0.30000000000000004`, `9007199254740993.0`, `1234567890123456789.12`, `16777217`, `1731508712229`, `-1`, `253402300799999`, `00`, `1.`, `+1`,
	`""`, `"x"`, `"12.34"`, `"-7"`, `"AAEC"`, `"AAE="`, `"2024-02-29"`, `"2023-02-29"`, `"2024-02-29T12:34:56Z"`, `"2024-02-29T12:34:56.5+01:00"`, `"2024-02-29 12:34:56.123456-0800"`, `"2024-02-29T12:34:56"`, `"0001-01-01T00:00:00.000001Z"`,
	`"2024-02-29T12:34:56.1234567Z"`, `"2024-02-29T12:34:56.1234560Z"`, `"a longer string of plain text"`, `"ünïcödé"`, `"tab\tquote\"slash\/"`, `"\u00e9\ud83d\ude00"`, `"\ud83d"`, `"null"`,
	`[]`, `{}`, `[1]`, `[1,null]`, `["a","b"]`, `[[]]`, `[1,"a"]`, `[{"l":1,"a":[1.5]},{}]`, `[{"l":"x"}]`, `{"l":1,"s":"x","o":{"d":1}}`, `{"s":"x"}`, `{"k":1,"j":2}`, `{"1":"a"}`, `{"k":{"l":5}}`, `{"k":1,"k":2}`, `{"new":1}`,
}

func randomRow(r *rand.Rand) []byte {
	names := []string{"b", "i", "l", "f", "d", "n", "n38", "day", "t", "tz", "s", "x", "o", "a", "as", "ao", "m", "mo", "ml", "a b", "a_b", "", "L", "o.l", "ao.element.l", "mo.value.l", "new.new", "new", "\\u006c"}
	space := func() string { return []string{"", "", "", "", " ", "\n\t"}[r.IntN(6)] }
	text := []byte(space() + "{")
	for i := range r.IntN(8) {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, space()+`"`+names[r.IntN(len(names))]+`"`+space()+`:`+space()+randomValues[r.IntN(len(randomValues))]+space()...)
	}
	text = append(text, "}"+space()...)
	if r.IntN(10) == 0 {
		text[r.IntN(len(text))] = byte(r.IntN(256))
	}
	if r.IntN(20) == 0 {
		text = text[:r.IntN(len(text))]
	}
	return text
}

// FuzzRoundTrip infers a table from any object and reads the row back from it.
func FuzzRoundTrip(f *testing.F) {
	for _, s := range differentialSeeds {
		f.Add([]byte(s))
	}
	if _, err := os.Stat(sharedData); err == nil {
		for _, c := range parsingCases(f) {
			if len(c.Text) < maxSeed {
				f.Add(slicesJoin(`{"v":`, c.Text, `}`))
			}
		}
		for line := range bytes.Lines(sharedFile(f, "earthquakes.ndjson")) {
			f.Add(line)
			break
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		roundTrip(t, text, Options{Evolve: true})
		roundTrip(t, text, Options{Evolve: true, OnTypeConflict: ConflictsAsText, InferTimestamps: true})
	})
}

// roundTrip loads one message into a table of its own and compares what is
// read back with what another parser finds in it. It gives the refusal, if any.
func roundTrip(t *testing.T, text []byte, opts Options) error {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	p := plan(t, "", opts)
	src := rawMessages{text}
	chunk, err := p.Convert(src, nil, ArrowTuning{}, mem)
	require.NoError(t, err)
	if chunk.Unknown != nil {
		p, err = p.Extend(chunk.Unknown)
		require.NoError(t, err)
		chunk, err = p.Convert(src, nil, ArrowTuning{}, mem)
		require.NoError(t, err)
		require.Nil(t, chunk.Unknown)
	}
	defer chunk.Release()
	require.Equal(t, 1, chunk.Rows+len(chunk.Errors))
	if len(chunk.Errors) > 0 {
		return chunk.Errors[0]
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var want map[string]any
	require.NoError(t, dec.Decode(&want), "accepted what another parser refuses")
	r := chunk.Records[0]
	for name, v := range want {
		stored, problem := storedName(name, opts.ColumnNames)
		require.Empty(t, problem)
		at := r.Schema().FieldIndices(stored)
		if len(at) == 0 {
			require.True(t, typeless(v), "%s: %v is lost", name, v)
			continue
		}
		requireValue(t, r.Column(at[0]), 0, v, opts)
	}
	return nil
}

// typeless tells whether a value holds nothing with a type.
func typeless(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case []any:
		for _, e := range v {
			if !typeless(e) {
				return false
			}
		}
		return true
	case map[string]any:
		for _, e := range v {
			if !typeless(e) {
				return false
			}
		}
		return true
	}
	return false
}

// requireValue compares an Arrow value with a parsed one.
func requireValue(t *testing.T, a arrow.Array, i int, want any, opts Options) {
	if want == nil {
		require.True(t, a.IsNull(i))
		return
	}
	require.True(t, a.IsValid(i))
	switch a := a.(type) {
	case *array.Boolean:
		require.Equal(t, want, a.Value(i))
	case *array.Int64:
		n, ok := new(big.Rat).SetString(string(want.(json.Number)))
		require.True(t, ok)
		require.Zero(t, n.Cmp(new(big.Rat).SetInt64(a.Value(i))))
	case *array.Float64:
		f, err := strconv.ParseFloat(string(want.(json.Number)), 64)
		require.NoError(t, err)
		require.Equal(t, math.Float64bits(f), math.Float64bits(a.Value(i)))
	case *array.Timestamp:
		days, ok := parseDay([]byte(want.(string)))
		require.True(t, ok)
		require.InDelta(t, int64(days)*86_400_000_000, int64(a.Value(i)), 2*86_400_000_000)
	case *array.String:
		if s, ok := want.(string); ok {
			require.Equal(t, s, a.Value(i))
			return
		}
		require.Equal(t, ConflictsAsText, opts.OnTypeConflict)
		var got any
		dec := json.NewDecoder(strings.NewReader(a.Value(i)))
		dec.UseNumber()
		require.NoError(t, dec.Decode(&got))
		require.Equal(t, want, got)
	case *array.List:
		from, to := a.ValueOffsets(i)
		list := want.([]any)
		require.Len(t, list, int(to-from))
		for j, e := range list {
			requireValue(t, a.ListValues(), int(from)+j, e, opts)
		}
	case *array.Struct:
		st := a.DataType().(*arrow.StructType)
		for name, e := range want.(map[string]any) {
			stored, _ := storedName(name, opts.ColumnNames)
			at, ok := st.FieldIdx(stored)
			if !ok {
				require.True(t, typeless(e), "%s: %v is lost", name, e)
				continue
			}
			requireValue(t, a.Field(at), i, e, opts)
		}
	default:
		require.Fail(t, "unexpected type", "%s", a.DataType())
	}
}

// TestParsingCases sends every case as a message between two good rows, and the
// values that must parse as a field of an object, reading them back.
func TestParsingCases(t *testing.T) {
	cases := parsingCases(t)
	require.Len(t, cases, 318)
	stored := 0
	for _, c := range cases {
		good := `{"good":1}`
		_, rows, errs := load(t, plan(t, "good: long", Options{Evolve: true}), good, c.Text, good)
		require.Contains(t, rows[0], `"good":1`, c.Name)
		require.Contains(t, rows[len(rows)-1], `"good":1`, c.Name)
		landed := errs[1] == ""
		isObject := len(bytes.TrimSpace(c.Text)) > 0 && bytes.TrimSpace(c.Text)[0] == '{'
		switch {
		case strings.HasPrefix(c.Name, "n_"), !isObject:
			require.False(t, landed, c.Name)
		case strings.HasPrefix(c.Name, "y_"):
			require.True(t, landed, "%s: %s", c.Name, errs[1])
			stored++
			if err := roundTrip(t, c.Text, Options{Evolve: true}); err != nil {
				refused, ok := errors.AsType[RowError](err)
				require.True(t, ok)
				require.Equal(t, ReasonNoColumns, refused.Reason, "%s: %v", c.Name, err)
			}
		}
	}
	require.NotZero(t, stored)
	for _, c := range cases {
		wrapped := slicesJoin(`{"v":`, c.Text, `}`)
		err := roundTrip(t, wrapped, Options{Evolve: true})
		switch {
		case strings.HasPrefix(c.Name, "n_") && c.Name != "n_structure_no_data.json":
			require.Error(t, err, c.Name)
		case strings.HasPrefix(c.Name, "y_"):
			if refused, ok := errors.AsType[RowError](err); ok {
				// No one type holds the elements of a mixed array, and a null or an
				// empty array alone is a row without a column.
				require.Contains(t, []ReasonCode{ReasonTypeMismatch, ReasonNoColumns}, refused.Reason, "%s: %v", c.Name, err)
				err = roundTrip(t, slicesJoin(`{"id":1,"v":`, c.Text, `}`), Options{Evolve: true, OnTypeConflict: ConflictsAsText})
			}
			require.NoError(t, err, c.Name)
		}
	}
}
