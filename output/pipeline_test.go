package output_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	_ "github.com/redpanda-data/benthos/v4/public/components/io"
	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/managed-lakehouse/managed-lakehouse/output"
)

const shutdownWait = 30 * time.Second

// deadLetters keeps what reaches the test_dead_letters output, by its field `box`.
var deadLetters sync.Map

type deadLetterBox struct {
	mu   sync.Mutex
	text []string // content and error
}

func (d *deadLetterBox) Connect(context.Context) error { return nil }
func (d *deadLetterBox) Close(context.Context) error   { return nil }
func (d *deadLetterBox) WriteBatch(_ context.Context, b service.MessageBatch) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range b {
		body, err := m.AsBytes()
		if err != nil {
			return err
		}
		why, _ := m.MetaGet("fallback_error")
		d.text = append(d.text, string(body)+" | "+why)
	}
	return nil
}

func init() {
	service.MustRegisterBatchOutput("test_dead_letters", service.NewConfigSpec().Field(service.NewStringField("box")),
		func(conf *service.ParsedConfig, _ *service.Resources) (service.BatchOutput, service.BatchPolicy, int, error) {
			name, err := conf.FieldString("box")
			box, _ := deadLetters.LoadOrStore(name, &deadLetterBox{})
			return box.(*deadLetterBox), service.BatchPolicy{}, 1, err
		})
}

// pipeline is a stream that tests feed by hand.
type pipeline struct {
	produce service.MessageBatchHandlerFunc
	stream  *service.Stream
	done    chan error
}

func startPipeline(t *testing.T, outputYAML string) *pipeline {
	t.Helper()
	b := service.NewStreamBuilder()
	require.NoError(t, b.SetLoggerYAML("level: off"))
	produce, err := b.AddBatchProducerFunc()
	require.NoError(t, err)
	require.NoError(t, b.AddOutputYAML(outputYAML))
	stream, err := b.Build()
	require.NoError(t, err)
	p := &pipeline{produce: produce, stream: stream, done: make(chan error, 1)}
	go func() { p.done <- stream.Run(context.Background()) }()
	return p
}

func (p *pipeline) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, p.stream.StopWithin(shutdownWait))
	require.NoError(t, <-p.done)
}

func batchOf(rows ...string) (b service.MessageBatch) {
	for _, r := range rows {
		b = append(b, service.NewMessage([]byte(r)))
	}
	return b
}

// rowsOf reads a table by its Delta log: the rows of all live files, as JSON.
func rowsOf(t *testing.T, delta string) (rows []map[string]any) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(delta, "_delta_log", "*.json"))
	require.NoError(t, err)
	slices.Sort(logs)
	live := map[string]bool{}
	for _, l := range logs {
		text, err := os.ReadFile(l)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			var action struct {
				Add    *struct{ Path string } `json:"add"`
				Remove *struct{ Path string } `json:"remove"`
			}
			require.NoError(t, json.Unmarshal([]byte(line), &action))
			if action.Add != nil {
				live[action.Add.Path] = true
			}
			if action.Remove != nil {
				delete(live, action.Remove.Path)
			}
		}
	}
	for path := range live {
		rdr, err := file.OpenParquetFile(filepath.Join(delta, path), false)
		require.NoError(t, err)
		arrows, err := pqarrow.NewFileReader(rdr, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
		require.NoError(t, err)
		table, err := arrows.ReadTable(t.Context())
		require.NoError(t, err)
		batches := array.NewTableReader(table, 1<<20)
		for batches.Next() {
			var buf bytes.Buffer
			require.NoError(t, array.RecordToJSON(batches.RecordBatch(), &buf))
			for line := range strings.Lines(buf.String()) {
				d := json.NewDecoder(strings.NewReader(line))
				d.UseNumber()
				var row map[string]any
				require.NoError(t, d.Decode(&row))
				rows = append(rows, row)
			}
		}
		require.NoError(t, rdr.Close())
	}
	return rows
}

// recordsOf is the number of rows that the entries of a table's Delta log add.
func recordsOf(t *testing.T, delta string) (n int) {
	logs, err := filepath.Glob(filepath.Join(delta, "_delta_log", "*.json"))
	require.NoError(t, err)
	for _, l := range logs {
		text, err := os.ReadFile(l)
		require.NoError(t, err)
		for _, m := range numRecords.FindAllSubmatch(text, -1) {
			k, err := strconv.Atoi(string(m[1]))
			require.NoError(t, err)
			n += k
		}
	}
	return n
}

var numRecords = regexp.MustCompile(`numRecords\\":([0-9]+)`)

// idsOf are the ids of a table's rows, sorted as text.
func idsOf(t *testing.T, delta string) (ids []string) {
	for _, r := range rowsOf(t, delta) {
		ids = append(ids, fmt.Sprint(r["id"]))
	}
	slices.Sort(ids)
	return ids
}

// Ten messages, one of them bad, with the batching of the output on and off: just the
// bad one reaches the dead letters, and each good one is written once.
func TestABadRowReachesTheFallbackAlone(t *testing.T) {
	for _, batching := range []string{"{ count: 0 }", "{ count: 25, period: 50ms }", "{ count: 3, period: 50ms }"} {
		t.Run(batching, func(t *testing.T) {
			dir := t.TempDir()
			p := startPipeline(t, fmt.Sprintf(`
fallback:
  - managed_lakehouse:
      warehouse: %s
      table: t
      streaming: { enabled: true, idle: 50ms }
      schema: [ { name: id, type: long } ]
      batching: %s
  - test_dead_letters: { box: %q }
`, dir, batching, t.Name()))
			var wg sync.WaitGroup
			var want, bad []string
			for batch := range 10 {
				var rows []string
				for i := range 10 {
					id := batch*10 + i
					if i == 7 {
						rows = append(rows, fmt.Sprintf(`{"id":"bad %d"}`, id))
						bad = append(bad, fmt.Sprintf(`{"id":"bad %d"} | id: expected long, got "bad %d"`, id, id))
						continue
					}
					rows = append(rows, fmt.Sprintf(`{"id":%d}`, id))
					want = append(want, fmt.Sprint(id))
				}
				wg.Go(func() { require.NoError(t, p.produce(t.Context(), batchOf(rows...))) })
			}
			wg.Wait()
			p.stop(t)
			slices.Sort(want)
			require.Equal(t, want, idsOf(t, filepath.Join(dir, "default/t/delta")))
			box, ok := deadLetters.Load(t.Name())
			require.True(t, ok)
			got := box.(*deadLetterBox).text
			slices.Sort(got)
			slices.Sort(bad)
			require.Len(t, got, len(bad), "%q", got)
			for i := range bad {
				require.True(t, strings.HasPrefix(got[i], bad[i]), "%q", got[i])
			}
		})
	}
}

func TestANameThatIsNoFolderIsRefusedByRow(t *testing.T) {
	dir := t.TempDir()
	p := startPipeline(t, fmt.Sprintf(`
fallback:
  - managed_lakehouse:
      warehouse: %s
      table: ${! json("table") }
      streaming: { enabled: true, idle: 50ms }
      batching: { count: 0 }
  - test_dead_letters: { box: %q }
`, dir, t.Name()))
	require.NoError(t, p.produce(t.Context(), batchOf(
		`{"table":"a","id":1}`, `{"table":"../../etc","id":2}`, `{"table":"b","id":3}`, `{"table":"a","id":5}`, `{"table":"iceberg","id":6}`, `no json`)))
	p.stop(t)
	box, ok := deadLetters.Load(t.Name())
	require.True(t, ok)
	got := box.(*deadLetterBox).text
	require.Len(t, got, 3)
	slices.Sort(got)
	require.Contains(t, got[0], `no json | table: it cannot be interpolated`)
	require.Contains(t, got[1], `table: "../../etc" is no name for a folder`)
	require.Contains(t, got[2], `table: "iceberg" is no name for a folder`)
	require.Equal(t, []string{"1", "5"}, idsOf(t, filepath.Join(dir, "default/a/delta")))
	require.Equal(t, []string{"3"}, idsOf(t, filepath.Join(dir, "default/b/delta")))
	entries, err := os.ReadDir(filepath.Join(dir, "default"))
	require.NoError(t, err)
	require.Len(t, entries, 2)
}

func TestARunAppendsToTheTableOfTheRunBefore(t *testing.T) {
	dir := t.TempDir()
	for run := range 3 {
		p := startPipeline(t, fmt.Sprintf(`
managed_lakehouse:
  warehouse: %s
  table: t
  streaming: { idle: 50ms }
`, dir))
		require.NoError(t, p.produce(t.Context(), batchOf(fmt.Sprintf(`{"id":%d,"column%d":true}`, run, run))))
		p.stop(t)
	}
	require.Equal(t, []string{"0", "1", "2"}, idsOf(t, filepath.Join(dir, "default/t/delta")))
}

func TestDrainDoesNotWaitForTheTrigger(t *testing.T) {
	dir := t.TempDir()
	p := startPipeline(t, fmt.Sprintf(`
managed_lakehouse:
  warehouse: %s
  table: t
  streaming: { enabled: true, idle: 0s, commit_interval: 1h }
  batching: { count: 0 }
`, dir))
	done := make(chan error)
	go func() { done <- p.produce(context.Background(), batchOf(`{"id":1}`)) }()
	select {
	case err := <-done:
		t.Fatalf("acknowledged before anything could commit it: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	output.Drain()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(10 * time.Second):
		t.Fatal("the rows still wait")
	}
	p.stop(t)
	require.Equal(t, []string{"1"}, idsOf(t, filepath.Join(dir, "default/t/delta")))
}

// Two outputs that each bring their own columns to one table: conflicts and moved
// schemas are converted anew, and each value is found under its own name.
func TestTwoOutputsEvolveOneTable(t *testing.T) {
	dir := t.TempDir()
	conf := fmt.Sprintf(`
managed_lakehouse:
  warehouse: %s
  table: t
  streaming: { enabled: true, idle: 20ms }
  batching: { count: 0 }
`, dir)
	a, b := startPipeline(t, conf), startPipeline(t, conf)
	var wg sync.WaitGroup
	const rounds = 12
	for name, p := range map[string]*pipeline{"a": a, "b": b} {
		wg.Go(func() {
			for i := range rounds {
				require.NoError(t, p.produce(t.Context(), batchOf(
					fmt.Sprintf(`{"id":"%s%d","%s_%d":"%s only","s":{"%s_%d":%d}}`, name, i, name, i, name, name, i, i))))
			}
		})
	}
	wg.Wait()
	a.stop(t)
	b.stop(t)
	rows := rowsOf(t, filepath.Join(dir, "default/t/delta"))
	require.Len(t, rows, 2*rounds)
	for _, r := range rows {
		id := r["id"].(string)
		name, i := id[:1], id[1:]
		require.Equal(t, name+" only", r[name+"_"+i], "%v", r)
		require.Equal(t, json.Number(i), r["s"].(map[string]any)[name+"_"+i], "%v", r)
		for k, v := range r {
			if k != "id" && k != "s" && k != name+"_"+i {
				require.Nil(t, v, "row %s has a value of another one in %s", id, k)
			}
		}
	}
}

// A bounded input ends by itself, a batch that is not full included.
func TestABoundedInputEndsByItself(t *testing.T) {
	for _, batching := range []string{"{ count: 0 }", "{ count: 64 }", "{ count: 1000, period: 100ms }"} {
		t.Run(batching, func(t *testing.T) {
			dir := t.TempDir()
			b := service.NewStreamBuilder()
			require.NoError(t, b.SetYAML(fmt.Sprintf(`
input:
  generate: { count: 1001, batch_size: 10, interval: "", mapping: 'root.id = counter()' }
output:
  managed_lakehouse:
    warehouse: %s
    table: t
    streaming: { enabled: true, idle: 300ms, row_limit: 400 }
    batching: %s
logger: { level: "off" }
`, dir, batching)))
			stream, err := b.Build()
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			begin := time.Now()
			require.NoError(t, stream.Run(ctx))
			require.Less(t, time.Since(begin), 10*time.Second)
			ids := idsOf(t, filepath.Join(dir, "default/t/delta"))
			require.Len(t, ids, 1001)
			require.Len(t, slices.Compact(ids), 1001)
		})
	}
}
