package icebergtable

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	icesql "github.com/apache/iceberg-go/catalog/sql"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
	_ "modernc.org/sqlite" // the driver "sqlite", without cgo

	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore"
)

// SQLConfig says which database holds the catalog.
type SQLConfig struct {
	// Driver is sqlite.
	Driver string
	// DSN is the database: for sqlite a file's path, or a "file:" URI with the
	// driver's options. What durability and several writers need is added to it.
	DSN string
	// Name is the catalog's name, by which its tables are told from those of another
	// catalog in the same database; readers must give it too. Default "default".
	Name string
}

const defaultCatalogName = "default"

// engine is what differs between databases.
type engine struct {
	driver  string
	dialect icesql.SupportedDialect
	dsn     func(string) (string, error)
}

var engines = map[string]engine{
	"sqlite": {driver: "sqlite", dialect: icesql.SQLite, dsn: sqliteDSN},
}

// sqliteDSN adds what the catalog stands on, where the user has not said otherwise:
// writers wait for each other, a commit is durable, a transaction that will write
// says so from the beginning. It makes the database's folder.
func sqliteDSN(dsn string) (string, error) {
	file, query, _ := strings.Cut(dsn, "?")
	options, err := url.ParseQuery(query)
	if err != nil {
		return "", fmt.Errorf("its options: %w", err)
	}
	if file == "" || file == "file:" || strings.Contains(file, ":memory:") || options.Get("mode") == "memory" {
		return "", errors.New("the catalog must be a file, not memory: it is what makes commits last")
	}
	pragmas := strings.ToLower(strings.Join(options["_pragma"], " "))
	for _, p := range []struct{ name, value string }{{"busy_timeout", "30000"}, {"journal_mode", "WAL"}, {"synchronous", "FULL"}} {
		if !strings.Contains(pragmas, p.name) {
			options.Add("_pragma", p.name+"("+p.value+")")
		}
	}
	if !options.Has("_txlock") {
		options.Set("_txlock", "immediate")
	}
	path := strings.TrimPrefix(strings.TrimPrefix(file, "file:"), "//")
	if strings.HasPrefix(file, "file:") {
		if path, err = url.PathUnescape(path); err != nil {
			return "", err
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return "", err
	}
	return file + "?" + options.Encode(), nil
}

// sqlCatalog keeps tables in a relational database. Namespaces and the database's
// own tables are iceberg-go's; the pointer to a table's metadata is read and swapped
// here, so that files go through the warehouse's store, and a commit is one statement.
type sqlCatalog struct {
	*icesql.Catalog
	db    *sql.DB
	name  string
	typed bool // the table has the column iceberg_type, which tells tables from views
	store *objstore.Store
	io    *IO

	remembered[version]
}

var _ catalog.Catalog = (*sqlCatalog)(nil)

func openSQL(ctx context.Context, cfg SQLConfig, store *objstore.Store, fileIO *IO) (*sqlCatalog, error) {
	e, ok := engines[cfg.Driver]
	if !ok {
		return nil, fmt.Errorf("catalog: sql: driver is %q; it may be sqlite", cfg.Driver)
	}
	name := cfg.Name
	if name == "" {
		name = defaultCatalogName
	}
	dsn, err := e.dsn(cfg.DSN)
	if err != nil {
		return nil, fmt.Errorf("catalog: sql: dsn: %w", err) // never the DSN: it may hold a password
	}
	db, err := sql.Open(e.driver, dsn)
	if err != nil {
		return nil, fmt.Errorf("catalog: sql: %w", err)
	}
	db.SetMaxOpenConns(8)
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("catalog: sql: the database cannot be opened: %w", err), db.Close())
	}
	inner, err := icesql.NewCatalog(name, db, e.dialect, nil)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("catalog: sql: its tables cannot be made: %w", err), db.Close())
	}
	c := &sqlCatalog{Catalog: inner, db: db, name: name, store: store, io: fileIO}
	rows, err := db.QueryContext(ctx, "SELECT iceberg_type FROM iceberg_tables WHERE 1 = 0")
	if err == nil {
		c.typed = true
		err = errors.Join(rows.Err(), rows.Close())
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

// namespaceText is a namespace as iceberg-go stores one whose levels hold no dot.
func namespaceText(ident []string) string { return strings.Join(ident[:len(ident)-1], ".") }

// pointer is the location of a table's current metadata file.
func (c *sqlCatalog) pointer(ctx context.Context, ident []string) (string, error) {
	query := "SELECT metadata_location FROM iceberg_tables WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?"
	if c.typed {
		query += " AND (iceberg_type = 'TABLE' OR iceberg_type IS NULL)"
	}
	var location sql.NullString
	err := c.db.QueryRowContext(ctx, query, c.name, namespaceText(ident), ident[len(ident)-1]).Scan(&location)
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && !location.Valid:
		return "", noSuchTable(ident)
	case err != nil:
		return "", fmt.Errorf("catalog: looking up table %s: %w", shown(ident), err)
	}
	return location.String, nil
}

func (c *sqlCatalog) load(ctx context.Context, ident []string) (version, error) {
	location, err := c.pointer(ctx, ident)
	if err != nil {
		c.forget(ident)
		return version{}, err
	}
	if v, ok := c.recall(ident); ok && v.location == location {
		return v, nil
	}
	key, ok := c.store.Key(location)
	if !ok {
		return version{}, fmt.Errorf("table %s: %w", shown(ident), c.io.outside("reading its metadata", location))
	}
	if !strings.HasSuffix(key, ".metadata.json") || strings.HasSuffix(key, ".gz.metadata.json") || strings.HasSuffix(key, ".zstd.metadata.json") {
		return version{}, fmt.Errorf("%w: table %s: its metadata file %s is compressed or of an unknown kind; set the table property %s to none with the engine that wrote it",
			ErrRefused, shown(ident), location, table.MetadataCompressionKey)
	}
	data, err := boundIO{c.io, ctx}.read(key)
	if err != nil {
		return version{}, fmt.Errorf("table %s: %w", shown(ident), err)
	}
	v, err := parse(data, location)
	if err != nil {
		return version{}, fmt.Errorf("table %s: %w", shown(ident), err)
	}
	c.remember(ident, v)
	return v, nil
}

// LoadTable implements [catalog.Catalog].
func (c *sqlCatalog) LoadTable(ctx context.Context, ident table.Identifier) (*table.Table, error) {
	if err := ValidateIdent(ident); err != nil {
		return nil, fmt.Errorf("%w: %w", catalog.ErrNoSuchTable, err)
	}
	v, err := c.load(ctx, ident)
	if err != nil {
		return nil, err
	}
	return c.table(ident, v), nil
}

func (c *sqlCatalog) table(ident []string, v version) *table.Table {
	return table.New(ident, v.meta, v.location, c.fs, c)
}

func (c *sqlCatalog) fs(ctx context.Context) (icebergio.IO, error) { return c.io.For(ctx), nil }

// CheckTableExists implements [catalog.Catalog].
func (c *sqlCatalog) CheckTableExists(ctx context.Context, ident table.Identifier) (bool, error) {
	if ValidateIdent(ident) != nil {
		return false, nil
	}
	_, err := c.pointer(ctx, ident)
	if errors.Is(err, catalog.ErrNoSuchTable) {
		return false, nil
	}
	return err == nil, err
}

// CreateTable implements [catalog.Catalog]. The namespace is made on demand. What a
// create that is cut off leaves is one metadata file, which a later one passes over.
func (c *sqlCatalog) CreateTable(ctx context.Context, ident table.Identifier, schema *iceberg.Schema, opts ...catalog.CreateTableOpt) (*table.Table, error) {
	if err := ValidateIdent(ident); err != nil {
		return nil, err
	}
	meta, err := newMetadata(schema, c.store.Location(IcebergKey(ident)), opts)
	if err != nil {
		return nil, err
	}
	exists := func() error { return fmt.Errorf("%w: %s", catalog.ErrTableAlreadyExists, shown(ident)) }
	switch _, err := c.pointer(ctx, ident); {
	case err == nil:
		return nil, exists()
	case !errors.Is(err, catalog.ErrNoSuchTable):
		return nil, err
	}
	if occupied := checkFree(ctx, c.store, ident, func(above []string) (bool, error) { return c.CheckTableExists(ctx, above) }); occupied != nil {
		// What was found may be the work of someone who made the table just now.
		if _, err := c.pointer(ctx, ident); err == nil {
			return nil, exists()
		}
		return nil, occupied
	}
	if err := c.CreateNamespace(ctx, ident[:len(ident)-1], nil); err != nil && !errors.Is(err, catalog.ErrNamespaceAlreadyExists) {
		return nil, fmt.Errorf("catalog: making namespace %s: %w", shown(ident[:len(ident)-1]), err)
	}
	v, key, err := c.write(ident, 0, meta)
	if err != nil {
		return nil, err
	}
	if err := c.io.ready(ctx, meta); err != nil {
		return nil, fmt.Errorf("table %s: %w", shown(ident), err)
	}
	columns, values := "catalog_name, table_namespace, table_name, metadata_location", "?, ?, ?, ?"
	if c.typed {
		columns, values = columns+", iceberg_type", values+", 'TABLE'"
	}
	_, err = c.db.ExecContext(ctx, "INSERT INTO iceberg_tables ("+columns+") VALUES ("+values+")",
		c.name, namespaceText(ident), ident[len(ident)-1], v.location)
	if err != nil {
		// A name that is taken is told by each database in its own words; the pointer is not.
		there, perr := c.pointer(ctx, ident)
		switch {
		case perr == nil && there == v.location: // a repeated statement found its own work
		case perr == nil:
			c.io.remove(key)
			return nil, exists()
		default:
			return nil, fmt.Errorf("catalog: creating table %s: %w", shown(ident), err)
		}
	}
	c.remember(ident, v)
	return c.table(ident, v), nil
}

// write begins to store meta as the metadata file number n, under a name of its own.
func (c *sqlCatalog) write(ident []string, n int, meta table.Metadata) (version, string, error) {
	dir, ok := c.store.Key(metadataLocation(meta))
	if !ok {
		return version{}, "", fmt.Errorf("table %s: %w", shown(ident), c.io.outside("writing metadata under", meta.Location()))
	}
	data, meta, err := c.io.encode(meta)
	if err != nil {
		return version{}, "", err
	}
	key := fmt.Sprintf("%s/%05d-%s.metadata.json", dir, n, uuid.NewString())
	c.io.write(key, data)
	return version{meta: meta, location: c.store.Location(key), sum: sha256.Sum256(data)}, key, nil
}

// CommitTable implements [catalog.Catalog]. Moving the pointer is the commit.
func (c *sqlCatalog) CommitTable(ctx context.Context, ident table.Identifier, reqs []table.Requirement, updates []table.Update) (table.Metadata, string, error) {
	if err := ValidateIdent(ident); err != nil {
		return nil, "", err
	}
	cur, remembered := c.recall(ident)
	if !remembered {
		var err error
		if cur, err = c.load(ctx, ident); err != nil {
			return nil, "", err
		}
	}
	next, err := stage(ctx, cur, reqs, updates)
	if err != nil && remembered {
		newer, lerr := c.load(ctx, ident)
		if lerr != nil {
			return nil, "", lerr
		}
		if newer.location != cur.location {
			cur = newer
			next, err = stage(ctx, cur, reqs, updates)
		}
	}
	if err != nil {
		return nil, "", fmt.Errorf("table %s: %w", shown(ident), err)
	}
	if next == nil {
		return cur.meta, cur.location, nil
	}
	stem, _ := hintFor(cur.location)
	v, key, err := c.write(ident, hintOrder(stem)+1, next)
	if err != nil {
		return nil, "", err
	}
	if err := c.io.ready(ctx, next); err != nil {
		c.io.remove(key)
		return nil, "", fmt.Errorf("table %s: nothing was committed: %w", shown(ident), err)
	}
	res, err := c.db.ExecContext(ctx, "UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = ?"+
		" WHERE catalog_name = ? AND table_namespace = ? AND table_name = ? AND metadata_location = ?",
		v.location, cur.location, c.name, namespaceText(ident), ident[len(ident)-1], cur.location)
	var moved int64
	if err == nil {
		moved, err = res.RowsAffected()
	}
	if err != nil {
		c.forget(ident)
		return nil, "", fmt.Errorf("table %s: it is not known whether %s was committed: %w", shown(ident), v.location, err)
	}
	if moved == 0 {
		c.forget(ident)
		// A driver that repeats a statement whose answer was lost finds its own work.
		there, err := c.pointer(ctx, ident)
		if err != nil && !errors.Is(err, catalog.ErrNoSuchTable) {
			return nil, "", fmt.Errorf("table %s: it is not known whether %s was committed: %w", shown(ident), v.location, err)
		}
		if err != nil || there != v.location {
			c.io.remove(key)
			return nil, "", fmt.Errorf("%w: table %s: another writer moved it on from %s", table.ErrCommitFailed, shown(ident), cur.location)
		}
	}
	c.remember(ident, v)
	return v.meta, v.location, nil
}

// DropTable and RenameTable are iceberg-go's: they change the database only.

// Close releases the database.
func (c *sqlCatalog) Close() error { return errors.Join(c.Catalog.Close(), c.db.Close()) }
