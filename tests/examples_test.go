package tests

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/managed-lakehouse/managed-lakehouse/tests/internal/readback"
)

const examples = "../config/examples"

func TestExamplesLint(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(examples, "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	linter := service.GlobalEnvironment().FullConfigSchema("", "").NewStreamConfigLinter()
	for _, f := range files {
		data, err := os.ReadFile(f)
		require.NoError(t, err)
		lints, err := linter.LintYAML(data)
		require.NoError(t, err, f)
		require.Empty(t, lints, f)
	}
}

// The quickstart, with fewer events and more commits for them.
func TestQuickstartExample(t *testing.T) {
	t.Parallel()
	const rows = 20_000
	warehouse := filepath.Join(t.TempDir(), "lakehouse")
	conf := example(t, "quickstart.yaml", map[string]string{
		"count: 250000":           fmt.Sprintf("count: %d", rows),
		"warehouse: ./lakehouse":  "warehouse: " + warehouse,
		"      enabled: true\n":   "      enabled: true\n      row_limit: 5000\n",
		"    batch_size: 5000\n":  "    batch_size: 1000\n",
		"shutdown_timeout: 60s\n": "",
	})
	path := filepath.Join(t.TempDir(), "quickstart.yaml")
	require.NoError(t, os.WriteFile(path, []byte(conf), 0o644))
	log := &logBuffer{}
	require.NoError(t, runPipeline(t, log, path, nil), "%s", log)

	got, err := readback.Check(t.Context(), filepath.Join(warehouse, "web", "events"))
	require.NoError(t, err)
	require.Len(t, got.Delta.Rows, rows)
	require.Greater(t, len(got.Iceberg.Table.Metadata().Snapshots()), 1)
	ids := map[any]bool{}
	for _, r := range got.Delta.Rows {
		ids[r["event_id"]] = true
	}
	require.Len(t, ids, rows, "no event is lost or doubled")
}

func TestFileExample(t *testing.T) {
	t.Parallel()
	scratch := t.TempDir()
	log := &logBuffer{}
	err := runPipeline(t, log, filepath.Join(examples, "file-ndjson.yaml"), map[string]string{
		"INPUT_FILE": "cases/nested/input.ndjson", "WAREHOUSE": scratch, "TABLE": "people",
		"REFUSED_FILE": filepath.Join(scratch, "refused.ndjson"),
	})
	require.NoError(t, err, "%s", log)
	got, err := readback.Check(t.Context(), filepath.Join(scratch, "default", "people"))
	require.NoError(t, err)
	require.Len(t, got.Delta.Rows, 5)
}

// Rows that do not fit are in the dead letters with path and reason, the others in
// the table.
func TestDeadLetterExample(t *testing.T) {
	t.Parallel()
	scratch := t.TempDir()
	input, letters := filepath.Join(scratch, "orders.ndjson"), filepath.Join(scratch, "dead-letters.ndjson")
	require.NoError(t, os.WriteFile(input, []byte(`{"id":1,"placed_at":1706918400123,"items":[{"sku":"a","price":"9.99"}]}
{"id":2,"items":[{"price":1},{"price":"abc"}]}
{"placed_at":0}
{"id":4,"new":"é"}
no json
`), 0o644))
	log := &logBuffer{}
	err := runPipeline(t, log, filepath.Join(examples, "dead-letter.yaml"), map[string]string{
		"INPUT_FILE": input, "WAREHOUSE": scratch, "DEAD_LETTERS": letters,
	})
	require.NoError(t, err, "%s", log)
	got, err := readback.Check(t.Context(), filepath.Join(scratch, "default", "orders"))
	require.NoError(t, err)
	require.Equal(t, []string{
		`{"id":1,"items":[{"price":"9.99","sku":"a"}],"placed_at":"2024-02-03T00:00:00.123000Z"}`,
		`{"id":4,"new":"é"}`,
	}, readback.Texts(got.Delta.Rows))

	f, err := os.Open(letters)
	require.NoError(t, err)
	defer f.Close()
	rows, err := readback.ParseRows(f)
	require.NoError(t, err)
	require.Len(t, rows, 3)
	byRow := map[any]readback.Row{}
	for _, r := range rows {
		byRow[r["row"]] = r
	}
	bad := byRow[`{"id":2,"items":[{"price":1},{"price":"abc"}]}`]
	require.Equal(t, "items[1].price", bad["path"])
	require.Contains(t, bad["reason"], `expected decimal(10,2), got "abc"`)
	require.Equal(t, "id", byRow[`{"placed_at":0}`]["path"])
	require.Empty(t, byRow["no json"]["path"], "%v", byRow["no json"])
	require.NotEmpty(t, byRow["no json"]["reason"])
}

// Rows by HTTP: each request is answered when its rows are in the table, whether
// one comes alone or many at once; a row that does not fit is the client's to know.
func TestHTTPExample(t *testing.T) {
	t.Parallel()
	scratch := t.TempDir()
	address := freeAddress(t)
	log := &logBuffer{}
	conf := example(t, "http-server.yaml", nil)
	sb := service.NewStreamBuilder()
	sb.SetEnvVarLookupFunc(func(name string) (string, bool) {
		v, ok := map[string]string{"HTTP_ADDRESS": address, "WAREHOUSE": scratch}[name]
		return v, ok
	})
	sb.SetLogger(slog.New(slog.NewTextHandler(log, nil)))
	require.NoError(t, sb.SetYAML(conf))
	stream, err := sb.Build()
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- stream.Run(context.Background()) }()

	post := func(body string) (int, string) {
		resp, err := http.Post("http://"+address+"/rows", "application/x-ndjson", strings.NewReader(body))
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			return 0, err.Error()
		}
		return resp.StatusCode, string(text)
	}
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}, 10*time.Second, 20*time.Millisecond, "%s", log)

	status, text := post("{\"id\":1,\"s\":\"a\"}\n{\"id\":2,\"s\":\"b\"}\n")
	require.Equal(t, http.StatusOK, status, text)
	rows := func() int {
		got, err := readback.Check(t.Context(), filepath.Join(scratch, "default", "events"))
		require.NoError(t, err)
		return len(got.Delta.Rows)
	}
	require.Equal(t, 2, rows(), "the answer came after the commit")

	status, text = post(`{"id":"three"}`)
	require.Equal(t, http.StatusOK, status, text)
	require.Contains(t, text, "id: expected long")
	require.Equal(t, 2, rows())

	var wg sync.WaitGroup
	for client := range 4 {
		wg.Go(func() {
			for i := range 10 {
				if status, text := post(fmt.Sprintf(`{"id":%d,"s":"x"}`, 100+client*10+i)); status != http.StatusOK {
					t.Errorf("request %d of client %d: %d %s", i, client, status, text)
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, 42, rows())

	ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
	defer cancel()
	require.NoError(t, stream.Stop(ctx), "%s", log)
	require.NoError(t, <-ended)
}

// example is an example with some of its text replaced; each text must be there.
func example(t *testing.T, name string, replace map[string]string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(examples, name))
	require.NoError(t, err)
	for from, to := range replace {
		require.True(t, bytes.Contains(data, []byte(from)), "%s no longer holds %q", name, from)
		data = bytes.ReplaceAll(data, []byte(from), []byte(to))
	}
	return string(data)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}
