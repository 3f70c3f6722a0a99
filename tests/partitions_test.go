package tests

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/managed-lakehouse/managed-lakehouse/tests/internal/readback"
)

// A commit over thousands of partitions: all rows in one snapshot, a file for each
// day, and few files open at a time.
func TestManyPartitionsInOneCommit(t *testing.T) {
	t.Parallel()
	const rows, days = 100_000, 5_000
	warehouse := filepath.Join(t.TempDir(), "warehouse")
	sb := service.NewStreamBuilder()
	log := &logBuffer{}
	sb.SetLogger(slog.New(slog.NewTextHandler(log, nil)))
	require.NoError(t, sb.SetYAML(fmt.Sprintf(`
output:
  managed_lakehouse:
    warehouse: %s
    table: events
    schema: [ { name: ts, type: timestamptz, unit: s } ]
    partition_by: [ day(ts) ]
    streaming: { enabled: true, idle: 500ms, row_limit: %d }
`, warehouse, rows)))
	produce, err := sb.AddBatchProducerFunc()
	require.NoError(t, err)
	stream, err := sb.Build()
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- stream.Run(context.Background()) }()

	var batch service.MessageBatch
	for i := range rows {
		// Days before 1970 as well, and neighbours are far apart.
		day := int64(i*7919%days) - days/2
		batch = append(batch, service.NewMessage(fmt.Appendf(nil, `{"id":%d,"ts":%d,"name":"row %d"}`, i, day*86400+int64(i%86400), i)))
	}
	var most atomic.Int64
	watching, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		for watching.Err() == nil {
			most.Store(max(most.Load(), int64(openBelow(warehouse))))
			time.Sleep(2 * time.Millisecond)
		}
	}()
	begin := time.Now()
	require.NoError(t, produce(t.Context(), batch), "%s", log)
	t.Logf("committed after %v, at most %d files open", time.Since(begin), most.Load())
	stop()
	require.NoError(t, stream.StopWithin(runTimeout))
	require.NoError(t, <-ended)
	begin = time.Now()
	got, err := readback.Check(t.Context(), filepath.Join(warehouse, "default", "events"))
	require.NoError(t, err)
	t.Logf("read back after %v", time.Since(begin))
	require.Len(t, got.Iceberg.Table.Metadata().Snapshots(), 1)
	require.Len(t, got.Iceberg.Rows, rows)
	require.Len(t, got.Delta.Rows, rows)
	require.Len(t, got.Iceberg.Files, days)
	require.Len(t, partitionsOf(got.Iceberg), days, "a file is a partition")
	require.LessOrEqual(t, most.Load(), int64(runtime.GOMAXPROCS(0)+8), "files open at a time: one for each processor, and the store's own")
}

// openBelow is the number of files below dir that this process has open, 0 where the
// system does not tell.
func openBelow(dir string) (n int) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name())); err == nil && strings.HasPrefix(to, dir) {
			n++
		}
	}
	return n
}
