package arrowconv

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

// messages is a Source of JSON texts and Go values.
type messages []any

func (m messages) Len() int { return len(m) }

func (m messages) Bytes(i int) ([]byte, bool) {
	switch v := m[i].(type) {
	case string:
		return []byte(v), true
	case []byte:
		return v, true
	}
	return nil, false
}

func (m messages) Structured(i int) (any, error) {
	if err, ok := m[i].(error); ok {
		return nil, err
	}
	return m[i], nil
}

// plan makes a plan, of a table given as name and type, or of none.
func plan(t testing.TB, table string, opts Options) *Plan {
	t.Helper()
	var schema *arrow.Schema
	if table != "" {
		st, err := ParseType("struct<" + table + ">")
		require.NoError(t, err)
		schema = arrow.NewSchema(st.(*arrow.StructType).Fields(), nil)
	}
	p, err := NewPlan(schema, opts)
	require.NoError(t, err)
	return p
}

// load converts messages as an epoch would: once, and again under the extended
// plan if something was unknown. It returns the plan used last, the rows as
// JSON and the errors as text, by message.
func load(t testing.TB, p *Plan, msgs ...any) (*Plan, []string, map[int]string) {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	chunk, err := p.Convert(messages(msgs), nil, ArrowTuning{BatchSize: 3}, mem)
	require.NoError(t, err)
	errs := map[int]string{}
	for _, e := range chunk.Errors {
		errs[e.Message] = e.Error()
	}
	if chunk.Unknown != nil {
		require.Empty(t, chunk.Records)
		p, err = p.Extend(chunk.Unknown)
		require.NoError(t, err)
		chunk, err = p.Convert(messages(msgs), func(i int) bool { _, failed := errs[i]; return failed }, ArrowTuning{BatchSize: 3}, mem)
		require.NoError(t, err)
		require.Nil(t, chunk.Unknown, "something is unknown under the extended plan")
		for _, e := range chunk.Errors {
			errs[e.Message] = e.Error()
		}
	}
	defer chunk.Release()
	var rows []string
	total := 0
	for i, r := range chunk.Records {
		require.LessOrEqual(t, r.NumRows(), int64(3))
		require.True(t, r.Schema().Equal(p.Schema()))
		require.Len(t, chunk.Origin[i], int(r.NumRows()))
		for row := range int(r.NumRows()) {
			rows = append(rows, rowText(t, r, row))
		}
		total += int(r.NumRows())
	}
	require.Equal(t, chunk.Rows, total)
	require.Equal(t, len(msgs), total+len(errs))
	return p, rows, errs
}

// rowText is one row of a record as JSON, with NULLs.
func rowText(t testing.TB, r arrow.RecordBatch, row int) string {
	m := map[string]any{}
	for i, c := range r.Columns() {
		m[r.ColumnName(i)] = c.GetOneForMarshal(row)
	}
	b, err := json.Marshal(m)
	require.NoError(t, err)
	return string(b)
}

func columns(p *Plan) string {
	s := ""
	for i, f := range p.Schema().Fields() {
		if i > 0 {
			s += ", "
		}
		s += f.Name + ": " + typeName(f.Type)
	}
	return s
}

func TestInference(t *testing.T) {
	for _, c := range []struct {
		name    string
		opts    Options
		table   string
		msgs    []any
		columns string
		rows    []string
		errs    map[int]string
	}{
		{
			name:    "integers beyond 2^53 are exact",
			msgs:    []any{`{"id":9007199254740993}`, `{"id":9223372036854775807}`, `{"id":-9223372036854775808}`},
			columns: "id: long",
			rows:    []string{`{"id":9007199254740993}`, `{"id":9223372036854775807}`, `{"id":-9223372036854775808}`},
		},
		{
			name:    "an integer outside int64 is refused alone",
			msgs:    []any{`{"id":1}`, `{"id":9223372036854775808}`},
			columns: "id: long", rows: []string{`{"id":1}`},
			errs: map[int]string{1: `id: expected long, got 9223372036854775808 (declared decimal(38,0), the column would take it)`},
		},
		{
			name:    "an integer and a fraction make a double",
			msgs:    []any{`{"v":1}`, `{"v":2.5}`},
			columns: "v: double", rows: []string{`{"v":1}`, `{"v":2.5}`},
		},
		{
			name:  "a fraction into an existing long",
			table: "v: long", msgs: []any{`{"v":1}`, `{"v":2.5}`, `{"v":1.0}`, `{"v":1e3}`},
			columns: "v: long", rows: []string{`{"v":1}`, `{"v":1}`, `{"v":1000}`},
			errs: map[int]string{1: `v: expected long, got 2.5 (declared double, the column would take it)`},
		},
		{
			name:    "no type fits a great integer and a fraction: the first stands",
			msgs:    []any{`{"v":9007199254740993}`, `{"v":2.5,"b":1}`, `{"v":3.0}`},
			columns: "v: long", rows: []string{`{"v":9007199254740993}`, `{"v":3}`},
			errs: map[int]string{1: `v: expected long, got 2.5 (declared double, the column would take it)`},
		},
		{
			name:    "nulls wait for a type",
			msgs:    []any{`{"id":1,"x":null}`, `{"id":2,"x":"a"}`},
			columns: "id: long, x: string", rows: []string{`{"id":1,"x":null}`, `{"id":2,"x":"a"}`},
		},
		{
			name:    "a column of nulls, empty objects and empty arrays only does not appear",
			msgs:    []any{`{"id":1,"x":null,"o":{},"a":[],"n":{"p":[[],[null,{}]]}}`},
			columns: "id: long", rows: []string{`{"id":1}`},
		},
		{
			name:    "an empty array, then a typed one",
			msgs:    []any{`{"id":1,"tags":[]}`, `{"id":2,"tags":[7]}`},
			columns: "id: long, tags: list<long>", rows: []string{`{"id":1,"tags":[]}`, `{"id":2,"tags":[7]}`},
		},
		{
			name:    "null in an array, an empty array and a null array differ",
			msgs:    []any{`{"a":[1,null,3]}`, `{"a":[]}`, `{"a":null}`},
			columns: "a: list<long>", rows: []string{`{"a":[1,null,3]}`, `{"a":[]}`, `{"a":null}`},
		},
		{
			name:    "mixed types: the first stands",
			msgs:    []any{`{"f":1}`, `{"f":"x"}`, `{"f":{"k":1}}`, `{"f":[1]}`},
			columns: "f: long", rows: []string{`{"f":1}`},
			errs: map[int]string{
				1: `f: expected long, got "x" (declared string, the column would take it)`,
				2: `f: expected long, got {"k":1} (declared string, with on_type_conflict: string, the column would take it)`,
				3: `f: expected long, got [1] (declared string, with on_type_conflict: string, the column would take it)`,
			},
		},
		{
			name:    "mixed types as text",
			opts:    Options{OnTypeConflict: ConflictsAsText},
			msgs:    []any{`{"f":1}`, `{"f":"x"}`, `{"f":{"k": 1}}`, `{"f":[1, 2.50]}`, `{"f":true}`, `{"f":null}`},
			columns: "f: string", rows: []string{`{"f":"1"}`, `{"f":"x"}`, `{"f":"{\"k\":1}"}`, `{"f":"[1,2.50]"}`, `{"f":"true"}`, `{"f":null}`},
		},
		{
			name:    "structs and lists of structs unite their fields",
			msgs:    []any{`{"o":{"a":1},"l":[{"x":1},{"y":"s"}]}`, `{"o":{"b":{"c":true}},"l":[{"x":2.5},null]}`},
			columns: "o: struct<a: long, b: struct<c: boolean>>, l: list<struct<x: double, y: string>>",
			rows: []string{
				`{"l":[{"x":1,"y":null},{"x":null,"y":"s"}],"o":{"a":1,"b":null}}`,
				`{"l":[{"x":2.5,"y":null},null],"o":{"a":null,"b":{"c":true}}}`,
			},
		},
		{
			name:    "a refused row brings no column",
			msgs:    []any{`{"a":1}`, `{"a":"x","b":1}`},
			columns: "a: long", rows: []string{`{"a":1}`},
			errs: map[int]string{1: `a: expected long, got "x" (declared string, the column would take it)`},
		},
		{
			name:  "nested evolution",
			table: "id: long, o: struct<a: long>, l: list<struct<x: long>>, m: map<string, struct<p: long>>",
			msgs:  []any{`{"id":1,"o":{"a":1,"b":"n"},"l":[{"x":1},{"z":true}],"m":{"k":{"p":1,"q":2}}}`},
			columns: "id: long, o: struct<a: long, b: string>, l: list<struct<x: long, z: boolean>>, " +
				"m: map<string, struct<p: long, q: long>>",
			rows: []string{`{"id":1,"l":[{"x":1,"z":null},{"x":null,"z":true}],"m":[{"key":"k","value":{"p":1,"q":2}}],"o":{"a":1,"b":"n"}}`},
		},
		{
			name:    "timestamps are inferred when every value is one",
			opts:    Options{InferTimestamps: true},
			msgs:    []any{`{"t":"2024-01-02T03:04:05.123456Z","s":"2024-01-02T03:04:05Z"}`, `{"t":"2024-01-02T03:04:05+0100","s":"no"}`},
			columns: "t: timestamptz, s: string",
			rows:    []string{`{"s":"2024-01-02T03:04:05Z","t":"2024-01-02T03:04:05.123456Z"}`, `{"s":"no","t":"2024-01-02T02:04:05Z"}`},
		},
		{
			name:    "numbers: double",
			opts:    Options{Numbers: DoubleNumbers},
			msgs:    []any{`{"v":1}`, `{"v":9007199254740993}`},
			columns: "v: double", rows: []string{`{"v":1}`},
			errs: map[int]string{1: `v: expected double, got 9007199254740993 (double cannot hold this integer exactly; declared long, the column would take it)`},
		},
		{
			name:    "a repeated name: only the last counts",
			msgs:    []any{`{"a":1,"a":2}`, `{"a":"x","b":{"p":[1]},"a":3,"b":{"q":1,"q":2}}`, `{"l":[{"x":1,"x":[1]}],"l":[{"y":2,"y":3}]}`},
			columns: "a: long, b: struct<q: long>, l: list<struct<y: long>>",
			rows:    []string{`{"a":2,"b":null,"l":null}`, `{"a":3,"b":{"q":2},"l":null}`, `{"a":null,"b":null,"l":[{"y":3}]}`},
		},
		{
			name:  "what is no row",
			table: "a: long",
			msgs:  []any{`[1,2]`, `5`, ``, `  `, `not`, `{"a":1`, `{"a":01}`, `{"a":1}x`, `{"a":"\ud800"}`, "{\"a\":\"\xff\"}", `{}`, "null"},
			rows:  []string{`{"a":null}`}, columns: "a: long",
			errs: map[int]string{
				0: `expected a JSON object, got [1,2]`, 1: `expected a JSON object, got 5`, 2: `expected a JSON object, got an empty payload`,
				3: `expected a JSON object, got an empty payload`, 4: "", 5: "", 6: "", 7: "", 8: "", 9: "", 11: `expected a JSON object, got null`,
			},
		},
		{
			name:  "names",
			msgs:  []any{`{"two words":1,"a;b":2,"x=y":3}`, `{"dot":{"field":1},"dot.field":2}`, `{"a b":1,"a_b":2}`, `{"ID":1}`, `{"id":1,"Id":2}`, `{"_file":"y"}`, `{"pos":1,"file_path":"x","_id":2,"metadata":"m"}`, `{"_File":null,"":5}`},
			table: "id: long",
			columns: "id: long, two_words: long, a_b: long, x_y: long, pos: long, file_path: string, " +
				"_id: long, metadata: string, _: long",
			rows: []string{
				`{"_":null,"_id":null,"a_b":2,"file_path":null,"id":null,"metadata":null,"pos":null,"two_words":1,"x_y":3}`,
				`{"_":null,"_id":2,"a_b":null,"file_path":"x","id":null,"metadata":"m","pos":1,"two_words":null,"x_y":null}`,
				`{"_":5,"_id":null,"a_b":null,"file_path":null,"id":null,"metadata":null,"pos":null,"two_words":null,"x_y":null}`,
			},
			errs: map[int]string{
				1: `expected fields of different dotted paths, got two fields "dot.field" (Iceberg names a struct's field by its path with dots; rename one of them)`,
				2: `a_b: expected one field for each column, got two that are both stored as "a_b"`,
				3: `ID: expected names that differ in more than case, got "ID" beside column "id" (most engines take them for one)`,
				4: `Id: expected names that differ in more than case, got "Id" beside column "id" (most engines take them for one)`,
				5: `_file: expected a name that is not reserved, got "_file" (Iceberg keeps this name for itself)`,
			},
		},
		{
			name:    "dotted paths: the first stands",
			msgs:    []any{`{"dot":{"field":1},"a.b":2}`, `{"dot.field":2}`, `{"dot":{"field":3}}`, `{"l":[{"x":1}]}`, `{"l.element.x":1}`},
			columns: "dot: struct<field: long>, a.b: long, l: list<struct<x: long>>",
			rows: []string{
				`{"a.b":2,"dot":{"field":1},"l":null}`,
				`{"a.b":null,"dot":{"field":3},"l":null}`,
				`{"a.b":null,"dot":null,"l":[{"x":1}]}`,
			},
			errs: map[int]string{
				1: `expected fields of different dotted paths, got two fields "dot.field" (Iceberg names a struct's field by its path with dots; rename one of them)`,
				4: `expected fields of different dotted paths, got two fields "l.element.x" (Iceberg names a struct's field by its path with dots; rename one of them)`,
			},
		},
		{
			name:    "case clashes between rows: the first stands",
			msgs:    []any{`{"a":1}`, `{"A":1}`, `{"o":{"b":1}}`, `{"o":{"B":1}}`},
			columns: "a: long, o: struct<b: long>",
			rows:    []string{`{"a":1,"o":null}`, `{"a":null,"o":{"b":1}}`},
			errs:    map[int]string{1: "", 3: ""},
		},
		{
			name:  "names that are refused",
			opts:  Options{ColumnNames: RejectNames},
			msgs:  []any{`{"two words":1}`, `{"":1}`, `{"a\u0000":1}`, `{"ok":1,"bad name":null}`},
			errs:  map[int]string{0: "", 1: "", 2: ""},
			table: "", columns: "ok: long", rows: []string{`{"ok":1}`},
		},
		{
			name:    "too many columns",
			opts:    Options{MaxColumns: 2},
			msgs:    []any{`{"a":1}`, `{"o":{"x":1,"y":2,"z":3}}`, `{"b":1}`, `{"c":1}`, `{"a":2,"b":3}`},
			columns: "a: long, b: long", rows: []string{`{"a":1,"b":null}`, `{"a":null,"b":1}`, `{"a":2,"b":3}`},
			errs: map[int]string{
				1: `o: expected at most 2 leaf columns in the table, got 3 beside the 0 it has (declare an object whose names are data as map, or as string with on_type_conflict: string, or raise max_columns)`,
				3: `expected at most 2 leaf columns in the table, got 1 beside the 2 it has (declare an object whose names are data as map, or as string with on_type_conflict: string, or raise max_columns)`,
			},
		},
		{
			// The struct becomes text when an integer comes, and makes room.
			name:    "columns that fit after all",
			opts:    Options{MaxColumns: 3, OnTypeConflict: ConflictsAsText},
			msgs:    []any{`{"a":{"x":1,"y":2,"z":3}}`, `{"b":1}`, `{"a":5}`},
			columns: "a: string, b: long", rows: []string{`{"a":"{\"x\":1,\"y\":2,\"z\":3}","b":null}`, `{"a":null,"b":1}`, `{"a":"5","b":null}`},
		},
		{
			name:    "too deep",
			opts:    Options{MaxDepth: 3},
			msgs:    []any{`{"a":{"b":{"c":1}}}`, `{"a":{"b":{"c":{"d":1}}}}`, `{"a":{"l":[[1]]}}`},
			columns: "a: struct<b: struct<c: long>>", rows: []string{`{"a":{"b":{"c":1}}}`},
			errs: map[int]string{
				1: `a.b.c.d: expected at most 3 levels of nesting, got more (declare the column as map, or as string with on_type_conflict: string, or raise max_depth)`,
				2: `a.l[0][0]: expected at most 3 levels of nesting, got more (declare the column as map, or as string with on_type_conflict: string, or raise max_depth)`,
			},
		},
		{
			name: "rows without any column",
			msgs: []any{`{}`, `{"a":null}`},
			errs: map[int]string{0: "expected a value with a type, got nothing but null, {} or [] (the table has no column yet)", 1: ""},
		},
		{
			name:    "a row fails half-way and leaves nothing",
			table:   "a: long, s: string, l: list<struct<x: long, t: list<string>>>, z: long, b: boolean",
			msgs:    []any{`{"a":1,"s":"one","l":[{"x":1,"t":["p"]}],"z":1,"b":true}`, `{"a":2,"s":"two","b":null,"l":[{"x":2,"t":["q","r"]},{"t":["u"],"x":"bad"}],"z":2}`, `{"a":3,"s":"three","l":[{"x":3,"t":["v"]}],"z":3}`},
			columns: "a: long, s: string, l: list<struct<x: long, t: list<string>>>, z: long, b: boolean",
			rows:    []string{`{"a":1,"b":true,"l":[{"t":["p"],"x":1}],"s":"one","z":1}`, `{"a":3,"b":null,"l":[{"t":["v"],"x":3}],"s":"three","z":3}`},
			errs:    map[int]string{1: `l[1].x: expected long, got "bad" (declared string, the column would take it)`},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.opts.Evolve = true
			p, rows, errs := load(t, plan(t, c.table, c.opts), c.msgs...)
			require.Equal(t, c.columns, columns(p))
			require.Equal(t, c.rows, rows)
			require.Len(t, errs, len(c.errs), "%v", errs)
			for i, want := range c.errs {
				require.Contains(t, errs, i)
				if want != "" {
					require.Equal(t, want, errs[i])
				}
			}
		})
	}
}

func TestEvolutionOff(t *testing.T) {
	_, rows, errs := load(t, plan(t, "a: long, o: struct<b: long>", Options{}), `{"a":1,"x":null}`, `{"a":2,"x":1}`, `{"o":{"c":[]}}`, map[string]any{"a": 3, "y": ""})
	require.Equal(t, []string{`{"a":1,"o":null}`}, rows)
	require.Equal(t, map[int]string{
		1: "x: expected a column of the table, got a field that it lacks (schema_evolution.enabled is off)",
		2: "o.c: expected a column of the table, got a field that it lacks (schema_evolution.enabled is off)",
		3: "y: expected a column of the table, got a field that it lacks (schema_evolution.enabled is off)",
	}, errs)
}

func TestSourceError(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	_, err := plan(t, "a: long", Options{}).Convert(messages{`{"a":1}`, fmt.Errorf("broken")}, nil, ArrowTuning{BatchSize: 1}, mem)
	require.ErrorContains(t, err, "message 1: broken")
}
