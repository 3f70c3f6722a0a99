package output

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/managed-lakehouse/managed-lakehouse/arrowconv"
	"github.com/managed-lakehouse/managed-lakehouse/backpressure"
	"github.com/managed-lakehouse/managed-lakehouse/commit"
)

// groupConfig is what a group commit depends on.
type groupConfig struct {
	Trigger triggerConfig
	Convert arrowconv.Options
	// Count says whether a table may be written to by this output; it is asked at
	// a table's first row. nil allows all.
	Count func(table string) error
	Log   *slog.Logger
	Meter *meter
	// Grace is how long a cancelled write waits for a commit that has begun.
	Grace time.Duration
	// Forget is how long a table may be quiet before its state is released.
	Forget time.Duration
}

// group is the group commit of one output: many writes at once append rows to
// the open epochs of tables; each epoch becomes one commit; each write waits
// until all of its rows are in tables, or known to be refused.
//
// Locking: mu guards the trigger and the membership of epochs. Conversion,
// encoding and commits run outside of it.
type group struct {
	cfg     groupConfig
	store   warehouse
	mem     memory.Allocator
	tracker backpressure.Tracker
	convert chan struct{} // slots for conversion: more than the processors bring nothing

	loads chan struct{} // slots for loading tables from the catalog

	ctx    context.Context // ends with Close
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	trigger  *trigger
	admitted map[*inflight]chan struct{}
	tables   map[string]*tableState
	opening  map[string]*opening
	timer    *time.Timer
	wakeAt   time.Time
	swept    time.Time
	totals   totals
	touched  map[string]commit.Places // every table that was committed to
	closed   bool
	warned   bool // of large batches

	committers sync.WaitGroup
}

// totals are what the run summary counts.
type totals struct {
	commits, rows, refused int64
}

// maxLoads bounds how many tables are loaded at once: the first batch of a fan-out
// may name hundreds.
const maxLoads = 16

// openedFor is the outcome of opening the table of a part.
type openedFor struct {
	part  routed
	table *tableState
	why   string
	err   error
}

// routed are the rows of one write for one table.
type routed struct {
	ident []string
	src   *messages
	bytes int64
}

func newGroup(cfg groupConfig, store warehouse) *group {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Grace == 0 {
		cfg.Grace = 30 * time.Second
	}
	if cfg.Forget == 0 {
		cfg.Forget = 10 * time.Minute
	}
	g := &group{
		cfg:      cfg,
		store:    store,
		mem:      memory.NewGoAllocator(),
		convert:  make(chan struct{}, runtime.GOMAXPROCS(0)),
		loads:    make(chan struct{}, maxLoads),
		trigger:  newTrigger(cfg.Trigger),
		admitted: map[*inflight]chan struct{}{},
		tables:   map[string]*tableState{},
		opening:  map[string]*opening{},
		touched:  map[string]commit.Places{},
		swept:    time.Now(),
	}
	g.ctx, g.cancel = context.WithCancelCause(context.Background())
	g.timer = time.AfterFunc(time.Hour, g.wake)
	g.timer.Stop()
	return g
}

// tuning is what the profile asks of the append path, read at each append.
func (g *group) tuning() arrowconv.ArrowTuning {
	return arrowconv.ArrowTuning{BatchSize: g.tracker.Profile().BatchSize}
}

// write puts the rows of one batch into their tables and returns when each is
// committed or known not to be. Failures are those rows that are in no table;
// every other row is durable.
func (g *group) write(ctx context.Context, parts []routed) (failures []failure) {
	var need int64
	for _, p := range parts {
		need += p.bytes
	}
	w := &inflight{}
	if err := g.enter(ctx, w, need); err != nil {
		for _, p := range parts {
			failures = append(failures, allOf(p.src, "", err)...)
		}
		return failures
	}
	defer g.leave(w)
	arrived := time.Now()

	var chunks []*chunk
	put := func(t *tableState, p routed) {
		c, failed := g.append(ctx, w, t, p, arrived)
		failures = append(failures, failed...)
		if c != nil {
			chunks = append(chunks, c)
		}
	}
	// Tables that are open come first: one that cannot be opened now must not
	// hold up the rows of others.
	var later []routed
	for _, p := range parts {
		if t := g.use(p.ident); t != nil {
			put(t, p)
		} else {
			later = append(later, p)
		}
	}
	if len(later) > 0 {
		g.shift(w, stalled)
		opened := make(chan openedFor, len(later))
		for _, p := range later {
			// In the order of the rows: which table is one too many is no race.
			if err := g.count(p.ident); err != nil {
				opened <- openedFor{p, nil, "tier", err}
				continue
			}
			go func() {
				t, why, err := g.open(ctx, p.ident)
				opened <- openedFor{p, t, why, err}
			}()
		}
		for range later {
			o := <-opened
			g.shift(w, working)
			if o.err != nil {
				failures = append(failures, g.refuse(o.part.ident, allOf(o.part.src, o.why, o.err))...)
			} else {
				put(o.table, o.part)
			}
			g.shift(w, stalled)
		}
	}
	g.shift(w, waiting)
	for _, c := range chunks {
		failures = append(failures, g.await(ctx, w, c)...)
	}
	return failures
}

// allOf fails every message of src.
func allOf(src *messages, reason string, err error) []failure {
	out := make([]failure, 0, len(src.index))
	for _, i := range src.index {
		out = append(out, failure{i, reason, err})
	}
	return out
}

// enter takes a slot and waits for room in the memory budget.
func (g *group) enter(ctx context.Context, w *inflight, need int64) error {
	g.mu.Lock()
	g.trigger.arrive(time.Now(), w)
	if g.trigger.admit(w, need) {
		g.rearm()
		g.mu.Unlock()
		return nil
	}
	room := make(chan struct{})
	g.admitted[w] = room
	g.warnOfSlots(need)
	g.decide()
	g.mu.Unlock()
	select {
	case <-room:
		return nil
	case <-ctx.Done():
	}
	g.leave(w)
	return errors.Join(errStopped, context.Cause(ctx))
}

// warnOfSlots tells, once, of batches so large that those which wait for room, one in
// each write slot, take much more memory than the budget that they wait for. Benthos
// hands a batch to every slot; only fewer slots, or smaller batches, bound it.
func (g *group) warnOfSlots(need int64) {
	t := g.cfg.Trigger
	held := need * int64(t.Slots)
	if g.warned || held <= 4*t.Budget {
		return
	}
	g.warned = true
	g.cfg.Log.Warn("batches are large: those that wait for room may take much more than memory_limit, since every one of max_in_flight write slots can hold one; lower max_in_flight, or make smaller batches at the input",
		"batch_bytes", need, "max_in_flight", t.Slots, "memory_limit", t.Budget, "max_in_flight_that_fits", max(4*t.Budget/need, 1))
}

// leave gives back the slot and the room.
func (g *group) leave(w *inflight) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.admitted, w)
	for _, next := range g.trigger.leave(w) {
		close(g.admitted[next])
		delete(g.admitted, next)
	}
	g.decide()
}

func (g *group) shift(w *inflight, p phase) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.trigger.enter(w, p)
	if p != working {
		g.decide()
	}
}

// count asks whether the output may write to a table that is new to it.
func (g *group) count(ident []string) error {
	if g.cfg.Count == nil {
		return nil
	}
	return g.cfg.Count(strings.Join(ident, "."))
}

// use looks up an open table, and marks it as in use until release.
func (g *group) use(ident []string) *tableState {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.tables[strings.Join(ident, ".")]
	if t != nil {
		t.users++
	}
	return t
}

// append converts rows and adds them to the table's open epoch. Rows refused at
// once are returned; the chunk is nil where nothing is left to commit.
func (g *group) append(ctx context.Context, w *inflight, t *tableState, p routed, arrived time.Time) (*chunk, []failure) {
	defer func() {
		g.mu.Lock()
		t.users--
		g.mu.Unlock()
	}()
	var plan *arrowconv.Plan
	var out *arrowconv.Chunk
	var err error
	for {
		g.mu.Lock()
		newest := t.plan
		g.mu.Unlock()
		// Fields unknown a moment ago may stand in the plan that a seal has made
		// since: then the rows need not wait for another one.
		if plan == newest {
			break
		}
		plan = newest
		g.convert <- struct{}{}
		out, err = plan.Convert(p.src, nil, g.tuning(), g.mem)
		<-g.convert
		if err != nil {
			return nil, g.refuse(t.ident, allOf(p.src, "conversion", fmt.Errorf("table %s: %w", t.name, err)))
		}
		g.logRenames(t, out.Renamed)
		if out.Unknown == nil {
			break
		}
	}
	if out.Rows == 0 {
		return nil, g.refuse(t.ident, rowErrors(p.src, out.Errors))
	}
	c := &chunk{src: p.src, plan: plan, rows: int64(out.Rows), bytes: p.bytes, errors: out.Errors}

	g.mu.Lock()
	e := t.open
	if e == nil {
		e = newEpoch(t)
		t.open = e
	}
	c.epoch = e
	e.chunks = append(e.chunks, c)
	g.trigger.append(w, &t.lane, &e.pending, c.rows, c.bytes, arrived)
	t.lastUsed = arrived
	var full []joinedBatch
	if out.Unknown != nil {
		c.deferred = true
		if e.seen == nil {
			e.seen = out.Unknown
		} else {
			e.seen.Merge(out.Unknown)
		}
	} else {
		size := g.tuning().BatchSize
		for _, rec := range out.Records {
			e.join.add(plan, rec, size)
		}
		// Where the table does not exist, its types are decided at the seal.
		if t.schema != nil {
			full = e.join.full(size)
		}
	}
	e.encoding.Add(len(full))
	g.decide()
	g.mu.Unlock()

	g.encode(ctx, e, full)
	return c, nil
}

// encode streams joined records to storage on behalf of the epoch. The write waits
// for it, which is what holds a fast source to the speed of storage; but a write
// that is cancelled need not: the epoch goes on.
func (g *group) encode(ctx context.Context, e *epoch, batches []joinedBatch) {
	if len(batches) == 0 {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, b := range batches {
			if err := e.stream(g.ctx, b.plan, b.recs, g.mem); err != nil {
				g.cfg.Log.Warn("a data file could not be written; the commit writes its rows anew", "table", e.table.name, "error", err)
			}
			e.encoding.Done()
		}
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// await waits for a chunk's epoch and tells which of its messages failed.
func (g *group) await(ctx context.Context, w *inflight, c *chunk) []failure {
	select {
	case <-c.epoch.done:
	case <-ctx.Done():
		if g.drop(w, c) {
			return allOf(c.src, "", errors.Join(errStopped, context.Cause(ctx)))
		}
		// The commit has begun: its rows may be in the table. It is given time to
		// end, because a row that is committed must not be reported as failed.
		grace, end := context.WithTimeout(context.WithoutCancel(ctx), g.cfg.Grace)
		defer end()
		select {
		case <-c.epoch.done:
		case <-grace.Done():
			return allOf(c.src, "", fmt.Errorf("table %s: the pipeline was stopped while a commit was under way, and its outcome was not known after another %v", c.epoch.table.name, g.cfg.Grace))
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case c.epoch.err != nil:
		return g.refuseLocked(c.epoch.table.ident, allOf(c.src, "commit", c.epoch.err))
	case c.err != nil:
		return g.refuseLocked(c.epoch.table.ident, allOf(c.src, "schema", c.err))
	default:
		return g.refuseLocked(c.epoch.table.ident, rowErrors(c.src, c.errors))
	}
}

// rowErrors are the failures of single rows. A message that holds several rows
// fails as a whole, with the first error.
func rowErrors(src *messages, errs []arrowconv.RowError) []failure {
	out := make([]failure, 0, len(errs))
	for i := range errs {
		out = append(out, failure{src.index[errs[i].Message], fmt.Sprint(errs[i].Reason), &errs[i]})
	}
	return out
}

// refuse counts refused rows.
func (g *group) refuse(ident []string, failures []failure) []failure {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refuseLocked(ident, failures)
}

func (g *group) refuseLocked(ident []string, failures []failure) []failure {
	for _, f := range failures {
		if f.reason != "" {
			g.totals.refused++
			g.cfg.Meter.refused(strings.Join(ident, "."), f.reason, 1)
		}
	}
	return failures
}

// drop takes a cancelled write's rows out of their epoch, unless its commit has
// begun or is over.
func (g *group) drop(w *inflight, c *chunk) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := c.epoch
	select {
	case <-e.done:
		return false
	default:
	}
	if e.started {
		return false
	}
	c.dropped = true
	if !c.deferred {
		e.anew = true // its records are joined or written already
	}
	g.trigger.drop(w, &e.pending, c.rows, c.bytes)
	if t := e.table; t.open == e && len(e.live()) == 0 {
		g.trigger.seal(time.Now(), &e.pending)
		g.take(e, byDrain)
	}
	return true
}

// drain seals what is pending, now and from now on.
func (g *group) drain() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.trigger.drain()
	g.decide()
}

// wake is the timer's call.
func (g *group) wake() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wakeAt = time.Time{}
	g.decide()
}

// decide asks the trigger and carries out what it says. The lock is held.
func (g *group) decide() {
	if g.closed {
		return
	}
	for _, s := range g.trigger.decide(time.Now()) {
		g.take(s.epoch.owner, s.why)
	}
	g.cfg.Meter.pending(g.trigger.rows, g.trigger.bytes)
	g.rearm()
}

// rearm sets the timer for the trigger's next question.
func (g *group) rearm() {
	now := time.Now()
	at, ok := g.trigger.next(now)
	if !ok {
		if !g.wakeAt.IsZero() {
			g.timer.Stop()
			g.wakeAt = time.Time{}
		}
		return
	}
	if g.wakeAt.IsZero() || at.Before(g.wakeAt) {
		g.wakeAt = at
		g.timer.Reset(max(at.Sub(now), 0))
	}
	// A timer that rings too early asks again; moving it at every arrival would
	// cost more.
}

// take hands a sealed epoch to its table's committer. The lock is held.
func (g *group) take(e *epoch, why reason) {
	t := e.table
	e.why = why
	if t.open == e {
		t.open = nil
	}
	t.queue = append(t.queue, e)
	if !t.committing {
		t.committing = true
		g.committers.Go(func() { g.commitQueue(t) })
	}
}

// sweep forgets tables that have been quiet for long. The lock is held.
func (g *group) sweep(now time.Time) {
	if now.Sub(g.swept) < g.cfg.Forget/10 {
		return
	}
	g.swept = now
	for name, t := range g.tables {
		if t.open == nil && len(t.queue) == 0 && t.users == 0 && now.Sub(t.lastUsed) >= g.cfg.Forget {
			delete(g.tables, name)
			g.store.Release(t.store)
		}
	}
}

// profile is the present backpressure profile.
func (g *group) profile() backpressure.Profile { return g.tracker.Profile() }

// close ends the group. Every write has returned; commits that are still under way
// (those of writes cancelled past the grace) are cut off.
func (g *group) close(ctx context.Context) error {
	g.mu.Lock()
	g.closed = true
	g.timer.Stop()
	g.mu.Unlock()
	g.cancel(errStopped)
	g.committers.Wait()
	return g.store.Close(ctx)
}

// backoff is the pause before the n-th new attempt: doubling from 50 ms to 30 s,
// jittered so that many tables do not knock at once.
func backoff(attempt int) time.Duration {
	top := min(30*time.Second, 50*time.Millisecond<<min(attempt, 16))
	return top/2 + rand.N(top/2)
}

// places tells where the tables lie that were committed to.
func (g *group) places() map[string]commit.Places {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.touched)
}
