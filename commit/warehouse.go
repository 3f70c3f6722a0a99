package commit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/managed-lakehouse/managed-lakehouse/commit/datafile"
	"github.com/managed-lakehouse/managed-lakehouse/commit/icebergtable"
	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore"
)

// Config says where tables lie and which catalog knows them.
type Config struct {
	Store   objstore.Config
	Catalog icebergtable.Config
	// Delta says whether a Delta log is kept beside each Iceberg table.
	Delta bool
	// Files says how data files are encoded.
	Files datafile.Options
	// Logger may be nil.
	Logger *slog.Logger
}

// Warehouse is an open warehouse: one store and one catalog under both formats.
// It is safe for concurrent use.
type Warehouse struct {
	cfg     Config
	store   *objstore.Store
	catalog *icebergtable.Catalog
	log     *slog.Logger

	ctx        context.Context // of the background work; ends with Close
	cancel     context.CancelFunc
	background sync.WaitGroup

	mu     sync.Mutex
	tables map[string]*Table
}

// OpenWarehouse opens the store and the catalog. A local folder is made where
// there is none; one that cannot be written to, or a file in its place, is an error.
func OpenWarehouse(ctx context.Context, cfg Config) (*Warehouse, error) {
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	store, err := objstore.Open(ctx, cfg.Store)
	if err != nil {
		return nil, err
	}
	catalog, err := icebergtable.Open(ctx, cfg.Catalog, store)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	w := &Warehouse{cfg: cfg, store: store, catalog: catalog, log: log, tables: map[string]*Table{}}
	w.ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return w, nil
}

// Close brings lagging Delta tables up to date as far as that can be done, and
// releases catalog and store. The error of a lag names the table and the cure.
func (w *Warehouse) Close(ctx context.Context) error {
	w.mu.Lock()
	tables := make([]*Table, 0, len(w.tables))
	for _, t := range w.tables {
		tables = append(tables, t)
	}
	w.tables = map[string]*Table{}
	w.mu.Unlock()
	slices.SortFunc(tables, func(a, b *Table) int { return strings.Compare(a.String(), b.String()) })

	var errs []error
	for _, t := range tables {
		if err := t.settle(ctx); err != nil {
			errs = append(errs, fmt.Errorf("table %s: Delta is behind Iceberg; its rows are safe there, and the next run brings it up if what hinders it is gone: %w", t, err))
		}
	}
	stop := context.AfterFunc(ctx, w.cancel)
	w.background.Wait()
	stop()
	w.cancel()
	return errors.Join(append(errs, w.catalog.Close(), w.store.Close())...)
}

// OpenTable gives the table of that name, shared by all that ask for it. A
// table that does not exist is made by its first commit. One that exists has its
// Delta log brought up to its Iceberg history first.
//
// opts count for a table that does not exist; for one that does they are checked
// against it. A [*RefusedError] says that the table can never be written to as
// asked; any other error may pass.
func (w *Warehouse) OpenTable(ctx context.Context, ident []string, opts TableOptions) (*Table, error) {
	if err := icebergtable.ValidateIdent(ident); err != nil {
		return nil, &RefusedError{Table: ident, Err: err}
	}
	key := icebergtable.TableKey(ident) // a name may hold dots, so the dotted form is not unique
	w.mu.Lock()
	t, ok := w.tables[key]
	if !ok {
		t = &Table{w: w, ident: slices.Clone(ident), opts: opts}
		w.tables[key] = t
	}
	w.mu.Unlock()
	if err := t.open(ctx); err != nil {
		return nil, err
	}
	return t, nil
}

// Release forgets a table's cached state. A draft that is under way is not
// disturbed; the next OpenTable loads the table anew.
func (w *Warehouse) Release(t *Table) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if key := icebergtable.TableKey(t.ident); w.tables[key] == t {
		delete(w.tables, key)
		w.catalog.Forget(t.ident)
	}
}

// Store is the warehouse's object store.
func (w *Warehouse) Store() *objstore.Store { return w.store }
