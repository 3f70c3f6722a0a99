package deltalog

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore"
)

const (
	testRoot = "ns/events/delta"
	testUUID = "6f1b0a52-9f5e-4f1c-8d3b-0f2f7f6f0a11"
)

// bench is a warehouse on disk with one Iceberg table, whose catalog is this
// process's memory. Its data files are named only, unless a test writes them.
type bench struct {
	t     *testing.T
	store *objstore.Store
	cat   *memoryCatalog
	n     int
}

// memoryCatalog is the least catalog that the table library commits through.
type memoryCatalog struct {
	mu   sync.Mutex
	meta table.Metadata
	n    int
	fs   icebergio.IO
}

func (c *memoryCatalog) LoadTable(context.Context, table.Identifier) (*table.Table, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at(c.meta, c.n), nil
}

func (c *memoryCatalog) at(meta table.Metadata, n int) *table.Table {
	return table.New([]string{"ns", "events"}, meta, fmt.Sprintf("memory-%d", n),
		func(context.Context) (icebergio.IO, error) { return c.fs, nil }, c)
}

func (c *memoryCatalog) CommitTable(_ context.Context, _ table.Identifier, reqs []table.Requirement, updates []table.Update) (table.Metadata, string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range reqs {
		if err := r.Validate(c.meta); err != nil {
			return nil, "", err
		}
	}
	meta, err := table.UpdateTableMetadata(c.meta, updates, "")
	if err != nil {
		return nil, "", err
	}
	c.meta = meta
	c.n++
	return meta, fmt.Sprintf("memory-%d", c.n), nil
}

func newBench(t *testing.T, schema *iceberg.Schema, props iceberg.Properties) *bench {
	t.Helper()
	store, err := objstore.Open(t.Context(), objstore.Config{URL: filepath.Join(t.TempDir(), "wh")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	b := &bench{t: t, store: store, cat: &memoryCatalog{fs: icebergio.LocalFS{}}}
	b.create(testUUID, schema, props)
	return b
}

// create makes the table anew.
func (b *bench) create(id string, schema *iceberg.Schema, props iceberg.Properties) {
	all := iceberg.Properties{table.WriteDataPathKey: b.store.Location(testRoot), table.PropertyFormatVersion: "2"}
	for k, v := range props {
		all[k] = v
	}
	meta, err := table.NewMetadataWithUUID(schema, iceberg.UnpartitionedSpec, table.UnsortedSortOrder,
		b.store.Location("ns/events/iceberg"), all, uuid.MustParse(id))
	require.NoError(b.t, err)
	b.cat.mu.Lock()
	b.cat.meta = meta
	b.cat.mu.Unlock()
}

func (b *bench) table() *table.Table {
	tbl, err := b.cat.LoadTable(b.t.Context(), nil)
	require.NoError(b.t, err)
	return tbl
}

// name is a fresh data file's location.
func (b *bench) name() string {
	b.n++
	return b.store.Location(fmt.Sprintf("%s/part-%d.parquet", testRoot, b.n))
}

func (b *bench) dataFile(location string, rows int64) iceberg.DataFile {
	f, err := iceberg.NewDataFileBuilder(*iceberg.UnpartitionedSpec, iceberg.EntryContentData, location, iceberg.ParquetFile, nil, nil, nil, rows, 100*rows)
	require.NoError(b.t, err)
	return f.
		ColumnSizes(map[int]int64{1: 80}).ValueCounts(map[int]int64{1: rows}).NullValueCounts(map[int]int64{1: 0}).
		LowerBoundValues(map[int][]byte{1: le64(1)}).UpperBoundValues(map[int][]byte{1: le64(uint64(rows))}).Build()
}

// append commits files of one row count each.
func (b *bench) append(rows ...int64) []iceberg.DataFile {
	var files []iceberg.DataFile
	for _, n := range rows {
		files = append(files, b.dataFile(b.name(), n))
	}
	b.appendFiles(files...)
	return files
}

func (b *bench) appendFiles(files ...iceberg.DataFile) {
	b.commit(func(txn *table.Transaction) error {
		return txn.AddDataFiles(b.t.Context(), files, nil, table.WithoutDuplicateCheck(), table.WithoutAutoNameMapping())
	})
}

func (b *bench) commit(do func(*table.Transaction) error) {
	b.t.Helper()
	txn := b.table().NewTransaction()
	require.NoError(b.t, do(txn))
	_, err := txn.Commit(b.t.Context())
	require.NoError(b.t, err)
}

// alter commits a schema change without a snapshot.
func (b *bench) alter(do func(*table.UpdateSchema) *table.UpdateSchema) {
	b.t.Helper()
	b.commit(func(txn *table.Transaction) error { return do(txn.UpdateSchema(true, true)).Commit() })
}

// rewrite commits a replacement of files by one.
func (b *bench) rewrite(old []iceberg.DataFile, rows int64) iceberg.DataFile {
	b.t.Helper()
	f := b.dataFile(b.name(), rows)
	b.commit(func(txn *table.Transaction) error {
		rw := txn.NewRewrite(nil)
		for _, o := range old {
			rw.DeleteFile(o)
		}
		return rw.AddDataFile(f).Commit(b.t.Context())
	})
	return f
}

// expire removes all snapshots but the current one.
func (b *bench) expire() {
	b.t.Helper()
	head := b.table().CurrentSnapshot().SnapshotID
	var ids []int64
	for _, s := range b.table().Metadata().Snapshots() {
		if s.SnapshotID != head {
			ids = append(ids, s.SnapshotID)
		}
	}
	_, _, err := b.cat.CommitTable(b.t.Context(), nil, nil, []table.Update{table.NewRemoveSnapshotsUpdate(ids, false)})
	require.NoError(b.t, err)
}

func (b *bench) mirror() *Mirror { return NewMirror(b.store, testRoot, Options{}) }

func (b *bench) catchUp(m *Mirror, known ...Appended) Status {
	b.t.Helper()
	s, err := m.CatchUp(b.t.Context(), b.table(), known...)
	require.NoError(b.t, err)
	return s
}

// version is one version's text.
func (b *bench) version(v int64) string {
	b.t.Helper()
	data, err := b.store.Get(b.t.Context(), testRoot+"/_delta_log/"+commitName(v))
	require.NoError(b.t, err)
	return string(data)
}

func (b *bench) actions(v int64) []Action {
	b.t.Helper()
	out, err := decode([]byte(b.version(v)))
	require.NoError(b.t, err)
	return out
}

// live is the log's live set as a fresh reader finds it.
func (b *bench) live() []string {
	b.t.Helper()
	l := logStore{store: b.store, root: testRoot}
	st, err := l.load(b.t.Context())
	require.NoError(b.t, err)
	r, err := l.replay(b.t.Context(), st.checkpoint, st.version)
	require.NoError(b.t, err)
	out := []string{}
	for _, f := range r.files() {
		out = append(out, f.rel)
	}
	return out
}

// wantLive is the table's live set.
func (b *bench) wantLive() []string {
	b.t.Helper()
	snap := b.table().CurrentSnapshot()
	live, err := readLive(b.cat.fs, *snap)
	require.NoError(b.t, err)
	files, err := convertFiles(b.store.Location(testRoot), &tableSchema{}, live)
	require.NoError(b.t, err)
	out := []string{}
	for _, f := range files {
		out = append(out, f.Path)
	}
	return out
}

// requireEqual is the promise: both formats show the same files.
func (b *bench) requireEqual() {
	b.t.Helper()
	require.ElementsMatch(b.t, b.wantLive(), b.live())
}

func idSchema() *iceberg.Schema {
	return iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
		iceberg.NestedField{ID: 2, Name: "name", Type: iceberg.PrimitiveTypes.String})
}

// faultyStore counts and bends the operations of a store.
type faultyStore struct {
	Store
	mu    sync.Mutex
	ops   []string
	put   func(key string, do func() error) error // nil: as it is
	getIt func(key string) error
}

func (f *faultyStore) note(op, key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ops = append(f.ops, op+" "+filepath.Base(key))
}

func (f *faultyStore) taken() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.ops
	f.ops = nil
	return out
}

func (f *faultyStore) Get(ctx context.Context, key string) ([]byte, error) {
	f.note("get", key)
	if f.getIt != nil {
		if err := f.getIt(key); err != nil {
			return nil, err
		}
	}
	return f.Store.Get(ctx, key)
}

func (f *faultyStore) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	f.note("put", key)
	do := func() error { return f.Store.PutIfAbsent(ctx, key, data) }
	if f.put != nil {
		return f.put(key, do)
	}
	return do()
}

func (f *faultyStore) List(ctx context.Context, prefix, after string) iter.Seq2[objstore.Object, error] {
	f.note("list", prefix)
	return f.Store.List(ctx, prefix, after)
}

// parquetFile writes a real data file of the given schema with one row of
// NULLs and zeros, and describes it.
func (b *bench) parquetFile(schema *iceberg.Schema) iceberg.DataFile {
	b.t.Helper()
	as, err := table.SchemaToArrowSchema(schema, nil, true, false)
	require.NoError(b.t, err)
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(b.t, 0)
	rb := array.NewRecordBuilder(mem, as)
	defer rb.Release()
	for i, f := range as.Fields() {
		if f.Nullable {
			rb.Field(i).AppendNull()
		} else {
			rb.Field(i).AppendEmptyValue()
		}
	}
	rec := rb.NewRecordBatch()
	defer rec.Release()
	var buf bytes.Buffer
	w, err := pqarrow.NewFileWriter(as, &buf, parquet.NewWriterProperties(parquet.WithAllocator(mem)), pqarrow.NewArrowWriterProperties(pqarrow.WithAllocator(mem)))
	require.NoError(b.t, err)
	require.NoError(b.t, w.Write(rec))
	require.NoError(b.t, w.Close())
	location := b.name()
	key, ok := b.store.Key(location)
	require.True(b.t, ok)
	require.NoError(b.t, b.store.Put(b.t.Context(), key, buf.Bytes()))
	return b.dataFile(location, 1)
}

func iceLocal() icebergio.IO { return icebergio.LocalFS{} }

// countingFS counts what is opened.
type countingFS struct {
	icebergio.IO
	opened int
}

func (c *countingFS) Open(name string) (icebergio.File, error) {
	c.opened++
	return c.IO.Open(name)
}
