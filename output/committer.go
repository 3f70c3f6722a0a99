package output

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/managed-lakehouse/managed-lakehouse/arrowconv"
	"github.com/managed-lakehouse/managed-lakehouse/commit"
)

// commitQueue is a table's committer: it commits sealed epochs in order, and ends
// when there are none left.
func (g *group) commitQueue(t *tableState) {
	for {
		g.mu.Lock()
		if len(t.queue) == 0 {
			t.committing = false
			g.sweep(time.Now())
			g.mu.Unlock()
			return
		}
		e := t.queue[0]
		g.mu.Unlock()
		res, err := g.commitEpoch(e)
		if err != nil && !e.started {
			e.abort(g.ctx)
		}
		g.resolve(e, res, err)
	}
}

// commitEpoch tries until the epoch is committed, is known to be refused, has
// nothing left to commit, or the group ends. A failure that may pass is never
// given to the writes: they would send rows again that may be in the table.
func (g *group) commitEpoch(e *epoch) (commit.Result, error) {
	e.encoding.Wait()
	defer func() {
		for _, b := range e.join.take() {
			b.release()
		}
	}()
	for attempt := 0; ; attempt++ {
		res, err := g.tryCommit(e)
		switch {
		case err == nil, definite(err):
			return res, err
		case g.ctx.Err() != nil:
			return res, errors.Join(errStopped, err)
		}
		g.cfg.Meter.retry(e.table.name)
		wait := backoff(attempt)
		if errors.Is(err, commit.ErrSchemaChanged) {
			g.cfg.Log.Info("another writer changed the table's schema; the rows are converted anew", "table", e.table.name)
			wait = backoff(min(attempt, 2))
		} else {
			g.cfg.Log.Error("the commit did not succeed; its rows stay pending, and it is tried again",
				"table", e.table.name, "again_in", wait.Round(time.Millisecond).String(), "error", err)
		}
		if pause(g.ctx, wait) != nil {
			return res, errors.Join(errStopped, err)
		}
	}
}

// tryCommit is one attempt. After an error that is no definite refusal it can be
// called again.
func (g *group) tryCommit(e *epoch) (commit.Result, error) {
	ctx := g.ctx
	if !e.started {
		if done, err := g.prepare(ctx, e); err != nil || done {
			return commit.Result{}, err
		}
	}
	res, err := e.draft.Commit(ctx, commit.Info{Trigger: string(e.why)})
	switch {
	case err == nil:
		e.draft = nil
	case definite(err), errors.Is(err, commit.ErrSchemaChanged), errors.Is(err, commit.ErrFilesLost):
		// Nothing was committed, and the draft is spent.
		g.mu.Lock()
		e.started, e.anew, e.draft = false, true, nil
		g.mu.Unlock()
	}
	return res, err
}

// prepare writes what is not written yet, so that the draft holds exactly the live
// rows, and marks the commit as begun. done means that no row is left to commit.
func (g *group) prepare(ctx context.Context, e *epoch) (done bool, err error) {
	for {
		g.mu.Lock()
		chunks := e.live()
		anew := e.anew || e.lost != nil
		e.anew, e.lost = false, nil
		g.mu.Unlock()

		if anew {
			for _, b := range e.join.take() {
				b.release()
			}
			e.abort(ctx)
		}
		if len(chunks) == 0 {
			e.abort(ctx)
			return true, nil
		}
		if err := g.finish(ctx, e, chunks, anew); err != nil {
			g.mu.Lock()
			e.anew = true // whatever was written may be incomplete
			g.mu.Unlock()
			return false, err
		}
		g.mu.Lock()
		if e.anew { // rows were dropped meanwhile
			g.mu.Unlock()
			continue
		}
		if e.draft == nil { // all rows turned out to be refused
			g.mu.Unlock()
			return true, nil
		}
		e.started = true
		g.mu.Unlock()
		return false, nil
	}
}

// abort drops the draft and its files.
func (e *epoch) abort(ctx context.Context) {
	if e.draft != nil {
		e.draft.Abort(context.WithoutCancel(ctx))
		e.draft = nil
	}
}

// finish plans the epoch's schema over all rows observed, and writes the rows that
// are not in files yet: all of them if anew, otherwise those joined and those
// deferred.
func (g *group) finish(ctx context.Context, e *epoch, chunks []*chunk, anew bool) error {
	t := e.table
	base, err := g.basePlan(t)
	if err != nil {
		return &commit.RefusedError{Table: t.ident, Err: err}
	}
	var seen arrowconv.Observation
	convert := deferredOf(chunks)
	if anew {
		// The table's schema may have moved: every row is looked at again.
		if err := g.observe(base, chunks, &seen); err != nil {
			return err
		}
		convert = chunks
	} else if e.seen != nil {
		seen.Merge(e.seen)
	}
	plan := base
	if len(convert) > 0 {
		if plan, err = base.Extend(&seen); err != nil {
			// No plan takes the rows that bring something new; the others do not
			// suffer for it.
			plan = base
			g.fail(deferredOf(convert), err)
			convert = slices.DeleteFunc(slices.Clone(convert), func(c *chunk) bool { return c.deferred })
		} else {
			// The next epoch starts from what this one plans.
			g.mu.Lock()
			t.plan = plan
			g.mu.Unlock()
		}
	}

	begin := sync.OnceValue(func() error {
		d, err := e.begin(ctx, plan.Schema())
		if err != nil {
			return err
		}
		return d.Extend(ctx, plan.Schema())
	})
	write := func(b joinedBatch) error {
		if err := begin(); err != nil {
			b.release()
			return err
		}
		return e.stream(ctx, b.plan, b.recs, g.mem)
	}
	if err := writeEach(e.join.take(), write); err != nil {
		return err
	}
	if err := g.convertAll(plan, convert, write); err != nil {
		return err
	}
	e.writing.Lock()
	defer e.writing.Unlock()
	return e.lost
}

func deferredOf(chunks []*chunk) (out []*chunk) {
	for _, c := range chunks {
		if c.deferred {
			out = append(out, c)
		}
	}
	return out
}

// basePlan is the plan of the table as it is now.
func (g *group) basePlan(t *tableState) (*arrowconv.Plan, error) {
	schema := t.store.Schema()
	g.mu.Lock()
	defer g.mu.Unlock()
	return t.planFor(schema, g.cfg.Convert)
}

// observe merges what chunks have that the plan lacks, in order of arrival: where
// no type fits all rows, the first one stands. It marks those chunks as deferred.
func (g *group) observe(plan *arrowconv.Plan, chunks []*chunk, seen *arrowconv.Observation) error {
	found := make([]*arrowconv.Observation, len(chunks))
	if err := g.each(chunks, func(i int, c *chunk) error {
		out, err := plan.Convert(c.src, nil, g.tuning(), g.mem)
		if err != nil {
			g.fail([]*chunk{c}, err)
			return nil
		}
		out.Release()
		g.logRenames(c.epoch.table, out.Renamed)
		found[i] = out.Unknown
		return nil
	}); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, o := range found {
		if chunks[i].deferred = o != nil; o != nil {
			seen.Merge(o)
		}
	}
	return nil
}

// convertAll converts chunks under their final plan and writes them.
func (g *group) convertAll(plan *arrowconv.Plan, chunks []*chunk, write func(joinedBatch) error) error {
	var mu sync.Mutex
	var join joiner
	size := g.tuning().BatchSize
	defer func() {
		for _, b := range join.take() {
			b.release()
		}
	}()
	err := g.each(chunks, func(_ int, c *chunk) error {
		out, err := plan.Convert(c.src, nil, g.tuning(), g.mem)
		if err != nil {
			g.fail([]*chunk{c}, err)
			return nil
		}
		g.logRenames(c.epoch.table, out.Renamed)
		g.mu.Lock()
		c.errors = out.Errors
		if out.Unknown != nil {
			c.err = fmt.Errorf("table %s: no column could be planned for some fields of this write's rows", c.epoch.table.name)
		}
		g.mu.Unlock()
		mu.Lock()
		for _, r := range out.Records {
			join.add(plan, r, size)
		}
		full := join.full(size)
		mu.Unlock()
		return writeEach(full, write)
	})
	if err != nil {
		return err
	}
	return writeEach(join.take(), write)
}

func writeEach(batches []joinedBatch, write func(joinedBatch) error) error {
	for i, b := range batches {
		if err := write(b); err != nil {
			for _, rest := range batches[i+1:] {
				rest.release()
			}
			return err
		}
	}
	return nil
}

// fail refuses whole chunks.
func (g *group) fail(chunks []*chunk, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range chunks {
		c.err = fmt.Errorf("table %s: %w", c.epoch.table.name, err)
	}
}

// each calls f for chunks, on all processors.
func (g *group) each(chunks []*chunk, f func(int, *chunk) error) error {
	var eg errgroup.Group
	eg.SetLimit(runtime.GOMAXPROCS(0))
	for i, c := range chunks {
		eg.Go(func() error { return f(i, c) })
	}
	return eg.Wait()
}

// resolve makes an epoch's outcome known.
func (g *group) resolve(e *epoch, res commit.Result, err error) {
	t := e.table
	places := t.store.Places()
	schema := t.store.Schema()
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	latency := now.Sub(e.sealedAt)
	e.err = err
	t.queue = t.queue[1:]
	t.lastUsed = now
	if err == nil && res.Rows > 0 {
		g.totals.commits++
		g.totals.rows += res.Rows
		g.touched[t.name] = places
		before, after := g.tracker.Observe(latency)
		g.cfg.Meter.committed(t.name, e.why, res, latency, after)
		g.logCommit(e, res, latency)
		g.logLevel(before.Level, after)
	}
	// What the table is now, its next rows are planned on.
	if changed(t.schema, schema) {
		if plan, perr := t.planFor(schema, g.cfg.Convert); perr == nil {
			t.plan = plan
		}
	}
	g.trigger.resolve(now, &e.pending)
	close(e.done)
	g.decide()
}
