package tests

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/managed-lakehouse/managed-lakehouse/tests/internal/readback"
)

// parsingCase is a text that a parser of JSON must take (name y_…), must refuse
// (n_…), or may do either with (i_…).
type parsingCase struct {
	Name  string
	text  []byte
	table string
}

func parsingCases(t *testing.T) (cases []parsingCase) {
	t.Helper()
	f, err := os.Open(sharedData(t, "json-parsing-cases.jsonl"))
	require.NoError(t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var c struct{ Name, Base64 string }
		require.NoError(t, json.Unmarshal(lines.Bytes(), &c))
		text, err := base64.StdEncoding.DecodeString(c.Base64)
		require.NoError(t, err)
		cases = append(cases, parsingCase{c.Name, text, fmt.Sprintf("case%03d", len(cases))})
	}
	require.NoError(t, lines.Err())
	return cases
}

// Each case is a message between two good rows, in a table of its own: the good rows
// land, and a text that is no JSON object is refused by itself.
func TestParsingCases(t *testing.T) {
	t.Parallel()
	cases := parsingCases(t)
	require.Len(t, cases, 318)
	warehouse := filepath.Join(t.TempDir(), "warehouse")
	var batch service.MessageBatch
	for _, c := range cases {
		for _, text := range [][]byte{[]byte(`{"good":1}`), c.text, []byte(`{"good":2}`)} {
			batch = append(batch, forTable(c.table, text))
		}
	}
	refused := produceAll(t, warehouse, "", batch)
	for _, c := range cases {
		rows := rowsOfTable(t, warehouse, c.table)
		var others []readback.Row
		good := map[any]int{}
		for _, r := range rows {
			if g, ok := r["good"]; ok {
				good[g]++
			} else {
				others = append(others, r)
			}
		}
		require.Equal(t, map[any]int{json.Number("1"): 1, json.Number("2"): 1}, good, "the good rows around %s", c.Name)
		for _, r := range refused[c.table] {
			require.Equal(t, string(c.text), r.text, "what was refused around %s", c.Name)
		}
		require.Equal(t, 1, len(others)+len(refused[c.table]), "%s is neither there nor refused, or both", c.Name)

		object, isObject := parsedText(t, c).(map[string]any)
		switch {
		case strings.HasPrefix(c.Name, "n_"), !isObject && strings.HasPrefix(c.Name, "y_"):
			require.Len(t, refused[c.table], 1, c.Name)
		case strings.HasPrefix(c.Name, "y_"):
			require.Empty(t, refused[c.table], c.Name)
			want, _ := typed(object).(map[string]any)
			requireRow(t, warehouse, c, want, others[0])
		}
	}
}

// Each value that a parser must take is also a field, in a table of its own, and
// reads back as it was. One that no list can hold, since its elements have no type
// in common, is refused for that reason, and kept as text where that is asked for.
func TestParsingCasesAsValues(t *testing.T) {
	t.Parallel()
	warehouse := filepath.Join(t.TempDir(), "warehouse")
	var batch service.MessageBatch
	var cases []parsingCase
	for _, c := range parsingCases(t) {
		if strings.HasPrefix(c.Name, "y_") {
			cases = append(cases, c)
			batch = append(batch, forTable(c.table, wrapped(c.text)), forTable(c.table, []byte(`{"good":1}`)))
		}
	}
	require.Len(t, cases, 95)
	refused := produceAll(t, warehouse, "", batch)
	var again service.MessageBatch
	var asText []parsingCase
	for _, c := range cases {
		if r := refused[c.table]; len(r) > 0 {
			require.Len(t, r, 1, c.Name)
			require.Equal(t, string(wrapped(c.text)), r[0].text, c.Name)
			require.Regexp(t, `^v(\[\d+\])?: expected .*, got `, r[0].why, c.Name)
			asText = append(asText, c)
			again = append(again, forTable(c.table, wrapped(c.text)), forTable(c.table, []byte(`{"good":1}`)))
			continue
		}
		var found []readback.Row
		for _, r := range rowsOfTable(t, warehouse, c.table) {
			if r["good"] == nil {
				found = append(found, r)
			}
		}
		require.Len(t, found, 1, c.Name)
		want := map[string]any{}
		if v := typed(parsedText(t, c)); v != nil {
			want["v"] = v
		}
		requireRow(t, warehouse, c, want, found[0])
	}

	require.Len(t, asText, 1, "values without a type")
	require.Equal(t, "y_array_heterogeneous.json", asText[0].Name)
	warehouse = filepath.Join(t.TempDir(), "warehouse")
	require.Empty(t, produceAll(t, warehouse, "schema_evolution: { on_type_conflict: string }", again))
	var texts []string
	for _, r := range rowsOfTable(t, warehouse, asText[0].table) {
		texts = append(texts, r.Text())
	}
	require.ElementsMatch(t, []string{`{"good":1}`, `{"v":[null,"1","1","{}"]}`}, texts)
}

func wrapped(text []byte) []byte { return fmt.Appendf(nil, `{"v":%s}`, text) }

// parsedText is the case's value with numbers as their digits; of repeated names the
// last counts. nil where it is no JSON, or null.
func parsedText(t *testing.T, c parsingCase) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(c.text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		require.False(t, strings.HasPrefix(c.Name, "y_"), "%s: %v", c.Name, err)
		return nil
	}
	return v
}

// typed is a value as its columns hold it. What has no type has no column: null, and
// objects and arrays that hold nothing else. The empty name, and characters that no
// name can have, are an underscore (column_names: normalize).
func typed(v any) any {
	switch x := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range x {
			if e = typed(e); e != nil {
				if k = strings.ReplaceAll(k, "\x00", "_"); k == "" {
					k = "_"
				}
				out[k] = e
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		for _, e := range x {
			if typed(e) != nil {
				return x
			}
		}
		return nil
	}
	return v
}

func requireRow(t *testing.T, warehouse string, c parsingCase, want map[string]any, got readback.Row) {
	t.Helper()
	table, err := readback.ReadIceberg(t.Context(), filepath.Join(warehouse, "default", c.table))
	require.NoError(t, err)
	rows, err := readback.Conform(table.Table.Schema(), []readback.Row{want})
	require.NoError(t, err, c.Name)
	require.Equal(t, rows[0].Text(), got.Text(), c.Name)
}

func rowsOfTable(t *testing.T, warehouse, table string) []readback.Row {
	t.Helper()
	both, err := readback.Check(t.Context(), filepath.Join(warehouse, "default", table))
	require.NoError(t, err, table)
	return both.Iceberg.Rows
}

func forTable(table string, text []byte) *service.Message {
	m := service.NewMessage(text)
	m.MetaSetMut("table", table)
	return m
}

// refusedMessage is what came to the error route.
type refusedMessage struct{ text, why string }

// produceAll sends a batch through a pipeline whose rows go to the tables that their
// metadata names, and gives what was refused, by table.
func produceAll(t *testing.T, warehouse, settings string, batch service.MessageBatch) map[string][]refusedMessage {
	t.Helper()
	log := &logBuffer{}
	sb := service.NewStreamBuilder()
	sb.SetLogger(slog.New(slog.NewTextHandler(log, nil)))
	require.NoError(t, sb.SetYAML(fmt.Sprintf(`
output:
  fallback:
    - managed_lakehouse:
        warehouse: %s
        table: ${! @table }
        streaming: { enabled: true, idle: 200ms }
        %s
    - test_refused: { box: %q }
`, warehouse, settings, t.Name()+settings)))
	produce, err := sb.AddBatchProducerFunc()
	require.NoError(t, err)
	stream, err := sb.Build()
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- stream.Run(context.Background()) }()
	require.NoError(t, produce(t.Context(), batch), "%s", log)
	require.NoError(t, stream.StopWithin(runTimeout))
	require.NoError(t, <-ended)
	out := map[string][]refusedMessage{}
	if box, ok := refusedBoxes.Load(t.Name() + settings); ok {
		for _, m := range box.(*refusedBox).messages {
			table, _ := m.MetaGet("table")
			why, _ := m.MetaGet("fallback_error")
			text, err := m.AsBytes()
			require.NoError(t, err)
			out[table] = append(out[table], refusedMessage{string(text), why})
		}
	}
	return out
}

// refusedBoxes keeps what reaches the output test_refused, by its field `box`.
var refusedBoxes sync.Map

type refusedBox struct {
	mu       sync.Mutex
	messages service.MessageBatch
}

func (b *refusedBox) Connect(context.Context) error { return nil }
func (b *refusedBox) Close(context.Context) error   { return nil }
func (b *refusedBox) WriteBatch(_ context.Context, batch service.MessageBatch) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.messages = append(b.messages, batch.DeepCopy()...)
	return nil
}

func init() {
	service.MustRegisterBatchOutput("test_refused", service.NewConfigSpec().Field(service.NewStringField("box")),
		func(conf *service.ParsedConfig, _ *service.Resources) (service.BatchOutput, service.BatchPolicy, int, error) {
			name, err := conf.FieldString("box")
			box, _ := refusedBoxes.LoadOrStore(name, &refusedBox{})
			return box.(*refusedBox), service.BatchPolicy{}, 1, err
		})
}
