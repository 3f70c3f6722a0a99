package output

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/managed-lakehouse/managed-lakehouse/arrowconv"
	"github.com/managed-lakehouse/managed-lakehouse/commit/datafile"
)

// chunk is what one write brought to one epoch. Its fields are guarded by the
// group's lock, except that src never changes.
type chunk struct {
	epoch    *epoch
	src      *messages
	rows     int64 // rows counted for it while pending
	bytes    int64
	plan     *arrowconv.Plan
	deferred bool // no records yet: they are made at the seal, under the final plan
	dropped  bool // its write was cancelled before the commit began
	errors   []arrowconv.RowError
	err      error // all of it is refused for this reason
}

// epoch is the rows that become one snapshot of one table. It fills, is sealed,
// is committed, and resolves.
//
// Guarded by the group's lock until the committer has taken it up, and then used
// by the committer alone, except for the fields that say otherwise.
type epoch struct {
	pending // what the trigger knows of it

	table  *tableState
	chunks []*chunk
	seen   *arrowconv.Observation // merged over the deferred chunks
	why    reason

	join     joiner
	encoding sync.WaitGroup // records that are being written by their writers

	// writing guards the draft while writers stream records into it.
	writing sync.Mutex
	draft   draft
	lost    error // the draft is of no use any more: write everything anew

	anew    bool // a chunk whose records are already joined or written was dropped
	started bool // the commit has begun: rows can no longer be left out
	done    chan struct{}
	err     error // set before done is closed: the commit was refused
}

func newEpoch(t *tableState) *epoch {
	e := &epoch{table: t, done: make(chan struct{})}
	e.owner = e
	return e
}

// live are the chunks that are to be committed.
func (e *epoch) live() (chunks []*chunk) {
	for _, c := range e.chunks {
		if !c.dropped && c.err == nil {
			chunks = append(chunks, c)
		}
	}
	return chunks
}

// begin gives the epoch's draft, begun with want if there is none yet.
func (e *epoch) begin(ctx context.Context, want *arrow.Schema) (draft, error) {
	e.writing.Lock()
	defer e.writing.Unlock()
	if e.lost != nil {
		return nil, e.lost
	}
	if e.draft == nil {
		d, err := e.table.store.Begin(ctx, want)
		if err != nil {
			return nil, err
		}
		e.draft = d
	}
	return e.draft, nil
}

// stream joins and writes records while the epoch is open or being sealed. A
// failure is kept, not returned: the commit writes everything anew.
func (e *epoch) stream(ctx context.Context, plan *arrowconv.Plan, recs []arrow.RecordBatch, mem memory.Allocator) error {
	rec, err := joined(recs, mem)
	if err == nil {
		var d draft
		if d, err = e.begin(ctx, plan.Schema()); err == nil {
			err = d.Write(ctx, rec)
		}
		rec.Release()
	}
	if err != nil {
		e.writing.Lock()
		if e.lost == nil {
			e.lost = err
		}
		e.writing.Unlock()
	}
	return err
}

// joiner gathers small records until they make up one of the batch size, so that
// Parquet is fed by records of that size and, on an unchanged schema, no more than
// one batch size is unencoded when an epoch is sealed. Records are never split,
// and those of different plans never joined.
type joiner struct{ batches []joinedBatch }

// joinedBatch is records of one plan that are to be written as one.
type joinedBatch struct {
	plan *arrowconv.Plan
	recs []arrow.RecordBatch
	rows int64
}

// add takes over a record.
func (j *joiner) add(plan *arrowconv.Plan, rec arrow.RecordBatch, size int) {
	if n := len(j.batches); n > 0 {
		if last := &j.batches[n-1]; last.plan == plan && last.rows+rec.NumRows() <= int64(size) {
			last.recs, last.rows = append(last.recs, rec), last.rows+rec.NumRows()
			return
		}
	}
	j.batches = append(j.batches, joinedBatch{plan, []arrow.RecordBatch{rec}, rec.NumRows()})
}

// full hands out the batches that nothing more will be joined to.
func (j *joiner) full(size int) (out []joinedBatch) {
	n := len(j.batches)
	if n > 0 && j.batches[n-1].rows < int64(size) {
		n--
	}
	out, j.batches = j.batches[:n:n], j.batches[n:]
	return out
}

// take hands out everything.
func (j *joiner) take() (out []joinedBatch) {
	out, j.batches = j.batches, nil
	return out
}

// rows is the number of rows held.
func (j *joiner) rows() (n int64) {
	for _, b := range j.batches {
		n += b.rows
	}
	return n
}

func (b joinedBatch) release() {
	for _, r := range b.recs {
		r.Release()
	}
}

// joined makes one record of several with the same schema, and takes them over.
func joined(recs []arrow.RecordBatch, mem memory.Allocator) (arrow.RecordBatch, error) {
	defer func() {
		for _, r := range recs {
			r.Release()
		}
	}()
	switch len(recs) {
	case 0:
		return nil, errors.New("no records to join")
	case 1:
		recs[0].Retain()
		return recs[0], nil
	}
	return datafile.Join(recs, mem)
}

// tableState is one table of one output.
type tableState struct {
	ident []string
	name  string // dotted
	store tableStore

	// Guarded by the group's lock:
	lane       lane
	open       *epoch
	queue      []*epoch        // sealed, in order; the first one may be being committed
	committing bool            // the committer runs
	plan       *arrowconv.Plan // what rows are converted under
	schema     *arrow.Schema   // the table's, as last planned on; nil while there is no table
	base       *arrowconv.Plan // made from schema
	lastUsed   time.Time
	users      int // writes between looking the table up and appending to it
}

// planFor is the plan of a table with that schema. The lock is held.
func (t *tableState) planFor(schema *arrow.Schema, opts arrowconv.Options) (*arrowconv.Plan, error) {
	if t.base != nil && !changed(t.schema, schema) {
		return t.base, nil
	}
	plan, err := arrowconv.NewPlan(schema, opts)
	if err != nil {
		return nil, err
	}
	t.schema, t.base = schema, plan
	return plan, nil
}

// changed tells whether a table's schema is another one than before.
func changed(before, now *arrow.Schema) bool {
	if before == nil || now == nil {
		return (before == nil) != (now == nil)
	}
	return before != now && !before.Equal(now)
}
