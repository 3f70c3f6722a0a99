package output

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/managed-lakehouse/managed-lakehouse/arrowconv"
	"github.com/managed-lakehouse/managed-lakehouse/commit"
)

// fakeWarehouse is a warehouse in memory. Commits take as long as it is told, and
// fail when it is told. It keeps the rows of each commit by their column "id".
type fakeWarehouse struct {
	mu     sync.Mutex
	tables map[string]*fakeTable
	// Set before use:
	commitTakes func() time.Duration
	writeTakes  func() time.Duration
	openFails   func(table string) error
	writeFails  func(table string) error
	released    []string
	closed      bool
}

type fakeTable struct {
	w              *fakeWarehouse
	name           string
	mu             sync.Mutex
	sch            *arrow.Schema
	done           []fakeCommit
	fail           []error // of the next calls of Commit; nil ones succeed
	hang           chan struct{}
	onTry          func() // before the outcome of each commit
	begun, aborted int
	committing     bool
}

type fakeCommit struct {
	ids     []int64
	records []int64 // rows of each record written
	trigger string
	schema  *arrow.Schema
	values  map[int64]map[string]string // by id: column to text, NULLs left out
	at      time.Time
}

func newFakeWarehouse() *fakeWarehouse {
	return &fakeWarehouse{tables: map[string]*fakeTable{}}
}

func (w *fakeWarehouse) table(name string) *fakeTable {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.tables[name]
	if t == nil {
		t = &fakeTable{w: w, name: name}
		w.tables[name] = t
	}
	return t
}

func (w *fakeWarehouse) OpenTable(_ context.Context, ident []string) (tableStore, error) {
	name := strings.Join(ident, ".")
	if w.openFails != nil {
		if err := w.openFails(name); err != nil {
			return nil, err
		}
	}
	return w.table(name), nil
}

func (w *fakeWarehouse) Release(t tableStore) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.released = append(w.released, t.(*fakeTable).name)
}

func (w *fakeWarehouse) Close(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	return nil
}

func (t *fakeTable) Schema() *arrow.Schema {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sch
}

func (t *fakeTable) Places() commit.Places {
	return commit.Places{Iceberg: "file:///w/" + t.name + "/iceberg", Delta: "file:///w/" + t.name + "/delta"}
}

func (t *fakeTable) Begin(_ context.Context, want *arrow.Schema) (draft, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun++
	return &fakeDraft{t: t, schema: want, commit: fakeCommit{values: map[int64]map[string]string{}}}, nil
}

// commits are the commits made so far.
func (t *fakeTable) commits() []fakeCommit {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.done)
}

// ids are all rows committed so far, sorted.
func (t *fakeTable) ids() (out []int64) {
	for _, c := range t.commits() {
		out = append(out, c.ids...)
	}
	slices.Sort(out)
	return out
}

type fakeDraft struct {
	t      *fakeTable
	mu     sync.Mutex
	schema *arrow.Schema
	commit fakeCommit
	spent  bool
}

func (d *fakeDraft) Extend(_ context.Context, want *arrow.Schema) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.schema = want
	return nil
}

func (d *fakeDraft) Write(ctx context.Context, rec arrow.RecordBatch) error {
	if f := d.t.w.writeTakes; f != nil {
		if err := pause(ctx, f()); err != nil {
			return err
		}
	}
	if f := d.t.w.writeFails; f != nil {
		if err := f(d.t.name); err != nil {
			return fmt.Errorf("%w: %w", commit.ErrFilesLost, err)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.spent {
		return errors.New("write after the draft was spent")
	}
	d.commit.records = append(d.commit.records, rec.NumRows())
	at := rec.Schema().FieldIndices("id")
	if len(at) != 1 {
		return errors.New("record without id")
	}
	ids := rec.Column(at[0]).(*array.Int64)
	for i := range ids.Len() {
		id := ids.Value(i)
		row := map[string]string{}
		for k, f := range rec.Schema().Fields() {
			if col := rec.Column(k); col.IsValid(i) {
				row[f.Name] = col.ValueStr(i)
			}
		}
		d.commit.ids = append(d.commit.ids, id)
		d.commit.values[id] = row
	}
	return nil
}

func (d *fakeDraft) Commit(ctx context.Context, info commit.Info) (commit.Result, error) {
	t := d.t
	t.mu.Lock()
	if t.committing {
		t.mu.Unlock()
		return commit.Result{}, errors.New("two commits of one table at once")
	}
	t.committing = true
	onTry, hang := t.onTry, t.hang
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		t.committing = false
		t.mu.Unlock()
	}()
	if onTry != nil {
		onTry()
	}
	if f := t.w.commitTakes; f != nil {
		if err := pause(ctx, f()); err != nil {
			return commit.Result{}, err
		}
	}
	if hang != nil {
		select {
		case <-hang:
		case <-ctx.Done():
			return commit.Result{}, ctx.Err()
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.fail) > 0 {
		err := t.fail[0]
		t.fail = t.fail[1:]
		if err != nil {
			if definite(err) || errors.Is(err, commit.ErrSchemaChanged) || errors.Is(err, commit.ErrFilesLost) {
				d.spent = true
			}
			return commit.Result{}, err
		}
	}
	if d.spent {
		return commit.Result{}, errors.New("commit of a spent draft")
	}
	d.spent = true
	d.commit.trigger = info.Trigger
	d.commit.schema = d.schema
	d.commit.at = time.Now()
	t.sch = d.schema
	t.done = append(t.done, d.commit)
	return commit.Result{Rows: int64(len(d.commit.ids)), SnapshotID: int64(len(t.done)), Files: 1, DeltaVersion: -1}, nil
}

func (d *fakeDraft) Abort(context.Context) {
	d.t.mu.Lock()
	defer d.t.mu.Unlock()
	d.t.aborted++
	d.spent = true
}

// jsonRows are messages made of JSON text.
func jsonRows(rows ...string) *messages {
	m := newMessages(len(rows), arrowconv.JSON)
	for i, r := range rows {
		m.put(i, []byte(r))
	}
	return m
}

// ids are rows with the numbers from first on.
func idRows(first, n int) *messages {
	m := newMessages(n, arrowconv.JSON)
	for i := range n {
		m.put(i, fmt.Appendf(nil, `{"id":%d}`, first+i))
	}
	return m
}

// into routes rows to a table.
func into(table string, src *messages) routed {
	var bytes int64
	for _, r := range src.raw {
		bytes += heldBytes(int64(len(r)))
	}
	return routed{ident: []string{"ns", table}, src: src, bytes: bytes}
}

// from are the numbers first, first+1, ..., n of them.
func from(first, n int) (out []int64) {
	for i := range n {
		out = append(out, int64(first+i))
	}
	return out
}

func testGroup(t *testing.T, w warehouse, change func(*groupConfig)) *group {
	cfg := groupConfig{Trigger: streamingConfig()}
	cfg.Trigger.IdleFloor = time.Second
	cfg.Convert.Evolve = true
	if change != nil {
		change(&cfg)
	}
	g := newGroup(cfg, w)
	t.Cleanup(func() {
		if !g.closed {
			t.Error("the test left its group open")
		}
	})
	return g
}
