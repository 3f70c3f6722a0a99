package commit

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/managed-lakehouse/managed-lakehouse/commit/icebergtable"
	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore"
)

// catalogs are the catalogs that every test here runs with.
func catalogs(t *testing.T, run func(t *testing.T, cfg Config)) {
	t.Run("filesystem", func(t *testing.T) {
		run(t, Config{
			Store:   objstore.Config{URL: filepath.Join(t.TempDir(), "lake house é")},
			Catalog: icebergtable.Config{Filesystem: &icebergtable.FilesystemConfig{}}, Delta: true,
		})
	})
	t.Run("sqlite", func(t *testing.T) {
		dir := t.TempDir()
		run(t, Config{
			Store:   objstore.Config{URL: filepath.Join(dir, "lakehouse")},
			Catalog: icebergtable.Config{SQL: &icebergtable.SQLConfig{Driver: "sqlite", DSN: "file:" + filepath.Join(dir, "catalog.db")}}, Delta: true,
		})
	})
}

func openWarehouse(t *testing.T, cfg Config) *Warehouse {
	t.Helper()
	w, err := OpenWarehouse(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close(context.Background())) })
	return w
}

func rows(t *testing.T, schema *arrow.Schema, json string) arrow.RecordBatch {
	t.Helper()
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(json), array.WithMultipleDocs())
	require.NoError(t, err)
	return rec
}

func nullable(name string, dt arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: dt, Nullable: true}
}

var flat = arrow.NewSchema([]arrow.Field{nullable("id", arrow.PrimitiveTypes.Int64), nullable("name", arrow.BinaryTypes.String)}, nil)

// put commits one record in a draft of its own, as often as schema changes of others ask for it.
func put(t *testing.T, tbl *Table, rec arrow.RecordBatch) Result {
	t.Helper()
	for {
		d, err := tbl.Begin(t.Context(), rec.Schema())
		require.NoError(t, err)
		require.NoError(t, d.Write(t.Context(), rec))
		res, err := d.Commit(t.Context(), Info{Trigger: "rows"})
		if err != nil && strings.Contains(err.Error(), ErrSchemaChanged.Error()) {
			continue
		}
		require.NoError(t, err)
		return res
	}
}

// icebergFiles are the live data files by Iceberg's own metadata, relative to the data path.
func icebergFiles(t *testing.T, tbl *Table) (paths []string, total int64) {
	t.Helper()
	cur, err := tbl.load(t.Context())
	require.NoError(t, err)
	tasks, err := cur.Scan().PlanFiles(t.Context())
	require.NoError(t, err)
	for _, task := range tasks {
		paths = append(paths, strings.TrimPrefix(task.File.FilePath(), dataLocation(cur)+"/"))
		total += task.File.Count()
	}
	slices.Sort(paths)
	return paths, total
}

// deltaFiles are the live data files by the JSON of the Delta log alone.
func deltaFiles(t *testing.T, w *Warehouse, tbl *Table) []string {
	t.Helper()
	root, ok := w.store.Key(tbl.Places().Delta)
	require.True(t, ok)
	live := map[string]bool{}
	for obj, err := range w.store.List(t.Context(), root+"/_delta_log/", "") {
		require.NoError(t, err)
		if !strings.HasSuffix(obj.Key, ".json") {
			continue
		}
		data, err := w.store.Get(t.Context(), obj.Key)
		require.NoError(t, err)
		for line := range strings.Lines(string(data)) {
			var action struct{ Add, Remove *struct{ Path string } }
			require.NoError(t, json.Unmarshal([]byte(line), &action))
			if action.Remove != nil {
				delete(live, action.Remove.Path)
			}
			if action.Add != nil {
				live[action.Add.Path] = true
			}
		}
	}
	var out []string
	for p := range live {
		out = append(out, p)
	}
	slices.Sort(out)
	return out
}

func equalSides(t *testing.T, w *Warehouse, tbl *Table, wantRows int64) {
	t.Helper()
	files, total := icebergFiles(t, tbl)
	require.Equal(t, wantRows, total)
	require.Equal(t, files, deltaFiles(t, w, tbl))
	root, _ := w.store.Key(tbl.Places().Delta)
	for _, f := range files {
		_, err := w.store.Stat(t.Context(), root+"/"+f)
		require.NoError(t, err)
	}
}

func TestCommitCreatesAppendsAndEvolves(t *testing.T) {
	catalogs(t, func(t *testing.T, cfg Config) {
		w := openWarehouse(t, cfg)
		tbl, err := w.OpenTable(t.Context(), []string{"shop", "events"}, TableOptions{})
		require.NoError(t, err)
		require.Nil(t, tbl.Schema())

		res := put(t, tbl, rows(t, flat, `{"id":9007199254740993,"name":"é"}
{"id":2,"name":null}`))
		require.EqualValues(t, 2, res.Rows)
		require.EqualValues(t, 0, res.DeltaVersion)
		res = put(t, tbl, rows(t, flat, `{"id":3,"name":"c"}`))
		require.EqualValues(t, 1, res.DeltaVersion)

		wide := arrow.NewSchema(append(flat.Fields(), nullable("o", arrow.StructOf(nullable("k", arrow.PrimitiveTypes.Float64)))), nil)
		res = put(t, tbl, rows(t, wide, `{"id":4,"name":"d","o":{"k":1.5}}`))
		require.EqualValues(t, 2, res.DeltaVersion)
		// A draft planned on the old schema still commits: its columns stand as they were.
		put(t, tbl, rows(t, flat, `{"id":5,"name":"e"}`))
		equalSides(t, w, tbl, 5)

		// A second process finds the same table.
		other := openWarehouse(t, cfg)
		again, err := other.OpenTable(t.Context(), []string{"shop", "events"}, TableOptions{})
		require.NoError(t, err)
		require.Equal(t, tbl.Schema().String(), again.Schema().String())
		put(t, again, rows(t, flat, `{"id":6,"name":"f"}`))
		put(t, tbl, rows(t, flat, `{"id":7,"name":"g"}`)) // stale: loses, reloads, wins
		equalSides(t, w, tbl, 7)
	})
}

// Two writers that evolve one schema both take the next field id. Every value must stay under its own name.
func TestTwoWritersEvolveOneSchema(t *testing.T) {
	catalogs(t, func(t *testing.T, cfg Config) {
		a, b := openWarehouse(t, cfg), openWarehouse(t, cfg)
		ta, err := a.OpenTable(t.Context(), []string{"t"}, TableOptions{})
		if err != nil { // a namespace is required
			ta, err = a.OpenTable(t.Context(), []string{"default", "t"}, TableOptions{})
		}
		require.NoError(t, err)
		put(t, ta, rows(t, flat, `{"id":1}`))
		tb, err := b.OpenTable(t.Context(), ta.Ident(), TableOptions{})
		require.NoError(t, err)

		withA := arrow.NewSchema([]arrow.Field{flat.Field(0), nullable("a", arrow.BinaryTypes.String)}, nil)
		withB := arrow.NewSchema([]arrow.Field{flat.Field(0), nullable("b", arrow.BinaryTypes.String)}, nil)
		da, err := ta.Begin(t.Context(), withA)
		require.NoError(t, err)
		db, err := tb.Begin(t.Context(), withB)
		require.NoError(t, err)
		require.NoError(t, da.Write(t.Context(), rows(t, withA, `{"id":2,"a":"A"}`)))
		require.NoError(t, db.Write(t.Context(), rows(t, withB, `{"id":3,"b":"B"}`)))
		_, err = da.Commit(t.Context(), Info{})
		require.NoError(t, err)
		_, err = db.Commit(t.Context(), Info{})
		require.ErrorIs(t, err, ErrSchemaChanged)
		require.Contains(t, tb.Schema().String(), "- a: type=utf8", "the schema that the rows must be converted for is known")
		put(t, tb, rows(t, withB, `{"id":3,"b":"B"}`))
		equalSides(t, a, ta, 3)

		cur, err := ta.load(t.Context())
		require.NoError(t, err)
		got, err := cur.Scan().ToArrowTable(t.Context())
		require.NoError(t, err)
		defer got.Release()
		require.Equal(t, map[string]string{"2": "A/(null)", "3": "(null)/B", "1": "(null)/(null)"}, byID(t, got))
	})
}

func byID(t *testing.T, tbl arrow.Table) map[string]string {
	t.Helper()
	out := map[string]string{}
	r := array.NewTableReader(tbl, 0)
	defer r.Release()
	col := func(rec arrow.RecordBatch, name string) arrow.Array {
		i := rec.Schema().FieldIndices(name)
		require.Len(t, i, 1, name)
		return rec.Column(i[0])
	}
	for r.Next() {
		rec := r.RecordBatch()
		for i := range int(rec.NumRows()) {
			out[col(rec, "id").ValueStr(i)] = col(rec, "a").ValueStr(i) + "/" + col(rec, "b").ValueStr(i)
		}
	}
	return out
}

func TestManyWriters(t *testing.T) {
	catalogs(t, func(t *testing.T, cfg Config) {
		const writers, commits = 4, 10
		first := openWarehouse(t, cfg)
		tbl, err := first.OpenTable(t.Context(), []string{"ns", "busy"}, TableOptions{})
		require.NoError(t, err)
		put(t, tbl, rows(t, flat, `{"id":0}`))
		var wg sync.WaitGroup
		errs := make([]error, writers)
		for n := range writers {
			wg.Go(func() {
				errs[n] = func() error {
					w, err := OpenWarehouse(t.Context(), cfg)
					if err != nil {
						return err
					}
					own, err := w.OpenTable(t.Context(), []string{"ns", "busy"}, TableOptions{})
					if err != nil {
						return err
					}
					for i := range commits {
						d, err := own.Begin(t.Context(), flat)
						if err != nil {
							return err
						}
						if err := d.Write(t.Context(), rows(t, flat, fmt.Sprintf(`{"id":%d}`, n*1000+i))); err != nil {
							return err
						}
						if _, err := d.Commit(t.Context(), Info{}); err != nil {
							return err
						}
					}
					return w.Close(t.Context())
				}()
			})
		}
		wg.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
		if _, _, err := tbl.projectNow(t); err != nil {
			require.NoError(t, err)
		}
		equalSides(t, first, tbl, 1+writers*commits)
	})
}

// projectNow brings the Delta side up to the table as it is now.
func (t *Table) projectNow(tt *testing.T) (int64, int, error) {
	cur, err := t.load(tt.Context())
	require.NoError(tt, err)
	require.NoError(tt, t.adopt(cur))
	return t.project(tt.Context())
}

func TestPartitionsOverManyDays(t *testing.T) {
	catalogs(t, func(t *testing.T, cfg Config) {
		w := openWarehouse(t, cfg)
		day, err := ParsePartition("day(ts)")
		require.NoError(t, err)
		tbl, err := w.OpenTable(t.Context(), []string{"ns", "days"}, TableOptions{PartitionBy: []PartitionField{day}})
		require.NoError(t, err)
		schema := arrow.NewSchema([]arrow.Field{nullable("id", arrow.PrimitiveTypes.Int64),
			nullable("ts", &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"})}, nil)
		const n, days = 4000, 200
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		defer b.Release()
		for i := range n {
			b.Field(0).(*array.Int64Builder).Append(int64(i))
			if i%days == 7 {
				b.Field(1).AppendNull()
				continue
			}
			b.Field(1).(*array.TimestampBuilder).Append(arrow.Timestamp(int64(i%days-100) * 86_400_000_000))
		}
		res := put(t, tbl, b.NewRecordBatch())
		require.Equal(t, days, res.Files, "one file a partition, NULL among them")
		equalSides(t, w, tbl, n)

		_, err = openWarehouse(t, cfg).OpenTable(t.Context(), []string{"ns", "days"}, TableOptions{PartitionBy: []PartitionField{{Source: "id", Transform: day.Transform}}})
		require.ErrorContains(t, err, "partition_by: the table is partitioned by [day(ts)]")
	})
}

func TestMappedNamesAreFixedAtCreation(t *testing.T) {
	catalogs(t, func(t *testing.T, cfg Config) {
		w := openWarehouse(t, cfg)
		spaced := arrow.NewSchema([]arrow.Field{nullable("two words", arrow.PrimitiveTypes.Int64)}, nil)
		tbl, err := w.OpenTable(t.Context(), []string{"ns", "mapped"}, TableOptions{MapColumnNames: true})
		require.NoError(t, err)
		require.EqualValues(t, 0, put(t, tbl, rows(t, spaced, `{"two words":1}`)).DeltaVersion)
		// Whoever opens it later writes on, whatever its own setting.
		again, err := openWarehouse(t, cfg).OpenTable(t.Context(), []string{"ns", "mapped"}, TableOptions{})
		require.NoError(t, err)
		wider := arrow.NewSchema(append(spaced.Fields(), nullable("x=y", arrow.PrimitiveTypes.Int64)), nil)
		require.EqualValues(t, 1, put(t, again, rows(t, wider, `{"two words":2,"x=y":3}`)).DeltaVersion)
		equalSides(t, w, again, 2)

		plain, err := w.OpenTable(t.Context(), []string{"ns", "plain"}, TableOptions{})
		require.NoError(t, err)
		put(t, plain, rows(t, flat, `{"id":1}`))
		_, err = openWarehouse(t, cfg).OpenTable(t.Context(), []string{"ns", "plain"}, TableOptions{MapColumnNames: true})
		var refused *RefusedError
		require.ErrorAs(t, err, &refused)
		require.ErrorContains(t, err, "column_names: map is fixed when a table is made")
	})
}

// What makes a table impossible is said when it is opened, before a row is written.
func TestOpenTableThatCannotBeMade(t *testing.T) {
	catalogs(t, func(t *testing.T, cfg Config) {
		w := openWarehouse(t, cfg)
		put := func(key, data string) { require.NoError(t, w.Store().Put(t.Context(), key, []byte(data))) }
		put("ns/used/notes.txt", "mine")
		put("file", "a file where a namespace would be")
		put("ns/plain", "a file where a table would be")
		var refused *RefusedError
		for _, c := range []struct{ ns, name, says string }{
			{"ns", "used", "already holds notes.txt"}, {"file", "t", "is a file"}, {"ns", "plain", "is a file"},
		} {
			_, err := w.OpenTable(t.Context(), []string{c.ns, c.name}, TableOptions{})
			require.ErrorAs(t, err, &refused, c.name)
			require.ErrorContains(t, err, c.says)
		}
		_, err := w.OpenTable(t.Context(), []string{"ns", "new"}, TableOptions{Properties: map[string]string{"write.data.path": "/x"}})
		require.ErrorAs(t, err, &refused)
		require.ErrorContains(t, err, "write.data.path")
	})
}

// A newest metadata file that is lost must not be passed over: its rows would be dropped.
func TestLostNewestMetadata(t *testing.T) {
	cfg := Config{Store: objstore.Config{URL: filepath.Join(t.TempDir(), "lake")},
		Catalog: icebergtable.Config{Filesystem: &icebergtable.FilesystemConfig{}}, Delta: true}
	w := openWarehouse(t, cfg)
	tbl, err := w.OpenTable(t.Context(), []string{"ns", "t"}, TableOptions{})
	require.NoError(t, err)
	put(t, tbl, rows(t, flat, `{"id":1}`))
	put(t, tbl, rows(t, flat, `{"id":2}`))
	before := deltaFiles(t, w, tbl)
	require.NoError(t, os.Remove(filepath.Join(cfg.Store.URL, "ns/t/iceberg/metadata/v3.metadata.json")))
	_, err = openWarehouse(t, cfg).OpenTable(t.Context(), []string{"ns", "t"}, TableOptions{})
	require.ErrorContains(t, err, "names version 3, but the newest metadata file")
	require.Equal(t, before, deltaFiles(t, w, tbl))
}

func TestAbortLeavesNothing(t *testing.T) {
	catalogs(t, func(t *testing.T, cfg Config) {
		w := openWarehouse(t, cfg)
		tbl, err := w.OpenTable(t.Context(), []string{"ns", "t"}, TableOptions{})
		require.NoError(t, err)
		put(t, tbl, rows(t, flat, `{"id":1}`))
		d, err := tbl.Begin(t.Context(), flat)
		require.NoError(t, err)
		require.NoError(t, d.Write(t.Context(), rows(t, flat, `{"id":2}`)))
		wide := arrow.NewSchema(append(flat.Fields(), nullable("x", arrow.PrimitiveTypes.Int32)), nil)
		require.NoError(t, d.Extend(t.Context(), wide)) // finishes the first file
		require.NoError(t, d.Write(t.Context(), rows(t, wide, `{"id":3}`)))
		d.Abort(t.Context())
		var parquet int
		require.NoError(t, filepath.WalkDir(cfg.Store.URL, func(p string, e fs.DirEntry, err error) error {
			if strings.HasSuffix(p, ".parquet") || strings.Contains(p, ".tmp") && !e.IsDir() {
				parquet++
			}
			return err
		}))
		require.Equal(t, 1, parquet)
		equalSides(t, w, tbl, 1)

		res, err := must(tbl.Begin(t.Context(), flat)).Commit(t.Context(), Info{})
		require.NoError(t, err)
		require.Zero(t, res.Rows, "a draft without rows commits nothing")
		require.Zero(t, res.SnapshotID)
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestOpenWarehouseRefusesAFileInItsPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	_, err := OpenWarehouse(t.Context(), Config{Store: objstore.Config{URL: path}, Catalog: icebergtable.Config{Filesystem: &icebergtable.FilesystemConfig{}}})
	require.ErrorContains(t, err, path)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "x", string(data))
}
