package commit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

	"github.com/managed-lakehouse/managed-lakehouse/commit/datafile"
	"github.com/managed-lakehouse/managed-lakehouse/commit/deltalog"
	"github.com/managed-lakehouse/managed-lakehouse/commit/icebergtable"
)

// CommitIDProperty is the snapshot summary key of a commit's own id, by which
// an outcome that was lost is looked up.
const CommitIDProperty = "managed-lakehouse.commit-id"

// TriggerProperty is the snapshot summary key of what caused the commit.
const TriggerProperty = "managed-lakehouse.trigger"

// Info is what a commit records beside its rows.
type Info struct {
	Trigger    string
	Properties map[string]string // more snapshot summary properties
}

// Timing is how long the phases of a commit took.
type Timing struct {
	Encode  time.Duration // CPU side: Arrow to Parquet, over all files
	Upload  time.Duration // finishing the data files, from the seal on
	Iceberg time.Duration
	Delta   time.Duration
}

// Result is what a commit did.
type Result struct {
	SnapshotID   int64
	Sequence     int64
	Rows         int64
	Files        int
	Bytes        int64
	DeltaVersion int64 // -1 without Delta
	DeltaLag     int   // Iceberg snapshots that Delta lacks
	Conflicts    int   // attempts lost to other writers
	Retries      int   // attempts after an outcome that was not known
	Timing       Timing
}

// Draft is a commit being prepared: the schema it wants, and the files written
// for it so far. Write may be called concurrently; the other methods may not,
// and not beside a Write.
type Draft struct {
	t  *Table
	id string

	base   *table.Table // the table the schema was planned on
	want   *arrow.Schema
	schema *iceberg.Schema // planned: what the files are written for
	set    *datafile.Set

	mu     sync.Mutex
	gen    int
	files  []*datafile.File
	encode time.Duration
	rows   int64
}

// Begin starts a draft whose rows have the schema want: fields that the table
// lacks are added by the commit. Where the table does not exist it is made now,
// empty: field ids are the catalog's to give. Otherwise Begin does no I/O.
func (t *Table) Begin(ctx context.Context, want *arrow.Schema) (*Draft, error) {
	d := &Draft{t: t, id: uuid.NewString()}
	if err := d.plan(ctx, want); err != nil {
		return nil, err
	}
	return d, nil
}

// Schema is the schema of the draft's files: the table's, with what the draft adds.
func (d *Draft) Schema() *arrow.Schema { return d.set.Schema() }

// Extend adds to the draft the fields of want that it lacks. Files written
// before stay: the new columns are NULL in them.
func (d *Draft) Extend(ctx context.Context, want *arrow.Schema) error {
	if covers(d.set.Schema().Fields(), want.Fields()) {
		return nil
	}
	if err := d.finish(ctx); err != nil {
		return err
	}
	return d.plan(ctx, want)
}

func (d *Draft) plan(ctx context.Context, want *arrow.Schema) error {
	t := d.t
	t.mu.Lock()
	base := t.cur
	t.mu.Unlock()
	if base == nil {
		t.commits.Lock()
		if t.cur == nil {
			if err := t.create(ctx, want); err != nil {
				t.commits.Unlock()
				return err
			}
		}
		base = t.cur
		t.commits.Unlock()
	}
	schema := base.Schema()
	files, err := arrowSchema(schema)
	if err != nil {
		return fmt.Errorf("table %s: %w", t, err)
	}
	if covers(files.Fields(), want.Fields()) {
		want = nil
	} else {
		if schema, err = evolve(base.NewTransaction(), want); err != nil {
			return &RefusedError{Table: t.ident, Err: fmt.Errorf("the schema cannot be evolved: %w", err)}
		}
		if files, err = arrowSchema(schema); err != nil {
			return fmt.Errorf("table %s: %w", t, err)
		}
	}
	if len(d.files) > 0 {
		if err := sameColumns(d.schema, schema); err != nil {
			return err
		}
	}
	root, ok := t.w.store.Key(dataLocation(base))
	if !ok {
		return &RefusedError{Table: t.ident, Err: fmt.Errorf("its data path %s lies outside of the warehouse %s", dataLocation(base), t.w.store.Root())}
	}
	parts, err := datafile.NewPartitioner(base.Spec(), schema)
	if err != nil {
		return &RefusedError{Table: t.ident, Err: err}
	}
	d.gen++
	gen := d.gen
	d.base, d.want, d.schema = base, want, schema
	d.set = datafile.NewSet(t.w.store, files, parts, func(n int) string {
		return fmt.Sprintf("%s/%s-%d-%d.parquet", root, d.id, gen, n)
	}, t.w.cfg.Files)
	return nil
}

// Write encodes rec and streams it to storage. Columns are matched by name; those
// that rec lacks are NULL. It may be called concurrently. Any error is
// [ErrFilesLost]: abort the draft.
func (d *Draft) Write(ctx context.Context, rec arrow.RecordBatch) error {
	if err := d.set.Write(ctx, rec); err != nil {
		return fmt.Errorf("table %s: %w: %w", d.t, ErrFilesLost, err)
	}
	d.mu.Lock()
	d.rows += rec.NumRows()
	d.mu.Unlock()
	return nil
}

// Rows is the number of rows written so far.
func (d *Draft) Rows() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rows
}

// finish makes the open files durable.
func (d *Draft) finish(ctx context.Context) error {
	files, encode, err := d.set.Close(ctx)
	d.encode += encode
	d.files = append(d.files, files...)
	if err != nil {
		return fmt.Errorf("table %s: %w: %w", d.t, ErrFilesLost, err)
	}
	return nil
}

// Abort drops the draft and its files. It must not be called after Commit.
func (d *Draft) Abort(ctx context.Context) {
	d.set.Abort(ctx)
	d.remove(ctx)
}

func (d *Draft) remove(ctx context.Context) {
	for _, f := range d.files {
		if err := datafile.Remove(ctx, d.t.w.store, f); err != nil {
			d.t.w.log.Warn("a data file of a dropped commit stays behind; orphan cleanup will find it", "table", d.t.String(), "error", err)
		}
	}
	d.files = nil
}

// Commit commits the draft's rows to both formats. A draft without rows commits
// nothing and returns a zero Result.
//
// It returns nil once the Iceberg snapshot is durable; [ErrSchemaChanged],
// [ErrFilesLost] or [*RefusedError] if nothing was committed and the draft is
// spent, its files removed; or another error if ctx ended before the outcome was
// known: the same draft may be committed again, and must not be aborted.
func (d *Draft) Commit(ctx context.Context, info Info) (Result, error) {
	start := time.Now()
	if err := d.finish(ctx); err != nil {
		d.remove(context.WithoutCancel(ctx))
		return Result{}, err
	}
	res := Result{DeltaVersion: -1}
	for _, f := range d.files {
		res.Rows += f.Rows
		res.Bytes += f.Size
		res.Files++
	}
	res.Timing.Encode, res.Timing.Upload = d.encode, time.Since(start)
	if res.Rows == 0 {
		return Result{DeltaVersion: -1}, nil
	}

	t := d.t
	t.commits.Lock()
	defer t.commits.Unlock()
	start = time.Now()
	known, err := d.commitIceberg(ctx, info, &res)
	res.Timing.Iceberg = time.Since(start)
	if err != nil {
		var refused *RefusedError
		if errors.As(err, &refused) || errors.Is(err, ErrSchemaChanged) {
			d.remove(context.WithoutCancel(ctx))
		}
		return res, err
	}
	start = time.Now()
	res.DeltaVersion, res.DeltaLag = d.commitDelta(ctx, known)
	res.Timing.Delta = time.Since(start)
	return res, nil
}

// commitIceberg is the conflict loop: from the same files, the transaction is
// built anew on the table's current state until it is committed, or known to be
// refused.
func (d *Draft) commitIceberg(ctx context.Context, info Info, res *Result) ([]deltalog.Appended, error) {
	t := d.t
	summary := iceberg.Properties{}
	for k, v := range info.Properties {
		summary[k] = v
	}
	summary[CommitIDProperty] = d.id
	summary[TriggerProperty] = info.Trigger

	base := t.cur
	for attempt := 0; ; attempt++ {
		next, added, err := d.attempt(ctx, base, summary)
		if err == nil {
			if err := t.adopt(next); err != nil {
				return nil, err
			}
			snap := next.CurrentSnapshot()
			res.SnapshotID, res.Sequence = snap.SnapshotID, snap.SequenceNumber
			return []deltalog.Appended{{SnapshotID: snap.SnapshotID, Files: added}}, nil
		}
		switch {
		case errors.Is(err, ErrSchemaChanged):
			return nil, t.reloadAfter(ctx, err)
		case icebergtable.IsConflict(err):
			res.Conflicts++
		case icebergtable.IsDefiniteRefusal(err):
			return nil, &RefusedError{Table: t.ident, Err: err}
		case errors.Is(err, errNotSent):
			res.Retries++
			t.w.log.Error("a commit cannot be prepared; its rows stay pending, and it is tried again", "table", t.String(), "commit", d.id, "error", err)
		default:
			res.Retries++
			t.w.log.Warn("the outcome of a commit is not known; looking for it in the table", "table", t.String(), "commit", d.id, "error", err)
		}
		for tries := 0; ; tries++ {
			if err := pause(ctx, attempt+tries); err != nil {
				return nil, fmt.Errorf("table %s: commit %s: %w", t, d.id, err)
			}
			now, err := t.load(ctx)
			if err == nil && now == nil {
				return nil, &RefusedError{Table: t.ident, Err: errors.New("the table was dropped while rows were committed to it")}
			}
			if err != nil {
				t.w.log.Warn("the table cannot be loaded; trying again", "table", t.String(), "error", err)
				continue
			}
			base = now
			break
		}
		if snap := findCommit(base, d.id); snap != nil {
			if err := t.adopt(base); err != nil {
				return nil, err
			}
			res.SnapshotID, res.Sequence = snap.SnapshotID, snap.SequenceNumber
			return nil, nil
		}
	}
}

// errNotSent marks a failure before anything was sent to the catalog, such as a
// manifest list that cannot be read.
var errNotSent = errors.New("nothing was sent to the catalog")

// attempt builds and commits one transaction on base.
func (d *Draft) attempt(ctx context.Context, base *table.Table, summary iceberg.Properties) (*table.Table, []iceberg.DataFile, error) {
	txn := base.NewTransaction()
	schema := base.Schema()
	if d.want != nil {
		var err error
		if schema, err = evolve(txn, d.want); err != nil {
			return nil, nil, fmt.Errorf("%w: %w", ErrSchemaChanged, err)
		}
	}
	if err := sameColumns(d.schema, schema); err != nil {
		return nil, nil, err
	}
	if was, spec := d.base.Spec(), base.Spec(); was.ID() != spec.ID() {
		return nil, nil, fmt.Errorf("%w: it is partitioned by specification %d now, the files were written for %d", ErrSchemaChanged, spec.ID(), was.ID())
	}
	added := make([]iceberg.DataFile, len(d.files))
	for i, f := range d.files {
		df, err := f.DataFile(d.t.w.store.Location(f.Key), d.schema, base.Spec(), base.Properties(), base.Metadata().Version())
		if err != nil {
			return nil, nil, &RefusedError{Table: d.t.ident, Err: err}
		}
		added[i] = df
	}
	if err := txn.AddDataFiles(ctx, added, summary, table.WithoutDuplicateCheck(), table.WithoutAutoNameMapping()); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errNotSent, err)
	}
	// The loop is ours: the library's own replay would commit these files under a
	// schema they were not compared with.
	next, err := txn.Commit(icebergtable.WithCommit(ctx, icebergtable.CommitOptions{}))
	return next, added, err
}

// reloadAfter makes the table's new schema known to those who will convert again.
func (t *Table) reloadAfter(ctx context.Context, cause error) error {
	cur, err := t.load(ctx)
	if err != nil {
		return errors.Join(cause, err)
	}
	if cur != nil {
		if err := t.adopt(cur); err != nil {
			return errors.Join(cause, err)
		}
	}
	return cause
}

// commitDelta projects the new snapshot. A failure is tried once more and then
// told, not returned: the rows are durable in Iceberg.
func (d *Draft) commitDelta(ctx context.Context, known []deltalog.Appended) (version int64, lag int) {
	t := d.t
	var err error
	for range 2 {
		if version, lag, err = t.project(ctx, known...); err == nil {
			return version, lag
		}
	}
	t.w.log.Warn("the Delta table could not be written; its rows are safe in Iceberg, and later commits bring it up",
		"table", t.String(), "lag", lag, "error", err)
	return version, lag
}

// findCommit looks for the snapshot that carries a commit id.
func findCommit(t *table.Table, id string) *table.Snapshot {
	snaps := t.Metadata().Snapshots()
	for i := len(snaps) - 1; i >= 0; i-- {
		if s := snaps[i].Summary; s != nil && s.Properties[CommitIDProperty] == id {
			return &snaps[i]
		}
	}
	return nil
}

// pause waits before another attempt: jittered, doubling, 30 s at most.
func pause(ctx context.Context, attempt int) error {
	top := min(30*time.Second, 10*time.Millisecond<<min(attempt, 12))
	timer := time.NewTimer(top/2 + rand.N(top/2+1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
