package icebergtable

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore"
)

// Config says which catalog knows the warehouse's tables: exactly one of its fields
// is set. None is the filesystem catalog.
type Config struct {
	Filesystem *FilesystemConfig
	SQL        *SQLConfig
}

// FilesystemConfig has no settings: the catalog is files in the warehouse.
type FilesystemConfig struct{}

// closeWait is how long Close waits for what is written in the background.
const closeWait = 30 * time.Second

// Catalog is the one way to a warehouse's Iceberg tables, whatever catalog keeps
// them. Tables that it returns read and write through its IO and commit through it.
// It is safe for concurrent use.
type Catalog struct {
	inner  catalog.Catalog
	store  *objstore.Store
	io     *IO
	hints  *hints
	prompt bool // the hint is written before a commit returns: it is where readers begin
	cancel context.CancelFunc
}

var _ table.CatalogIO = (*Catalog)(nil)

// Open opens the catalog of the warehouse in store, which stays the caller's to close.
func Open(ctx context.Context, cfg Config, store *objstore.Store) (*Catalog, error) {
	if cfg.Filesystem != nil && cfg.SQL != nil {
		return nil, errors.New("catalog: both filesystem and sql are set; choose one")
	}
	fileIO, err := newIO(store)
	if err != nil {
		return nil, err
	}
	_, local := store.LocalPath("")
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c := &Catalog{store: store, io: fileIO, hints: newHints(background, store, local), cancel: cancel}
	if cfg.SQL != nil {
		inner, err := openSQL(ctx, *cfg.SQL, store, fileIO)
		if err != nil {
			cancel()
			fileIO.close(background)
			return nil, err
		}
		c.inner = inner
	} else {
		c.inner = newFilesystem(store, fileIO)
		c.prompt = local
	}
	return c, nil
}

// IO is the file system of the catalog's tables.
func (c *Catalog) IO() *IO { return c.io }

// Close waits a while for version hints and removals under way, then releases the
// catalog. No commit that was acknowledged depends on them.
func (c *Catalog) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	c.hints.wait(ctx, "")
	c.io.close(ctx)
	c.cancel()
	if closer, ok := c.inner.(catalog.Closer); ok {
		return closer.Close()
	}
	return nil
}

// Forget drops what is cached of a table. Nothing depends on it but memory.
func (c *Catalog) Forget(ident []string) {
	if f, ok := c.inner.(interface{ forget([]string) }); ok {
		f.forget(ident)
	}
	c.hints.forget(metadataKey(ident))
}

// wrap is t with our IO, committing through c.
func (c *Catalog) wrap(ident []string, t *table.Table) *table.Table {
	return table.New(slices.Clone(ident), t.Metadata(), t.MetadataLocation(),
		func(ctx context.Context) (icebergio.IO, error) { return c.io.For(ctx), nil }, c)
}

// LoadTable is the table as it is now. One that is not there is
// [catalog.ErrNoSuchTable], whether its namespace exists or not.
func (c *Catalog) LoadTable(ctx context.Context, ident table.Identifier) (*table.Table, error) {
	if err := ValidateIdent(ident); err != nil {
		return nil, err
	}
	t, err := c.inner.LoadTable(ctx, ident)
	if errors.Is(err, catalog.ErrNoSuchNamespace) {
		return nil, noSuchTable(ident)
	}
	if err != nil {
		return nil, err
	}
	return c.wrap(ident, t), nil
}

// CreateTable makes an empty table, and its namespace where there is none. One that
// is there is [catalog.ErrTableAlreadyExists]; a folder that holds something else
// is [ErrOccupied], and is left as it is.
func (c *Catalog) CreateTable(ctx context.Context, ident table.Identifier, schema *iceberg.Schema, opts CreateOptions) (*table.Table, error) {
	if err := ValidateIdent(ident); err != nil {
		return nil, err
	}
	if err := CheckProperties(opts.Properties); err != nil {
		return nil, fmt.Errorf("table %s: %w", shown(ident), err)
	}
	t, err := c.inner.CreateTable(ctx, ident, schema,
		catalog.WithLocation(c.store.Location(IcebergKey(ident))),
		catalog.WithPartitionSpec(opts.PartitionSpec),
		catalog.WithProperties(newProperties(opts.Properties, c.store.Location(DeltaKey(ident)))))
	if err != nil {
		return nil, err
	}
	c.hint(ctx, t.Metadata().Location(), t.MetadataLocation(), true)
	return c.wrap(ident, t), nil
}

// CheckNew reports why no table can be made as ident with these properties: its
// folder is in use or cannot be written to, or a property is not to be set. It
// makes nothing, and promises nothing: the folder may be taken a moment later.
func (c *Catalog) CheckNew(ctx context.Context, ident []string, props iceberg.Properties) error {
	if err := ValidateIdent(ident); err != nil {
		return err
	}
	if err := CheckProperties(props); err != nil {
		return fmt.Errorf("table %s: %w", shown(ident), err)
	}
	if err := c.store.CheckWritable(ctx, TableKey(ident)); err != nil {
		return fmt.Errorf("%w: %w", ErrOccupied, err)
	}
	return checkFree(ctx, c.store, ident, func(above []string) (bool, error) { return c.inner.CheckTableExists(ctx, above) })
}

// CommitTable makes updates the table's next version, if reqs hold. The package
// comment has its steps, and what its errors mean.
func (c *Catalog) CommitTable(ctx context.Context, ident table.Identifier, reqs []table.Requirement, updates []table.Update) (table.Metadata, string, error) {
	// Barrier and removal of snapshots are between staging and swap, inside of the
	// catalogs: there the uploads run while the metadata is put together.
	meta, location, err := c.inner.CommitTable(ctx, ident, reqs, updates)
	if err != nil {
		if IsConflict(err) && commitOptions(ctx) != nil {
			err = conflict(err)
		}
		return nil, "", err
	}
	c.hint(ctx, meta.Location(), location, false)
	return meta, location, nil
}

// hint has the version hint of the table at tableLocation name metadataLocation.
func (c *Catalog) hint(ctx context.Context, tableLocation, metadataLocation string, made bool) {
	key, ok := c.store.Key(tableLocation)
	if !ok || key == "" {
		return
	}
	dir := key + "/metadata"
	c.hints.set(dir, metadataLocation, made)
	if c.prompt {
		c.hints.wait(ctx, dir)
	}
}

// ready is the barrier of a commit that makes next: what it refers to is durable
// when ready returns nil.
func (o *IO) ready(ctx context.Context, next table.Metadata) error {
	if opts := commitOptions(ctx); opts != nil && opts.Wait != nil {
		if err := opts.Wait(ctx); err != nil {
			return err
		}
	}
	return o.Barrier(ctx, metadataLocation(next))
}

// metadataLocation is the folder of a table's metadata files, manifests included.
func metadataLocation(meta table.Metadata) string {
	if p := meta.Properties().Get(table.WriteMetadataPathKey, ""); p != "" {
		return strings.TrimSuffix(p, "/")
	}
	return strings.TrimSuffix(meta.Location(), "/") + "/metadata"
}

// ListTables yields the tables directly in a namespace.
func (c *Catalog) ListTables(ctx context.Context, namespace table.Identifier) iter.Seq2[table.Identifier, error] {
	return c.inner.ListTables(ctx, namespace)
}

// ListNamespaces is the namespaces directly in parent, or at the top for none.
func (c *Catalog) ListNamespaces(ctx context.Context, parent table.Identifier) ([]table.Identifier, error) {
	return c.inner.ListNamespaces(ctx, parent)
}
