package output

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/managed-lakehouse/managed-lakehouse/arrowconv"
	"github.com/managed-lakehouse/managed-lakehouse/commit"
)

// nowhere is a table whose files cost nothing, so that a benchmark sees the group
// commit and the conversion alone.
type nowhere struct {
	mu  sync.Mutex
	sch *arrow.Schema
}

func (n *nowhere) OpenTable(context.Context, []string) (tableStore, error) { return n, nil }
func (n *nowhere) Release(tableStore)                                      {}
func (n *nowhere) Close(context.Context) error                             { return nil }
func (n *nowhere) Places() commit.Places                                   { return commit.Places{} }

func (n *nowhere) Schema() *arrow.Schema {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.sch
}

func (n *nowhere) Begin(_ context.Context, want *arrow.Schema) (draft, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sch = want
	return &nowhereDraft{}, nil
}

type nowhereDraft struct {
	mu   sync.Mutex
	rows int64
}

func (d *nowhereDraft) Extend(context.Context, *arrow.Schema) error { return nil }
func (d *nowhereDraft) Abort(context.Context)                       {}

func (d *nowhereDraft) Write(_ context.Context, rec arrow.RecordBatch) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rows += rec.NumRows()
	return nil
}

func (d *nowhereDraft) Commit(context.Context, commit.Info) (commit.Result, error) {
	return commit.Result{Rows: d.rows}, nil
}

func BenchmarkGroupCommit(b *testing.B) {
	for _, rows := range []int{1, 1000} {
		b.Run(fmt.Sprintf("batches of %d", rows), func(b *testing.B) {
			cfg := groupConfig{Trigger: streamingConfig()}
			cfg.Trigger.IdleFloor = 100 * time.Millisecond
			cfg.Convert.Evolve = true
			g := newGroup(cfg, &nowhere{})
			src := newMessages(rows, arrowconv.JSON)
			for i := range rows {
				src.put(i, fmt.Appendf(nil, `{"id":%d,"user_id":%d,"event_type":"page_view","value":%d.25,"info":"some text that is not very long","ts":"2026-01-01T00:00:%02d.123456Z"}`, i, i*7, i, i%60))
			}
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			slots := make(chan struct{}, 256)
			for range b.N {
				slots <- struct{}{}
				wg.Go(func() {
					if f := g.write(context.Background(), []routed{into("a", src)}); f != nil {
						b.Error(f[0].err)
					}
					<-slots
				})
			}
			wg.Wait()
			b.StopTimer()
			b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "rows/s")
			require.NoError(b, g.close(context.Background()))
		})
	}
}
