package output

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/managed-lakehouse/managed-lakehouse/commit"
)

// warehouse, tableStore and draft are what the group commit needs of package
// commit. Tests put a fake in their place.
type warehouse interface {
	OpenTable(ctx context.Context, ident []string) (tableStore, error)
	// Release forgets a table that has been quiet for long.
	Release(tableStore)
	Close(ctx context.Context) error
}

type tableStore interface {
	// Schema is nil while the table does not exist.
	Schema() *arrow.Schema
	Begin(ctx context.Context, want *arrow.Schema) (draft, error)
	Places() commit.Places
}

type draft interface {
	Extend(ctx context.Context, want *arrow.Schema) error
	Write(ctx context.Context, rec arrow.RecordBatch) error
	Commit(ctx context.Context, info commit.Info) (commit.Result, error)
	Abort(ctx context.Context)
}

// lakehouse is the real warehouse.
type lakehouse struct {
	w    *commit.Warehouse
	opts commit.TableOptions
}

func openLakehouse(ctx context.Context, cfg commit.Config, opts commit.TableOptions) (warehouse, error) {
	w, err := commit.OpenWarehouse(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &lakehouse{w: w, opts: opts}, nil
}

func (l *lakehouse) OpenTable(ctx context.Context, ident []string) (tableStore, error) {
	t, err := l.w.OpenTable(ctx, ident, l.opts)
	if err != nil {
		return nil, err
	}
	return lakehouseTable{t}, nil
}

func (l *lakehouse) Release(t tableStore) {
	if lt, ok := t.(lakehouseTable); ok {
		l.w.Release(lt.Table)
	}
}

func (l *lakehouse) Close(ctx context.Context) error { return l.w.Close(ctx) }

type lakehouseTable struct{ *commit.Table }

func (t lakehouseTable) Begin(ctx context.Context, want *arrow.Schema) (draft, error) {
	d, err := t.Table.Begin(ctx, want)
	if err != nil {
		return nil, err
	}
	return d, nil
}
