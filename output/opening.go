package output

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/managed-lakehouse/managed-lakehouse/commit"
)

// opening is a table that is being opened; all writes that need it wait for one
// attempt.
type opening struct {
	done  chan struct{}
	table *tableState
	why   string // reason label of a refusal
	err   error  // a definite refusal
}

// open gives the table, marked as in use, opening it if need be. It tries until it
// is known whether the table can be written to, or ctx ends: a store that cannot
// be reached now is no reason to refuse a row.
func (g *group) open(ctx context.Context, ident []string) (*tableState, string, error) {
	name := strings.Join(ident, ".")
	for {
		g.mu.Lock()
		if t := g.tables[name]; t != nil {
			t.users++
			g.mu.Unlock()
			return t, "", nil
		}
		o := g.opening[name]
		if o == nil {
			o = &opening{done: make(chan struct{})}
			g.opening[name] = o
			g.committers.Go(func() { g.runOpening(name, ident, o) })
		}
		g.mu.Unlock()
		select {
		case <-o.done:
			if o.err != nil {
				return nil, o.why, o.err
			}
		case <-ctx.Done():
			return nil, "", errors.Join(errStopped, context.Cause(ctx))
		}
	}
}

func (g *group) runOpening(name string, ident []string, o *opening) {
	t, why, err := g.openTable(name, ident)
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.opening, name)
	if err == nil {
		g.tables[name] = t
	}
	o.table, o.why, o.err = t, why, err
	close(o.done)
}

func (g *group) openTable(name string, ident []string) (*tableState, string, error) {
	for attempt := 0; ; attempt++ {
		g.loads <- struct{}{}
		store, err := g.store.OpenTable(g.ctx, ident)
		<-g.loads
		if err == nil {
			t := &tableState{ident: ident, name: name, store: store, lastUsed: time.Now()}
			if t.plan, err = t.planFor(store.Schema(), g.cfg.Convert); err != nil {
				return nil, "schema", fmt.Errorf("table %s: %w", name, err)
			}
			return t, "", nil
		}
		if definite(err) {
			return nil, "table", err
		}
		if g.ctx.Err() != nil {
			return nil, "", errors.Join(errStopped, err)
		}
		wait := backoff(attempt)
		g.cfg.Log.Error("the table cannot be opened; its rows wait, and it is tried again", "table", name, "again_in", wait.Round(time.Millisecond).String(), "error", err)
		if err := pause(g.ctx, wait); err != nil {
			return nil, "", errors.Join(errStopped, err)
		}
	}
}

// definite tells whether trying the same again would be refused again.
func definite(err error) bool {
	var refused *commit.RefusedError
	return errors.As(err, &refused)
}

// pause waits, or returns the cause of ctx's end.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
