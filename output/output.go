package output

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/managed-lakehouse/managed-lakehouse/arrowconv"
	"github.com/managed-lakehouse/managed-lakehouse/backpressure"
)

// Output is the managed_lakehouse output: a service.BatchOutput.
type Output struct {
	cfg     *config
	label   string
	log     *slog.Logger
	logger  *service.Logger
	meter   *meter
	release func() // gives back the claim on a streaming table

	open func(context.Context) (warehouse, error)

	mu       sync.Mutex
	group    *group // nil until connected
	draining bool
	closed   bool
	failures int // Connect in a row
}

// construct is the plugin's constructor.
func construct(conf *service.ParsedConfig, mgr *service.Resources) (service.BatchOutput, service.BatchPolicy, int, error) {
	o, err := newOutput(conf, mgr)
	if err != nil {
		return nil, service.BatchPolicy{}, 0, err
	}
	return o, o.cfg.batching, o.cfg.trigger.Slots, nil
}

func newOutput(conf *service.ParsedConfig, mgr *service.Resources) (*Output, error) {
	cfg, err := parseConfig(conf)
	if err != nil {
		return nil, err
	}
	o := &Output{
		cfg:     cfg,
		label:   mgr.Label(),
		logger:  mgr.Logger(),
		log:     newSlog(mgr.Logger()),
		meter:   newMeter(mgr.Metrics()),
		release: func() {},
	}
	o.open = func(ctx context.Context) (warehouse, error) {
		return openLakehouse(ctx, cfg.commitConfig(o.log), cfg.tableOptions())
	}
	if cfg.trigger.Streaming && cfg.ident != nil {
		if o.release, err = streamingTables.claim(cfg.tier, o.tableKey(strings.Join(cfg.ident, "."))); err != nil {
			return nil, err
		}
	}
	if err := o.preflight(); err != nil {
		o.release()
		return nil, err
	}
	for _, w := range warnings(cfg) {
		o.log.Warn(w)
	}
	register(o)
	return o, nil
}

// preflightTimeout bounds the look at a local warehouse while a pipeline is built.
const preflightTimeout = 10 * time.Second

// preflight looks at the warehouse while the pipeline is built, so that a folder
// that cannot be written to, or a table that cannot take the declared columns, ends
// the run with an error before any row is read. Later, Benthos would try to connect
// for ever.
func (o *Output) preflight() error {
	ctx, end := context.WithTimeout(context.Background(), preflightTimeout)
	defer end()
	w, err := o.open(ctx)
	if err != nil {
		return o.explain(err)
	}
	err = o.checkTable(ctx, w)
	return errors.Join(err, w.Close(ctx))
}

// checkTable makes sure that the only table, where there is one, can take the
// declared columns.
func (o *Output) checkTable(ctx context.Context, w warehouse) error {
	if o.cfg.ident == nil {
		return nil
	}
	t, err := w.OpenTable(ctx, o.cfg.ident)
	if err != nil {
		return o.explain(err)
	}
	if _, err := arrowconv.NewPlan(t.Schema(), o.cfg.convert); err != nil {
		return fmt.Errorf("table %s: its schema cannot take the columns declared in `schema`: %w; change the declaration, or write to another table", strings.Join(o.cfg.ident, "."), err)
	}
	return nil
}

// explain names the field that an error of the store belongs to.
func (o *Output) explain(err error) error {
	return fmt.Errorf("field %s: %q cannot be used: %w", fWarehouse, o.cfg.warehouse, err)
}

// tableKey names a table within the process.
func (o *Output) tableKey(name string) string {
	where := strings.TrimPrefix(o.cfg.warehouse, "file://")
	if abs, err := filepath.Abs(where); err == nil {
		where = abs
	}
	return name + " in " + where
}

// Connect opens the warehouse. Benthos calls it until it succeeds and logs each
// error; an error that does not pass is tried ever less often.
func (o *Output) Connect(ctx context.Context) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return service.ErrNotConnected
	}
	if o.group != nil {
		return nil
	}
	w, err := o.open(ctx)
	if err != nil {
		return o.connectFailed(o.explain(err))
	}
	if err := o.checkTable(ctx, w); err != nil {
		return o.connectFailed(errors.Join(err, w.Close(ctx)))
	}
	o.failures = 0
	cfg := groupConfig{Trigger: o.cfg.trigger, Convert: o.cfg.convert, Log: o.log, Meter: o.meter}
	if o.cfg.trigger.Streaming {
		cfg.Count = func(table string) error { return streamingTables.count(o.cfg.tier, o.tableKey(table)) }
	}
	o.group = newGroup(cfg, w)
	if o.draining {
		o.group.drain()
	}
	return nil
}

func (o *Output) connectFailed(err error) error {
	wait := min(30*time.Second, time.Second<<min(o.failures, 5))
	o.failures++
	return service.NewErrBackOff(fmt.Errorf("%w (trying again in %v)", err, wait), wait)
}

func (o *Output) connected() *group {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.group
}

// WriteBatch writes the batch's rows into their tables and returns when each row is
// durable or known not to be written; only the latter are marked in its error.
func (o *Output) WriteBatch(ctx context.Context, batch service.MessageBatch) error {
	g := o.connected()
	if g == nil {
		return service.ErrNotConnected
	}
	parts, failures := o.route(g, batch)
	if len(parts) > 0 {
		failures = append(failures, g.write(ctx, parts)...)
	}
	return batchError(batch, failures)
}

// route groups the messages of a batch by table.
func (o *Output) route(g *group, batch service.MessageBatch) ([]routed, []failure) {
	if o.cfg.ident != nil {
		p := routed{ident: o.cfg.ident, src: newMessages(len(batch), o.cfg.convert.Format)}
		var failures []failure
		for i, msg := range batch {
			n, err := p.src.add(i, msg)
			if err != nil {
				failures = append(failures, failure{i, "unreadable", err})
				continue
			}
			p.bytes += n
		}
		g.refuse(o.cfg.ident, failures)
		if p.src.Len() == 0 {
			return nil, failures
		}
		return []routed{p}, failures
	}

	var parts []routed
	var failures []failure
	type name struct{ namespace, table string }
	known := map[name]int{} // index in parts
	namespace, table := batch.InterpolationExecutor(o.cfg.namespace), batch.InterpolationExecutor(o.cfg.table)
	fail := func(i int, err error) {
		failures = append(failures, failure{i, "name", err})
	}
	for i, msg := range batch {
		var n name
		var err error
		if n.namespace, err = namespace.TryString(i); err != nil {
			fail(i, fmt.Errorf("%s: it cannot be interpolated: %w", fNamespace, err))
			continue
		}
		if n.table, err = table.TryString(i); err != nil {
			fail(i, fmt.Errorf("%s: it cannot be interpolated: %w", fTable, err))
			continue
		}
		at, ok := known[n]
		if !ok {
			ident, err := tableIdent(n.namespace, n.table)
			if err != nil {
				fail(i, err)
				continue
			}
			at = len(parts)
			known[n] = at
			parts = append(parts, routed{ident: ident, src: newMessages(0, o.cfg.convert.Format)})
		}
		size, err := parts[at].src.add(i, msg)
		if err != nil {
			failures = append(failures, failure{i, "unreadable", err})
			continue
		}
		parts[at].bytes += size
	}
	g.refuse([]string{""}, failures)
	return parts, failures
}

// Close ends the output. Benthos calls it when every write has returned.
func (o *Output) Close(ctx context.Context) error {
	o.mu.Lock()
	g := o.group
	again := o.closed
	o.closed, o.group = true, nil
	o.mu.Unlock()
	if again {
		return nil
	}
	unregister(o)
	o.release()
	report := Report{Label: o.label, Summary: summaryOf(o.cfg.trigger.Streaming, totals{}, 0, 0, backpressure.For(0))}
	var err error
	if g != nil {
		if err = g.close(ctx); err != nil {
			o.log.Warn("the warehouse was not closed in order", "error", err)
		}
		report.Summary = g.summary()
		report.Tables = tableReports(g.places())
	}
	o.logger.Infof("run summary: %s", report.Summary)
	fileReport(report)
	return err
}

// GetBackpressureProfile is the output's present backpressure profile: how far
// commits fall behind, and the record size that follows from it.
func (o *Output) GetBackpressureProfile() backpressure.Profile {
	if g := o.connected(); g != nil {
		return g.profile()
	}
	return backpressure.For(0)
}

// Summary is what the output has done so far.
func (o *Output) Summary() Summary {
	if g := o.connected(); g != nil {
		return g.summary()
	}
	return summaryOf(o.cfg.trigger.Streaming, totals{}, 0, 0, backpressure.For(0))
}

func (o *Output) drain() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.draining = true
	if o.group != nil {
		o.group.drain()
	}
}
