package commit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"github.com/managed-lakehouse/managed-lakehouse/commit/deltalog"
	"github.com/managed-lakehouse/managed-lakehouse/commit/icebergtable"
)

// TableOptions are what a new table is made with.
type TableOptions struct {
	// Properties are Iceberg table properties.
	Properties map[string]string
	// PartitionBy is the partition specification; empty is none. An existing
	// table's must be the same where it is set.
	PartitionBy []PartitionField
	// MapColumnNames keeps names that Delta cannot hold by itself, by column mapping.
	// It is fixed when a table is made: one that exists without it is refused.
	MapColumnNames bool
}

// Table is one table of a warehouse, in both formats. It is safe for concurrent
// use; commits of one process are made one after another.
type Table struct {
	w     *Warehouse
	ident []string
	opts  TableOptions

	commits sync.Mutex // held over a commit: one at a time

	mu     sync.Mutex
	opened bool
	cur    *table.Table // as last seen; nil while the table does not exist
	schema *arrow.Schema
	mirror *deltalog.Mirror
	lag    int // Iceberg snapshots that Delta lacks

	tidying bool // a checkpoint is being written
}

// String is the table's name, dotted.
func (t *Table) String() string { return strings.Join(t.ident, ".") }

// Ident is the table's namespace levels and name.
func (t *Table) Ident() []string { return slices.Clone(t.ident) }

func (t *Table) open(ctx context.Context) error {
	t.commits.Lock()
	defer t.commits.Unlock()
	if t.opened {
		return nil
	}
	cur, err := t.load(ctx)
	if err != nil {
		return err
	}
	if cur == nil {
		if cur, err = t.checkNew(ctx); err != nil {
			return err
		}
	}
	if cur != nil {
		if err := checkPartition(t.opts.PartitionBy, cur.Schema(), cur.Spec()); err != nil {
			return &RefusedError{Table: t.ident, Err: err}
		}
		if t.opts.MapColumnNames && t.w.cfg.Delta && cur.Properties()[deltalog.ColumnNamesProperty] != deltalog.ColumnNamesMapped {
			return &RefusedError{Table: t.ident, Err: errors.New("column_names: map is fixed when a table is made, and this one was made without it; set normalize or reject, or write to another table")}
		}
		if err := t.adopt(cur); err != nil {
			return err
		}
		if _, _, err := t.project(ctx); err != nil {
			t.w.log.Warn("the Delta table could not be brought up to the Iceberg table; the next commit tries again", "table", t.String(), "error", err)
		}
	}
	t.opened = true
	return nil
}

// checkNew makes sure that the table can be made. If it was made meanwhile by
// somebody else, it is returned.
func (t *Table) checkNew(ctx context.Context) (*table.Table, error) {
	occupied := t.w.catalog.CheckNew(ctx, t.ident, t.properties())
	if occupied == nil {
		return nil, nil
	}
	cur, err := t.load(ctx)
	switch {
	case err != nil || cur != nil:
		return cur, err
	case icebergtable.IsDefiniteRefusal(occupied):
		return nil, &RefusedError{Table: t.ident, Err: occupied}
	default:
		return nil, fmt.Errorf("table %s: %w", t, occupied)
	}
}

// load is the table as the catalog knows it now, or nil.
func (t *Table) load(ctx context.Context) (*table.Table, error) {
	cur, err := t.w.catalog.LoadTable(ctx, t.ident)
	if errors.Is(err, catalog.ErrNoSuchTable) || errors.Is(err, catalog.ErrNoSuchNamespace) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("loading table %s: %w", t, err)
	}
	return cur, nil
}

// adopt makes cur the table's known state.
func (t *Table) adopt(cur *table.Table) error {
	schema, err := arrowSchema(cur.Schema())
	if err != nil {
		return &RefusedError{Table: t.ident, Err: fmt.Errorf("its schema has no Arrow form: %w", err)}
	}
	var mirror *deltalog.Mirror
	if t.w.cfg.Delta {
		root, ok := t.w.store.Key(dataLocation(cur))
		if !ok {
			return &RefusedError{Table: t.ident, Err: fmt.Errorf("its data path %s lies outside of the warehouse %s, so it can have no Delta table there; set `formats: [iceberg]`",
				dataLocation(cur), t.w.store.Root())}
		}
		if t.mirror != nil && t.cur != nil && dataLocation(t.cur) == dataLocation(cur) {
			mirror = t.mirror
		} else {
			mirror = deltalog.NewMirror(t.w.store, root, deltalog.Options{Logger: t.w.log})
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cur, t.schema, t.mirror = cur, schema, mirror
	return nil
}

// dataLocation is where a table's data files lie, which is the root of its Delta table.
func dataLocation(t *table.Table) string {
	if p := t.Properties().Get(table.WriteDataPathKey, ""); p != "" {
		return strings.TrimSuffix(p, "/")
	}
	return strings.TrimSuffix(t.Location(), "/") + "/data"
}

// Schema is the table's schema as last seen, with field ids in each field's
// metadata under "PARQUET:field_id", or nil while the table does not exist.
func (t *Table) Schema() *arrow.Schema {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.schema
}

// Places are the locations of a table's two sides; an empty one is not there.
type Places struct {
	Iceberg  string // location of the Iceberg table
	Metadata string // its current metadata file
	Delta    string // root of the Delta table
}

// Places tells where the table lies, as last seen.
func (t *Table) Places() Places {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cur == nil {
		return Places{}
	}
	p := Places{Iceberg: t.cur.Location(), Metadata: t.cur.MetadataLocation()}
	if t.mirror != nil {
		p.Delta = dataLocation(t.cur)
	}
	return p
}

// Lag is the number of Iceberg snapshots that the Delta table lacks, as last seen.
func (t *Table) Lag() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lag
}

// create makes the empty table.
func (t *Table) create(ctx context.Context, want *arrow.Schema) error {
	schema, err := icebergSchema(want)
	if err != nil {
		return &RefusedError{Table: t.ident, Err: err}
	}
	spec, err := partitionSpec(t.opts.PartitionBy, schema)
	if err != nil {
		return &RefusedError{Table: t.ident, Err: err}
	}
	cur, err := t.w.catalog.CreateTable(ctx, t.ident, schema, icebergtable.CreateOptions{
		PartitionSpec: spec, Properties: t.properties(),
	})
	if errors.Is(err, catalog.ErrTableAlreadyExists) {
		if cur, err = t.load(ctx); err == nil && cur == nil {
			err = errors.New("the table came and went while it was made")
		}
		if err == nil {
			if err := checkPartition(t.opts.PartitionBy, cur.Schema(), cur.Spec()); err != nil {
				return &RefusedError{Table: t.ident, Err: err}
			}
		}
	}
	if icebergtable.IsDefiniteRefusal(err) {
		return &RefusedError{Table: t.ident, Err: err}
	}
	if err != nil {
		return fmt.Errorf("creating table %s: %w", t, err)
	}
	return t.adopt(cur)
}

// properties are a new table's.
func (t *Table) properties() iceberg.Properties {
	out := iceberg.Properties{}
	maps.Copy(out, t.opts.Properties)
	if t.opts.MapColumnNames {
		out[deltalog.ColumnNamesProperty] = deltalog.ColumnNamesMapped
	}
	return out
}

// project brings the Delta table up to t.cur. known are the files of a snapshot
// that was just committed here, so that no manifest need be read for it.
func (t *Table) project(ctx context.Context, known ...deltalog.Appended) (version int64, lag int, err error) {
	t.mu.Lock()
	mirror, cur := t.mirror, t.cur
	t.mu.Unlock()
	if mirror == nil || cur == nil {
		return -1, 0, nil
	}
	status, err := mirror.CatchUp(ctx, cur, known...)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lag = status.Lag
	if err != nil {
		t.lag = max(t.lag, 1)
		return status.Version, t.lag, err
	}
	if status.Held != "" {
		t.w.log.Warn("the Delta table is held at its last equal version: the Iceberg table is in a state that Delta cannot express",
			"table", t.String(), "version", status.Version, "reason", status.Held)
	}
	if status.TidyDue {
		t.tidy(mirror)
	}
	return status.Version, t.lag, nil
}

// tidy writes the checkpoint that is due, off the commit path: nothing waits for
// it but the end of the process. A failure does no harm; the next commit asks again.
func (t *Table) tidy(mirror *deltalog.Mirror) {
	if t.tidying {
		return
	}
	t.tidying = true
	t.w.background.Go(func() {
		if _, err := mirror.Tidy(t.w.ctx); err != nil {
			t.w.log.Warn("no Delta checkpoint could be written; readers use the log, and it is tried again", "table", t.String(), "error", err)
		}
		t.mu.Lock()
		t.tidying = false
		t.mu.Unlock()
	})
}

// settle tries once more to clear a lag.
func (t *Table) settle(ctx context.Context) error {
	t.commits.Lock()
	defer t.commits.Unlock()
	if t.Lag() == 0 {
		return nil
	}
	_, _, err := t.project(ctx)
	return err
}
