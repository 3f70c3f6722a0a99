package icebergtable

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore"
)

const (
	// trustFor is how long a version may be taken for the newest one without looking.
	// It must be far below the age at which metadata files are deleted (a day): a
	// writer that slept past it could create anew a version that was deleted.
	trustFor = time.Hour
	// slowPut is how long the put of a new version may take before its success alone
	// is not believed, for the same reason: it may have been sent long before.
	slowPut = time.Minute
	// namespaceMarker holds a namespace's properties, as a JSON object, or nothing; it
	// is what is left of a namespace without tables.
	namespaceMarker = ".namespace"
)

// filesystem is the catalog that is nothing but files, in Hadoop layout. It is safe
// for concurrent use, in any number of processes.
type filesystem struct {
	store *objstore.Store
	io    *IO
	now   func() time.Time

	remembered[known]
}

// known is the newest version of a table, as far as this process has seen.
type known struct {
	version
	n    int
	seen time.Time // when it was the newest, by both of a time's clocks
}

var _ catalog.Catalog = (*filesystem)(nil)

func newFilesystem(store *objstore.Store, fileIO *IO) *filesystem {
	return &filesystem{store: store, io: fileIO, now: time.Now}
}

// elapsed is the time from then to now by the clock that says more: one stops
// while a machine sleeps, the other can be set back.
func elapsed(then, now time.Time) time.Duration {
	return max(now.Sub(then), now.Round(0).Sub(then.Round(0)))
}

func versionKey(ident []string, n int) string {
	return metadataKey(ident) + "/v" + strconv.Itoa(n) + ".metadata.json"
}

// load finds the newest version: the hint, or what this process knows if that is
// newer, then forward one by one. Only where the place to begin is missing is the
// folder listed.
func (c *filesystem) load(ctx context.Context, ident []string) (known, error) {
	began := c.now()
	hinted := 0
	hint, err := c.store.Get(ctx, metadataKey(ident)+"/"+hintFile)
	switch {
	case err == nil:
		hinted, _ = strconv.Atoi(strings.TrimSpace(string(hint)))
	case !errors.Is(err, objstore.ErrNotFound):
		return known{}, err
	}
	start := hinted
	if k, ok := c.recall(ident); ok {
		start = max(start, k.n)
	}
	return c.loadFrom(ctx, ident, start, hinted, began)
}

// loadFrom is load from version start, or from the newest one listed where start is
// missing or not positive; hinted is the version that the hint names, or 0. began is a moment before anything was read.
func (c *filesystem) loadFrom(ctx context.Context, ident []string, start, hinted int, began time.Time) (known, error) {
	var data []byte
	var err error
	if start > 0 {
		data, err = c.store.Get(ctx, versionKey(ident, start))
	}
	if start <= 0 || errors.Is(err, objstore.ErrNotFound) {
		if start, err = c.newest(ctx, ident); err != nil {
			return known{}, err
		}
		if start > 0 && start < hinted {
			// The hint is written after the version it names: a version is gone that was
			// the newest. To go on from an older one would drop its rows.
			c.forget(ident)
			return known{}, fmt.Errorf("table %s: %s names version %d, but the newest metadata file in %s is v%d: either a metadata file is lost, and must be brought back, or the hint is wrong, and must say %d",
				shown(ident), hintFile, hinted, folderName(c.store, metadataKey(ident)), start, start)
		}
		if start == 0 {
			c.forget(ident)
			return known{}, noSuchTable(ident)
		}
		data, err = c.store.Get(ctx, versionKey(ident, start))
	}
	if err != nil {
		return known{}, err
	}
	for {
		next, err := c.store.Get(ctx, versionKey(ident, start+1))
		if errors.Is(err, objstore.ErrNotFound) {
			break
		}
		if err != nil {
			return known{}, err
		}
		data, start = next, start+1
	}
	k, ok := c.recall(ident)
	if !ok || k.n != start || k.sum != sha256.Sum256(data) {
		v, err := parse(data, c.store.Location(versionKey(ident, start)))
		if err != nil {
			return known{}, err
		}
		k = known{version: v, n: start}
	}
	k.seen = began
	c.remember(ident, k)
	return k, nil
}

// newest lists the versions and returns the highest, or 0.
func (c *filesystem) newest(ctx context.Context, ident []string) (int, error) {
	newest := 0
	for o, err := range c.store.List(ctx, metadataKey(ident)+"/v", "") { // passes over manifests
		if err != nil {
			return 0, err
		}
		newest = max(newest, parseVersion(path.Base(o.Key)))
	}
	return newest, nil
}

// isTable reports whether the folder of ident is a table's, without reading it.
func (c *filesystem) isTable(ctx context.Context, ident []string) (bool, error) {
	n, err := c.newest(ctx, ident)
	return n > 0, err
}

// LoadTable implements [catalog.Catalog].
func (c *filesystem) LoadTable(ctx context.Context, ident table.Identifier) (*table.Table, error) {
	if err := ValidateIdent(ident); err != nil {
		return nil, fmt.Errorf("%w: %w", catalog.ErrNoSuchTable, err)
	}
	k, err := c.load(ctx, ident)
	if err != nil {
		return nil, err
	}
	return c.table(ident, k.version), nil
}

func (c *filesystem) table(ident []string, v version) *table.Table {
	return table.New(ident, v.meta, v.location, c.fs, c)
}

func (c *filesystem) fs(ctx context.Context) (icebergio.IO, error) { return c.io.For(ctx), nil }

// CreateTable implements [catalog.Catalog]. Putting v1 is what creates the table, so
// there is nothing half-made. The namespace is made on demand.
func (c *filesystem) CreateTable(ctx context.Context, ident table.Identifier, schema *iceberg.Schema, opts ...catalog.CreateTableOpt) (*table.Table, error) {
	if err := ValidateIdent(ident); err != nil {
		return nil, err
	}
	location := c.store.Location(IcebergKey(ident))
	meta, err := newMetadata(schema, location, opts)
	if err != nil {
		return nil, err
	}
	if err := checkLayout(nil, meta); err != nil {
		return nil, err
	}
	if meta.Location() != location {
		return nil, fmt.Errorf("%w: table %s is asked for at %s; in a filesystem catalog it lies at %s", ErrRefused, shown(ident), meta.Location(), location)
	}
	switch _, err := c.load(ctx, ident); {
	case err == nil:
		return nil, fmt.Errorf("%w: %s", catalog.ErrTableAlreadyExists, shown(ident))
	case !errors.Is(err, catalog.ErrNoSuchTable):
		return nil, err
	}
	if occupied := checkFree(ctx, c.store, ident, func(above []string) (bool, error) { return c.isTable(ctx, above) }); occupied != nil {
		// What was found may be the work of someone who made the table just now.
		if _, err := c.load(ctx, ident); err == nil {
			return nil, fmt.Errorf("%w: %s", catalog.ErrTableAlreadyExists, shown(ident))
		}
		return nil, occupied
	}
	v, _, err := c.put(ctx, ident, 1, meta)
	if errors.Is(err, objstore.ErrExists) {
		return nil, fmt.Errorf("%w: %s: %w", catalog.ErrTableAlreadyExists, shown(ident), err)
	}
	if err != nil {
		return nil, err
	}
	return c.table(ident, v), nil
}

// newMetadata is a new table's first metadata, at location unless opts say otherwise.
func newMetadata(schema *iceberg.Schema, location string, opts []catalog.CreateTableOpt) (table.Metadata, error) {
	cfg := catalog.NewCreateTableCfg()
	for _, opt := range opts {
		opt(&cfg)
	}
	if cfg.Location != "" {
		location = cfg.Location
	}
	meta, err := table.NewMetadata(schema, cfg.PartitionSpec, cfg.SortOrder, location, cfg.Properties)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return meta, nil
}

// put publishes meta as version n, if there is no such version, and remembers it.
// raced is a moment before it could have been published.
func (c *filesystem) put(ctx context.Context, ident []string, n int, meta table.Metadata) (v version, raced time.Time, err error) {
	data, meta, err := c.io.encode(meta)
	if err != nil {
		return version{}, raced, err
	}
	key := versionKey(ident, n)
	v = version{meta: meta, location: c.store.Location(key), sum: sha256.Sum256(data)}
	raced = c.now()
	err = c.store.PutIfAbsent(ctx, key, data)
	if errors.Is(err, objstore.ErrExists) {
		// A client that repeats a request whose response was lost finds its own work.
		if there, gerr := c.store.Get(ctx, key); gerr == nil && bytes.Equal(there, data) {
			err = nil
		}
	}
	if err != nil {
		c.forget(ident)
		return version{}, raced, err
	}
	c.remember(ident, known{version: v, n: n, seen: raced})
	return v, raced, nil
}

// CommitTable implements [catalog.Catalog]. Putting the next version is the commit.
func (c *filesystem) CommitTable(ctx context.Context, ident table.Identifier, reqs []table.Requirement, updates []table.Update) (table.Metadata, string, error) {
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
	next, err := stage(ctx, cur.version, reqs, updates)
	if err != nil && remembered {
		// The caller may have seen a version that this catalog object has not.
		newer, lerr := c.load(ctx, ident)
		if lerr != nil {
			return nil, "", lerr
		}
		if newer.sum != cur.sum {
			cur = newer
			next, err = stage(ctx, cur.version, reqs, updates)
		}
	}
	if err != nil {
		return nil, "", fmt.Errorf("table %s: %w", shown(ident), err)
	}
	if next == nil {
		return cur.meta, cur.location, nil
	}
	if err := checkLayout(cur.meta, next); err != nil {
		return nil, "", fmt.Errorf("table %s: %w", shown(ident), err)
	}
	if err := c.io.ready(ctx, next); err != nil {
		return nil, "", fmt.Errorf("table %s: nothing was committed: %w", shown(ident), err)
	}
	if elapsed(cur.seen, c.now()) > trustFor { // a rare commit, or uploads that were held up
		newer, err := c.load(ctx, ident)
		if err != nil {
			return nil, "", err
		}
		if newer.sum != cur.sum {
			return nil, "", c.lost(ident, newer.n)
		}
	}
	v, raced, err := c.put(ctx, ident, cur.n+1, next)
	switch {
	case errors.Is(err, objstore.ErrExists):
		return nil, "", c.lost(ident, cur.n+1)
	case err != nil:
		return nil, "", fmt.Errorf("table %s: it is not known whether version %d was committed: %w", shown(ident), cur.n+1, err)
	case elapsed(raced, c.now()) > slowPut:
		if err := c.confirm(ctx, ident, cur.version, v); err != nil {
			return nil, "", err
		}
	}
	return v.meta, v.location, nil
}

func (c *filesystem) lost(ident []string, n int) error {
	return fmt.Errorf("%w: table %s: version %d was committed by another writer", table.ErrCommitFailed, shown(ident), n)
}

// confirm looks for a version that was put in the table's newest one, found by
// listing: the put took so long that its name may have been free because the
// versions around it were deleted as old.
func (c *filesystem) confirm(ctx context.Context, ident []string, base, ours version) error {
	c.forget(ident)
	latest, err := c.loadFrom(ctx, ident, 0, 0, c.now())
	if err != nil {
		return fmt.Errorf("table %s: it is not known whether %s was committed: %w", shown(ident), ours.location, err)
	}
	if !confirmed(base, ours, latest.version) {
		return fmt.Errorf("%w: table %s: %s was written too late; the table is at version %d, which does not descend from it",
			table.ErrCommitFailed, shown(ident), ours.location, latest.n)
	}
	return nil
}

// CheckTableExists implements [catalog.Catalog].
func (c *filesystem) CheckTableExists(ctx context.Context, ident table.Identifier) (bool, error) {
	_, err := c.LoadTable(ctx, ident)
	if errors.Is(err, catalog.ErrNoSuchTable) {
		return false, nil
	}
	return err == nil, err
}

// ListTables implements [catalog.Catalog].
func (c *filesystem) ListTables(ctx context.Context, namespace table.Identifier) iter.Seq2[table.Identifier, error] {
	return func(yield func(table.Identifier, error) bool) {
		if ok, err := c.CheckNamespaceExists(ctx, namespace); err != nil || !ok {
			if err == nil {
				err = noSuchNamespace(namespace)
			}
			yield(nil, err)
			return
		}
		for ident, err := range c.folders(ctx, namespace, true) {
			if !yield(ident, err) || err != nil {
				return
			}
		}
	}
}

// folders yields the tables, or else the namespaces, directly in a namespace.
func (c *filesystem) folders(ctx context.Context, parent []string, tables bool) iter.Seq2[table.Identifier, error] {
	return func(yield func(table.Identifier, error) bool) {
		prefix := ""
		if len(parent) > 0 {
			prefix = TableKey(parent) + "/"
		}
		for name, err := range c.store.Folders(ctx, prefix) {
			if err != nil {
				yield(nil, err)
				return
			}
			if CheckName(name) != nil {
				continue
			}
			ident := append(parent[:len(parent):len(parent)], name)
			is := false
			if len(parent) > 0 {
				if is, err = c.isTable(ctx, ident); err != nil {
					yield(nil, err)
					return
				}
			}
			if is == tables && !yield(ident, nil) {
				return
			}
		}
	}
}

// ListNamespaces implements [catalog.Catalog].
func (c *filesystem) ListNamespaces(ctx context.Context, parent table.Identifier) ([]table.Identifier, error) {
	if len(parent) > 0 {
		if ok, err := c.CheckNamespaceExists(ctx, parent); err != nil || !ok {
			return nil, errors.Join(err, noSuchNamespace(parent))
		}
	}
	var out []table.Identifier
	for ident, err := range c.folders(ctx, parent, false) {
		if err != nil {
			return nil, err
		}
		// Where empty folders count, one is no namespace.
		if ok, err := c.CheckNamespaceExists(ctx, ident); err != nil {
			return nil, err
		} else if ok {
			out = append(out, ident)
		}
	}
	return out, nil
}

func noSuchNamespace(ns []string) error {
	return fmt.Errorf("%w: %s", catalog.ErrNoSuchNamespace, shown(ns))
}

// CheckNamespaceExists implements [catalog.Catalog]: a namespace exists that holds
// anything, and is no table.
func (c *filesystem) CheckNamespaceExists(ctx context.Context, namespace table.Identifier) (bool, error) {
	if CheckNamespace(namespace) != nil {
		return false, nil
	}
	if len(namespace) > 1 {
		if is, err := c.isTable(ctx, namespace); err != nil || is {
			return false, err
		}
	}
	for _, err := range c.store.List(ctx, TableKey(namespace)+"/", "") {
		return err == nil, err
	}
	return false, nil
}

// CreateNamespace implements [catalog.Catalog].
func (c *filesystem) CreateNamespace(ctx context.Context, namespace table.Identifier, props iceberg.Properties) error {
	if err := CheckNamespace(namespace); err != nil {
		return err
	}
	exists, err := c.CheckNamespaceExists(ctx, namespace)
	if err != nil {
		return err
	}
	if !exists {
		var data []byte
		if len(props) > 0 {
			if data, err = json.Marshal(props); err != nil {
				return err
			}
		}
		err = c.store.PutIfAbsent(ctx, TableKey(namespace)+"/"+namespaceMarker, data)
	}
	if exists || errors.Is(err, objstore.ErrExists) {
		return fmt.Errorf("%w: %s", catalog.ErrNamespaceAlreadyExists, shown(namespace))
	}
	return err
}

// DropNamespace implements [catalog.Catalog].
func (c *filesystem) DropNamespace(ctx context.Context, namespace table.Identifier) error {
	if err := CheckNamespace(namespace); err != nil {
		return fmt.Errorf("%w: %w", catalog.ErrNoSuchNamespace, err)
	}
	marker, found := TableKey(namespace)+"/"+namespaceMarker, false
	for o, err := range c.store.List(ctx, TableKey(namespace)+"/", "") {
		if err != nil {
			return err
		}
		if o.Key != marker {
			return fmt.Errorf("%w: %s holds %s", catalog.ErrNamespaceNotEmpty, shown(namespace), o.Key)
		}
		found = true
	}
	if !found {
		return noSuchNamespace(namespace)
	}
	return c.store.Delete(ctx, marker)
}

// LoadNamespaceProperties implements [catalog.Catalog]: what was set, and the location.
func (c *filesystem) LoadNamespaceProperties(ctx context.Context, namespace table.Identifier) (iceberg.Properties, error) {
	props, err := c.namespaceProperties(ctx, namespace)
	if err != nil {
		return nil, err
	}
	props["location"] = c.store.Location(TableKey(namespace))
	return props, nil
}

func (c *filesystem) namespaceProperties(ctx context.Context, namespace table.Identifier) (iceberg.Properties, error) {
	ok, err := c.CheckNamespaceExists(ctx, namespace)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, noSuchNamespace(namespace)
	}
	props := iceberg.Properties{}
	key := TableKey(namespace) + "/" + namespaceMarker
	data, err := c.store.Get(ctx, key)
	if errors.Is(err, objstore.ErrNotFound) || (err == nil && len(data) == 0) {
		return props, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &props); err != nil {
		return nil, fmt.Errorf("namespace %s: its properties in %s cannot be read: %w", shown(namespace), key, err)
	}
	return props, nil
}

// UpdateNamespaceProperties implements [catalog.Catalog]. Of two updates at once the
// later one stands: nothing of ours depends on these properties.
func (c *filesystem) UpdateNamespaceProperties(ctx context.Context, namespace table.Identifier, removals []string, updates iceberg.Properties) (catalog.PropertiesUpdateSummary, error) {
	var summary catalog.PropertiesUpdateSummary
	for _, key := range removals {
		if _, ok := updates[key]; ok {
			return summary, fmt.Errorf("%w: namespace property %s is to be both set and removed", ErrRefused, key)
		}
	}
	props, err := c.namespaceProperties(ctx, namespace)
	if err != nil {
		return summary, err
	}
	for _, key := range removals {
		if _, ok := props[key]; ok {
			summary.Removed = append(summary.Removed, key)
			delete(props, key)
		} else {
			summary.Missing = append(summary.Missing, key)
		}
	}
	for key, value := range updates {
		if old, ok := props[key]; !ok || old != value {
			summary.Updated = append(summary.Updated, key)
		}
		props[key] = value
	}
	slices.Sort(summary.Updated)
	data, err := json.Marshal(props)
	if err != nil {
		return summary, err
	}
	return summary, c.store.Put(ctx, TableKey(namespace)+"/"+namespaceMarker, data)
}

// DropTable implements [catalog.Catalog]; it is not supported: in this catalog a
// table is its folder, data and Delta log included.
func (c *filesystem) DropTable(_ context.Context, ident table.Identifier) error {
	return fmt.Errorf("%w: a filesystem catalog drops no tables; to drop %s, stop its writers and delete its folder", ErrRefused, shown(ident))
}

// RenameTable implements [catalog.Catalog]; it is not supported: a table's files
// name each other by its folder.
func (c *filesystem) RenameTable(_ context.Context, from, _ table.Identifier) (*table.Table, error) {
	return nil, fmt.Errorf("%w: a filesystem catalog cannot rename %s: a table's files name each other by its folder", ErrRefused, shown(from))
}

// CatalogType implements [catalog.Catalog].
func (c *filesystem) CatalogType() catalog.Type { return catalog.Hadoop }

// Close implements [catalog.Closer].
func (c *filesystem) Close() error { return nil }
