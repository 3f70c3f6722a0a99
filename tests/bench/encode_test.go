package bench

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/managed-lakehouse/managed-lakehouse/arrowconv"
	"github.com/managed-lakehouse/managed-lakehouse/commit/datafile"
	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore"
)

type lines [][]byte

func (l lines) Len() int                    { return len(l) }
func (l lines) Bytes(i int) ([]byte, bool)  { return l[i], true }
func (l lines) Structured(int) (any, error) { return nil, nil }

// events are n lines of a file that run.sh has made, as records of 10,000 rows.
func events(b *testing.B, name string, n int) (recs []arrow.RecordBatch, rows int64) {
	b.Helper()
	dir := os.Getenv("EVENTS_DIR")
	if dir == "" {
		b.Skip("EVENTS_DIR is not set: tests/bench/run.sh makes the events and runs this")
	}
	text, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(b, err)
	all := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	src := lines(all[:min(n, len(all))])
	// The types are those that inference gives; the comparison declares the same.
	plan, err := arrowconv.NewPlan(nil, arrowconv.Options{Evolve: true, InferTimestamps: true, MaxColumns: 1000, MaxDepth: 32})
	require.NoError(b, err)
	seen, err := plan.Convert(src, nil, arrowconv.ArrowTuning{BatchSize: 10_000}, memory.DefaultAllocator)
	require.NoError(b, err)
	plan, err = plan.Extend(seen.Unknown)
	require.NoError(b, err)
	chunk, err := plan.Convert(src, nil, arrowconv.ArrowTuning{BatchSize: 10_000}, memory.DefaultAllocator)
	require.NoError(b, err)
	require.Empty(b, chunk.Errors)
	return chunk.Records, int64(chunk.Rows)
}

// encode writes records into one Parquet file on local disk, sync included.
func encode(b *testing.B, name string, n int) {
	recs, rows := events(b, name, n)
	store, err := objstore.Open(b.Context(), objstore.Config{URL: b.TempDir()})
	require.NoError(b, err)
	var bytesOut int64
	b.ResetTimer()
	for i := range b.N {
		set := datafile.NewSet(store, recs[0].Schema(), nil, func(int) string { return fmt.Sprintf("t/delta/%d.parquet", i) }, datafile.Options{})
		for _, r := range recs {
			require.NoError(b, set.Write(b.Context(), r))
		}
		files, _, err := set.Close(b.Context())
		require.NoError(b, err)
		bytesOut = files[0].Size
	}
	b.ReportMetric(float64(b.N)*float64(rows)/b.Elapsed().Seconds()/1e6, "Mrows/s")
	b.ReportMetric(float64(bytesOut)/float64(rows), "B/row")
}

func BenchmarkParquetFlat(b *testing.B)   { encode(b, "flat.ndjson", 500_000) }
func BenchmarkParquetNested(b *testing.B) { encode(b, "nested.ndjson", 50_000) }
