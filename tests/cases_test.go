package tests

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/redpanda-data/benthos/v4/public/components/io"
	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // for the pipelines with catalog: sql

	_ "github.com/managed-lakehouse/managed-lakehouse/output"
	"github.com/managed-lakehouse/managed-lakehouse/tests/internal/readback"
)

// runTimeout is far above what any case takes: a pipeline that does not end by
// itself is a failure, and told as one.
const runTimeout = time.Minute

// Expectation is what expected.json holds.
type Expectation struct {
	// About says what the case shows, in a sentence.
	About string `json:"about"`
	// Input names a file of the shared data folder to read in place of
	// input.ndjson; where the folder is absent the case is skipped.
	Input string `json:"input"`
	// Fails is part of the error that the last run must end in; the tables are then
	// those of the runs before.
	Fails string `json:"fails"`
	// Tables are all tables of the warehouse, by `namespace/table`.
	Tables map[string]ExpectedTable `json:"tables"`
	// Refused are all rows that must come out of the error route.
	Refused []ExpectedRefusal `json:"refused"`
	// Logs are texts that the log of the runs must hold.
	Logs []string `json:"logs"`
}

// ExpectedTable is one table at the end. Rows come in any order; their numbers
// are compared as the digits of the column's type.
type ExpectedTable struct {
	// Schema is one `name: type` a column, in order.
	Schema []string `json:"schema"`
	// Rows are objects, or "input": what was sent, every line of every run. Where
	// there are too many to list, Count and Sums stand for them.
	Rows json.RawMessage `json:"rows"`
	// Sums are exact sums of columns, by name, NULLs left out.
	Sums map[string]string `json:"sums"`
	// Partitions are all partitions of the Iceberg table's live files, a text each:
	// `name=value` of each field, strings in quotes, with a comma between.
	Partitions []string `json:"partitions"`
	// Count is checked beside Rows where it says more than they do.
	Count *int `json:"count"`
	// Commits is the number of Iceberg snapshots.
	Commits *int `json:"commits"`
	// NoDelta says that the table must have no Delta side.
	NoDelta bool `json:"no_delta"`
}

// ExpectedRefusal is a row that the output refused: its text as it was sent, and
// parts of the reason.
type ExpectedRefusal struct {
	Row   string   `json:"row"`
	Error []string `json:"error"`
}

func TestCases(t *testing.T) {
	folders, err := filepath.Glob("cases/*/expected.json")
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	for _, f := range folders {
		dir := filepath.Dir(f)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			runCase(t, dir)
		})
	}
}

func runCase(t *testing.T, dir string) {
	var want Expectation
	data, err := os.ReadFile(filepath.Join(dir, "expected.json"))
	require.NoError(t, err)
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	dec.UseNumber()
	require.NoError(t, dec.Decode(&want))
	require.NotEmpty(t, want.About)

	scratch := t.TempDir()
	warehouse := filepath.Join(scratch, "warehouse")
	refused := filepath.Join(scratch, "refused.ndjson")
	var sent []readback.Row
	log := &logBuffer{}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of the pipelines:\n%s", log)
		}
	})

	runs := runsOf(t, dir, want.Input)
	for i, run := range runs {
		err := runPipeline(t, log, run.pipeline, map[string]string{
			"WAREHOUSE": warehouse, "INPUT": run.input, "REFUSED": refused, "SCRATCH": scratch,
		})
		if want.Fails != "" && i == len(runs)-1 {
			require.ErrorContains(t, err, want.Fails)
			continue
		}
		require.NoError(t, err, "run %d", i+1)
		f, err := os.Open(run.input)
		require.NoError(t, err)
		rows, err := readback.ParseRows(f)
		f.Close()
		if err == nil { // else the input has lines that are no JSON, and the case names its rows
			sent = append(sent, rows...)
		}
	}

	require.ElementsMatch(t, keys(want.Tables), tablesOf(t, warehouse), "tables of the warehouse")
	for name, table := range want.Tables {
		checkTable(t, filepath.Join(warehouse, name), name, table, sent)
	}
	left, err := filepath.Glob(filepath.Join(warehouse, ".staging", "*"))
	require.NoError(t, err)
	require.Empty(t, left, "temporary files of a run that has ended")
	checkRefused(t, refused, want.Refused)
	for _, text := range want.Logs {
		require.Contains(t, log.String(), text)
	}
}

type caseRun struct{ pipeline, input string }

// runsOf are the runs of a case, in order. What a run does not bring anew it takes
// from the one before.
func runsOf(t *testing.T, dir, shared string) []caseRun {
	t.Helper()
	last := caseRun{filepath.Join(dir, "pipeline.yaml"), filepath.Join(dir, "input.ndjson")}
	if shared != "" {
		last.input = sharedData(t, shared)
	}
	runs := []caseRun{last}
	for n := 2; ; n++ {
		next := last
		for name, part := range map[string]*string{"pipeline-%d.yaml": &next.pipeline, "input-%d.ndjson": &next.input} {
			if path := filepath.Join(dir, fmt.Sprintf(name, n)); exists(path) {
				*part = path
			}
		}
		if next == last {
			return runs
		}
		runs, last = append(runs, next), next
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// runPipeline runs a pipeline until it ends by itself.
func runPipeline(t *testing.T, log *logBuffer, path string, env map[string]string) error {
	t.Helper()
	conf, err := os.ReadFile(path)
	require.NoError(t, err)
	sb := service.NewStreamBuilder()
	sb.SetEnvVarLookupFunc(func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	})
	sb.SetLogger(slog.New(slog.NewTextHandler(log, nil)))
	if err := sb.SetYAML(string(conf)); err != nil {
		return err
	}
	stream, err := sb.Build()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
	defer cancel()
	err = stream.Run(ctx)
	if ctx.Err() != nil {
		return fmt.Errorf("%s did not end within %s: %w", path, runTimeout, errors.Join(ctx.Err(), err))
	}
	return err
}

func checkTable(t *testing.T, dir, name string, want ExpectedTable, sent []readback.Row) {
	t.Helper()
	var got *readback.Both
	var err error
	if want.NoDelta {
		require.NoDirExists(t, filepath.Join(dir, "delta", "_delta_log"), name)
		got = &readback.Both{}
		got.Iceberg, err = readback.ReadIceberg(t.Context(), dir)
	} else {
		got, err = readback.Check(t.Context(), dir)
	}
	require.NoError(t, err, name)
	require.Equal(t, want.Schema, got.Iceberg.Columns, "columns of %s", name)

	if want.Partitions != nil {
		require.ElementsMatch(t, want.Partitions, partitionsOf(got.Iceberg), "partitions of %s", name)
	}
	sides := map[string][]readback.Row{"Iceberg": got.Iceberg.Rows}
	if !want.NoDelta {
		sides["Delta"] = got.Delta.Rows
	}
	for side, rows := range sides {
		for column, sum := range want.Sums {
			require.Equal(t, sum, sumOf(t, rows, column), "sum of %s of %s in %s", column, name, side)
		}
		if want.Count != nil {
			require.Len(t, rows, *want.Count, "rows of %s in %s", name, side)
		}
	}
	if want.Commits != nil {
		require.Len(t, got.Iceberg.Table.Metadata().Snapshots(), *want.Commits, "snapshots of %s", name)
	}
	if want.Rows == nil {
		require.NotNil(t, want.Count, "%s: neither rows nor their count are expected", name)
		return
	}
	rows := sent
	if string(want.Rows) != `"input"` {
		var list []json.RawMessage
		require.NoError(t, json.Unmarshal(want.Rows, &list), "rows of %s", name)
		rows, err = readback.ParseRows(bytes.NewReader(bytes.Join(toBytes(list), []byte("\n"))))
		require.NoError(t, err)
	}
	rows, err = readback.Conform(got.Iceberg.Table.Schema(), rows)
	require.NoError(t, err, "expected rows of %s", name)
	if diff := readback.Difference(readback.Texts(rows), readback.Texts(got.Iceberg.Rows)); diff != "" {
		t.Fatalf("rows of %s in Iceberg:\n%s", name, diff)
	}
	if !want.NoDelta {
		if diff := readback.Difference(readback.Texts(rows), readback.Texts(got.Delta.Rows)); diff != "" {
			t.Fatalf("rows of %s in Delta:\n%s", name, diff)
		}
	}
}

// partitionsOf are the partitions of live files, each once.
func partitionsOf(table *readback.Iceberg) (out []string) {
	spec := table.Table.Spec()
	for _, f := range table.Entries {
		var fields []string
		for _, p := range spec.Fields() {
			text := "null"
			switch v := f.Partition()[p.FieldID].(type) {
			case nil:
			case string:
				text = strconv.Quote(v)
			default:
				text = fmt.Sprint(v)
			}
			fields = append(fields, p.Name+"="+text)
		}
		out = append(out, strings.Join(fields, ","))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func sumOf(t *testing.T, rows []readback.Row, column string) string {
	t.Helper()
	sum := new(big.Rat)
	for _, r := range rows {
		if v, ok := r[column].(json.Number); ok {
			n, ok := new(big.Rat).SetString(v.String())
			require.True(t, ok, "%s: %v", column, v)
			sum.Add(sum, n)
		}
	}
	if sum.IsInt() {
		return sum.Num().String()
	}
	return sum.FloatString(6)
}

// checkRefused compares what went down the error route, in any order.
func checkRefused(t *testing.T, path string, want []ExpectedRefusal) {
	t.Helper()
	data, err := os.ReadFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		require.NoError(t, err)
	}
	type refusal struct {
		Row, Error string
	}
	var got []refusal
	dec := json.NewDecoder(bytes.NewReader(data))
	for dec.More() {
		var r refusal
		require.NoError(t, dec.Decode(&r))
		got = append(got, r)
	}
	require.Len(t, got, len(want), "refused rows: %+v", got)
	for _, w := range want {
		at := slices.IndexFunc(got, func(r refusal) bool {
			return r.Row == w.Row && !slices.ContainsFunc(w.Error, func(part string) bool { return !strings.Contains(r.Error, part) })
		})
		require.GreaterOrEqual(t, at, 0, "no refusal of %s that says %q, only %+v", w.Row, w.Error, got)
		got = slices.Delete(got, at, at+1)
	}
}

// tablesOf are the tables of a warehouse, by their path below it.
func tablesOf(t *testing.T, warehouse string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(warehouse, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == warehouse {
			return nil // a run that failed before it made anything
		}
		if err != nil {
			return err
		}
		if e.IsDir() && (e.Name() == "iceberg" || e.Name() == "delta") {
			rel, err := filepath.Rel(warehouse, filepath.Dir(path))
			if err != nil {
				return err
			}
			if !slices.Contains(out, rel) {
				out = append(out, rel)
			}
			return filepath.SkipDir
		}
		return nil
	})
	require.NoError(t, err)
	return out
}

// sharedData is the path of a file that does not come with the project. The
// folder may be named by LAKEHOUSE_TEST_DATA.
func sharedData(t *testing.T, name string) string {
	t.Helper()
	folder := os.Getenv("LAKEHOUSE_TEST_DATA")
	if folder == "" {
		folder = filepath.Join("..", "..", "shared", "data")
	}
	path, err := filepath.Abs(filepath.Join(folder, name))
	require.NoError(t, err)
	if !exists(path) {
		t.Skipf("%s is not here: it does not come with the project (LAKEHOUSE_TEST_DATA names the folder that holds it)", name)
	}
	return path
}

func keys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	return out
}

func toBytes(list []json.RawMessage) [][]byte {
	out := make([][]byte, len(list))
	for i, m := range list {
		out[i] = m
	}
	return out
}

// logBuffer collects the log of concurrent writers.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
