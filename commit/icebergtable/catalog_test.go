package icebergtable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore"
	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore/objstoretest"
)

func mustCreate(t *testing.T, c *Catalog, ident []string) *table.Table {
	t.Helper()
	tbl, err := c.CreateTable(t.Context(), ident, testSchema, CreateOptions{})
	require.NoError(t, err)
	return tbl
}

func mustAppend(t *testing.T, c *Catalog, ident []string, id string, ids ...int64) {
	t.Helper()
	_, err := appendRows(t.Context(), c, ident, id, ids...)
	require.NoError(t, err)
}

func mustLoad(t *testing.T, c *Catalog, ident []string) *table.Table {
	t.Helper()
	tbl, err := c.LoadTable(t.Context(), ident)
	require.NoError(t, err)
	return tbl
}

func setProperty(ctx context.Context, tbl *table.Table, key, value string) (*table.Table, error) {
	txn := tbl.NewTransaction()
	if err := txn.SetProperties(iceberg.Properties{key: value}); err != nil {
		return nil, err
	}
	return txn.Commit(ctx)
}

func readHint(t *testing.T, c *Catalog, ident []string) string {
	t.Helper()
	c.hints.wait(t.Context(), "")
	data, err := c.store.Get(t.Context(), metadataKey(ident)+"/"+hintFile)
	require.NoError(t, err)
	return string(data)
}

func TestCreateTable(t *testing.T) {
	eachKind(t, func(t *testing.T, w warehouse) {
		c := w.mustOpen(t)
		_, err := c.LoadTable(t.Context(), events)
		require.ErrorIs(t, err, catalog.ErrNoSuchTable)

		ident := table.Identifier{"a", "b", "Events-2024.01"} // a namespace of two levels, made on demand
		spec := iceberg.NewPartitionSpec(iceberg.PartitionField{SourceIDs: []int{1}, FieldID: 1000, Name: "id_bucket", Transform: iceberg.BucketTransform{NumBuckets: 4}})
		made, err := c.CreateTable(t.Context(), ident, testSchema, CreateOptions{PartitionSpec: &spec, Properties: iceberg.Properties{"owner": "me"}})
		require.NoError(t, err)
		for _, tbl := range []*table.Table{made, mustLoad(t, c, ident), mustLoad(t, w.mustOpen(t), ident)} {
			root := "file://" + w.url + "/a/b/Events-2024.01"
			require.Equal(t, ident, tbl.Identifier())
			require.Equal(t, root+"/iceberg", tbl.Location())
			require.Equal(t, root+"/iceberg/metadata/"+path.Base(tbl.MetadataLocation()), tbl.MetadataLocation())
			require.Equal(t, 2, tbl.Metadata().Version())
			require.Equal(t, iceberg.Properties{
				"write.data.path":                      root + "/delta",
				"commit.manifest-merge.enabled":        "true",
				"commit.manifest.min-count-to-merge":   "50",
				"write.metadata.previous-versions-max": "25",
				"owner":                                "me",
			}, tbl.Properties())
			spec := tbl.Spec()
			require.Equal(t, 1, spec.NumFields())
			require.Nil(t, tbl.CurrentSnapshot())
			fs, err := tbl.FS(t.Context())
			require.NoError(t, err)
			require.IsType(t, boundIO{}, fs)
		}
		text, _ := hintFor(made.MetadataLocation())
		require.Equal(t, text, readHint(t, c, ident))

		_, err = c.CreateTable(t.Context(), ident, testSchema, CreateOptions{})
		require.ErrorIs(t, err, catalog.ErrTableAlreadyExists)
		_, err = w.mustOpen(t).CreateTable(t.Context(), ident, testSchema, CreateOptions{})
		require.ErrorIs(t, err, catalog.ErrTableAlreadyExists)

		_, err = c.CreateTable(t.Context(), table.Identifier{"a", "../b"}, testSchema, CreateOptions{})
		require.ErrorIs(t, err, catalog.ErrInvalidIdentifier)
		_, err = c.LoadTable(t.Context(), table.Identifier{"a", "../b"})
		require.ErrorIs(t, err, catalog.ErrInvalidIdentifier)
		_, _, err = c.CommitTable(t.Context(), table.Identifier{"a", "../b"}, nil, nil)
		require.ErrorIs(t, err, catalog.ErrInvalidIdentifier)
		_, err = c.CreateTable(t.Context(), events, testSchema, CreateOptions{Properties: iceberg.Properties{"write.data.path": "/x"}})
		require.ErrorIs(t, err, ErrRefused)
		_, _, err = c.CommitTable(t.Context(), events, nil, nil)
		require.ErrorIs(t, err, catalog.ErrNoSuchTable)

		var tables []string
		for ident, err := range c.ListTables(t.Context(), table.Identifier{"a", "b"}) {
			require.NoError(t, err)
			tables = append(tables, shown(ident))
		}
		require.Equal(t, []string{"a.b.Events-2024.01"}, tables)
	})
}

func TestNamespacesOfFolders(t *testing.T) {
	c := newWarehouse(t, "filesystem").mustOpen(t)
	mustCreate(t, c, []string{"a", "b", "t1"})
	mustCreate(t, c, []string{"a", "t2"})
	mustCreate(t, c, []string{"c", "t3"})
	for parent, want := range map[string][]table.Identifier{"": {{"a"}, {"c"}}, "a": {{"a", "b"}}, "c": nil} {
		got, err := c.ListNamespaces(t.Context(), catalog.ToIdentifier(parent))
		require.NoError(t, err)
		require.ElementsMatch(t, want, got, "in %q", parent)
	}
	_, err := c.ListNamespaces(t.Context(), table.Identifier{"nothing"})
	require.ErrorIs(t, err, catalog.ErrNoSuchNamespace)
	for _, err := range c.ListTables(t.Context(), table.Identifier{"nothing"}) {
		require.ErrorIs(t, err, catalog.ErrNoSuchNamespace)
	}
	require.ErrorIs(t, c.inner.DropNamespace(t.Context(), table.Identifier{"a"}), catalog.ErrNamespaceNotEmpty)
	for _, err := range []error{
		c.inner.DropTable(t.Context(), table.Identifier{"a", "t2"}),
		func() error {
			_, err := c.inner.RenameTable(t.Context(), []string{"a", "t2"}, []string{"a", "t4"})
			return err
		}(),
		func() error {
			_, err := c.inner.UpdateNamespaceProperties(t.Context(), []string{"a"}, []string{"k"}, iceberg.Properties{"k": "v"})
			return err
		}(),
	} {
		require.True(t, IsDefiniteRefusal(err), "%v", err)
	}
	mustLoad(t, c, []string{"a", "t2"})
}

// TestFolderInUse shows that nothing is made over what is there already.
func TestFolderInUse(t *testing.T) {
	eachKind(t, func(t *testing.T, w warehouse) {
		c := w.mustOpen(t)
		put := func(key string) {
			t.Helper()
			require.NoError(t, c.store.Put(t.Context(), key, []byte("mine")))
		}
		for i, key := range []string{
			"notes.txt", "delta/part-1.parquet", "delta/_delta_log/00000000000000000000.json", "data/x.parquet", "metadata/v1.metadata.json",
			"iceberg/metadata/snap-1.avro", "iceberg/metadata/version-hint.text", "deeper/table/x",
			"iceberg/metadata/00003-11111111-2222-4333-8444-555555555555.metadata.json",
		} {
			ident := table.Identifier{"ns", fmt.Sprint("t", i)}
			put(TableKey(ident) + "/" + key)
			_, err := c.CreateTable(t.Context(), ident, testSchema, CreateOptions{})
			require.ErrorIs(t, err, ErrOccupied, key)
			require.True(t, IsDefiniteRefusal(err))
			require.ErrorContains(t, err, key)
			require.ErrorContains(t, err, filepath.Join(w.url, "ns", fmt.Sprint("t", i)), "the folder is named as people see it")
			n := 0
			for _, err := range c.store.List(t.Context(), TableKey(ident)+"/", "") {
				require.NoError(t, err)
				n++
			}
			require.Equal(t, 1, n, "nothing was written beside %s", key)
			_, err = c.LoadTable(t.Context(), ident)
			require.ErrorIs(t, err, catalog.ErrNoSuchTable)
		}

		// What a create that was cut off left is passed over.
		put("ns/cut/iceberg/metadata/00000-11111111-2222-4333-8444-555555555555.metadata.json")
		mustCreate(t, c, []string{"ns", "cut"})

		// A namespace inside of a table, and a table over a namespace.
		_, err := c.CreateTable(t.Context(), table.Identifier{"ns", "cut", "inner"}, testSchema, CreateOptions{})
		require.ErrorIs(t, err, ErrOccupied)
		require.ErrorContains(t, err, "inside of the table ns.cut")
		mustCreate(t, c, []string{"ns", "level", "t"})
		_, err = c.CreateTable(t.Context(), table.Identifier{"ns", "level"}, testSchema, CreateOptions{})
		require.ErrorIs(t, err, ErrOccupied)
	})
}

func TestOtherCatalogsTableIsNotTakenOver(t *testing.T) {
	w := newWarehouse(t, "sql")
	c := w.mustOpen(t)
	mustCreate(t, c, events)
	mustAppend(t, c, events, "x", 1)
	other := w
	other.kind = "filesystem"
	fc := other.mustOpen(t)
	_, err := fc.LoadTable(t.Context(), events)
	require.ErrorIs(t, err, catalog.ErrNoSuchTable)
	_, err = fc.CreateTable(t.Context(), events, testSchema, CreateOptions{})
	require.ErrorIs(t, err, ErrOccupied)

	lost := w
	lost.dsn = filepath.Join(filepath.Dir(w.dsn), "another.db") // the database was lost
	_, err = lost.mustOpen(t).CreateTable(t.Context(), events, testSchema, CreateOptions{})
	require.ErrorIs(t, err, ErrOccupied)
}

func TestVersionHint(t *testing.T) {
	eachKind(t, func(t *testing.T, w warehouse) {
		a, b := w.mustOpen(t), w.mustOpen(t)
		mustCreate(t, a, events)
		for i := range 3 {
			for _, c := range []*Catalog{a, b} {
				mustAppend(t, c, events, fmt.Sprint(c == a, i), int64(i))
				hint := readHint(t, c, events)
				stem := strings.TrimSuffix(path.Base(mustLoad(t, c, events).MetadataLocation()), ".metadata.json")
				require.Equal(t, strings.TrimPrefix(stem, "v"), hint)
			}
		}
		// It does not go back: a's own knowledge is of an earlier version.
		current := readHint(t, b, events)
		a.hints.set(metadataKey(events), a.store.Location(versionKey(events, 1)), false)
		require.Equal(t, current, readHint(t, a, events))
		fresh := w.mustOpen(t)
		fresh.hints.set(metadataKey(events), a.store.Location(versionKey(events, 1)), false)
		require.Equal(t, current, readHint(t, fresh, events))
		fresh.Forget(events)

		// Its loss costs a commit nothing, and the next one brings it back.
		require.NoError(t, a.store.Delete(t.Context(), metadataKey(events)+"/"+hintFile))
		mustAppend(t, w.mustOpen(t), events, "after", 9)
		mustAppend(t, a, events, "after2", 10)
		require.NotEmpty(t, readHint(t, a, events))
	})
}

// TestFilesystemLoad finds the newest version from hints of every kind of truth.
func TestFilesystemLoad(t *testing.T) {
	w := newWarehouse(t, "filesystem")
	c := w.mustOpen(t)
	mustCreate(t, c, events)
	for i := range 5 {
		mustAppend(t, c, events, fmt.Sprint(i), int64(i))
	}
	version := func(t *testing.T, c *Catalog) int {
		return parseVersion(path.Base(mustLoad(t, c, events).MetadataLocation()))
	}
	hint := func(t *testing.T, text string) {
		require.NoError(t, c.store.Put(t.Context(), metadataKey(events)+"/"+hintFile, []byte(text)))
	}
	require.Equal(t, 6, version(t, w.mustOpen(t)))
	for _, text := range []string{"6", "6\n", "5", "1", "", "garbage", "-3", "0", "00003-uuid"} {
		hint(t, text)
		require.Equal(t, 6, version(t, w.mustOpen(t)), "hint %q", text)
		require.Equal(t, 6, version(t, c), "hint %q", text)
	}
	// Above the newest file: that one may be lost, and with it rows.
	hint(t, "99")
	_, err := w.mustOpen(t).LoadTable(t.Context(), events)
	require.ErrorContains(t, err, "names version 99, but the newest metadata file")
	require.ErrorContains(t, err, "must say 6")
	require.NoError(t, c.store.Delete(t.Context(), metadataKey(events)+"/"+hintFile))
	require.Equal(t, 6, version(t, w.mustOpen(t)), "no hint")

	// Old versions deleted by age, and a hint that names one of them.
	for n := 1; n <= 3; n++ {
		require.NoError(t, c.store.Delete(t.Context(), versionKey(events, n)))
	}
	hint(t, "2")
	require.Equal(t, 6, version(t, w.mustOpen(t)))

	// The ordinary path lists nothing: a stray file beyond a gap is not seen.
	hint(t, "6")
	data, err := c.store.Get(t.Context(), versionKey(events, 6))
	require.NoError(t, err)
	require.NoError(t, c.store.Put(t.Context(), versionKey(events, 50), data))
	require.Equal(t, 6, version(t, w.mustOpen(t)))
	mustAppend(t, c, events, "more", 7)
	require.Equal(t, 7, version(t, w.mustOpen(t)))
	require.NoError(t, c.store.Delete(t.Context(), versionKey(events, 50)))

	// A table deleted and made anew under a catalog that remembers the old one.
	require.NoError(t, os.RemoveAll(filepath.Join(w.url, "web", "events")))
	other := w.mustOpen(t)
	made := mustCreate(t, other, events)
	require.Equal(t, 1, version(t, c))
	require.Equal(t, made.Metadata().TableUUID(), mustLoad(t, c, events).Metadata().TableUUID())
	mustAppend(t, c, events, "new", 1)
	checkCommits(t, c, events, []string{"new"})

	// A metadata file that is cut short is an error that names it.
	require.NoError(t, c.store.Put(t.Context(), versionKey(events, 2), []byte(`{"format-version":`)))
	_, err = w.mustOpen(t).LoadTable(t.Context(), events)
	require.ErrorContains(t, err, "v2.metadata.json")
}

func TestConflict(t *testing.T) {
	eachKind(t, func(t *testing.T, w warehouse) {
		a, b := w.mustOpen(t), w.mustOpen(t)
		mustCreate(t, a, events)
		stale := mustLoad(t, a, events)
		mustAppend(t, b, events, "b", 1)

		file, err := putRows(t.Context(), a.store, stale, 2)
		require.NoError(t, err)
		attempt := func(ctx context.Context, tbl *table.Table) error {
			txn := tbl.NewTransaction()
			require.NoError(t, txn.AddDataFiles(ctx, []iceberg.DataFile{file}, iceberg.Properties{commitIDKey: "a"}, table.WithoutDuplicateCheck(), table.WithoutAutoNameMapping()))
			_, err := txn.Commit(ctx)
			return err
		}
		before := mustLoad(t, b, events).MetadataLocation()
		err = attempt(t.Context(), stale)
		require.ErrorIs(t, err, table.ErrCommitFailed)
		require.True(t, IsConflict(err))
		err = attempt(WithCommit(t.Context(), CommitOptions{}), stale)
		require.ErrorIs(t, err, ErrConflict)
		require.NotErrorIs(t, err, table.ErrCommitFailed)
		require.Equal(t, before, mustLoad(t, b, events).MetadataLocation())

		// With a table that asks for it, iceberg-go replays by itself, but not under WithCommit.
		tbl, err := setProperty(t.Context(), mustLoad(t, b, events), table.CommitNumRetriesKey, "3")
		require.NoError(t, err)
		mustAppend(t, b, events, "b2", 3)
		require.ErrorIs(t, attempt(WithCommit(t.Context(), CommitOptions{}), tbl), ErrConflict)
		require.NoError(t, attempt(t.Context(), tbl))
		checkNames := map[string]bool{}
		for _, s := range mustLoad(t, a, events).Metadata().Snapshots() {
			checkNames[s.Summary.Properties[commitIDKey]] = true
		}
		require.Equal(t, map[string]bool{"b": true, "b2": true, "a": true}, checkNames)

		// Nothing to do is no version.
		cur := mustLoad(t, a, events)
		_, location, err := a.CommitTable(t.Context(), events, nil, nil)
		require.NoError(t, err)
		require.Equal(t, cur.MetadataLocation(), location)
	})
}

func TestRefusedUpdates(t *testing.T) {
	w := newWarehouse(t, "filesystem")
	c := w.mustOpen(t)
	mustCreate(t, c, events)
	for key, value := range map[string]string{
		"write.metadata.compression-codec": "gzip", "write.metadata.path": "file:///elsewhere", "write.metadata.location": "file:///elsewhere",
	} {
		_, err := setProperty(t.Context(), mustLoad(t, c, events), key, value)
		require.True(t, IsDefiniteRefusal(err), "%v", err)
		require.ErrorContains(t, err, key)
	}
	_, _, err := c.CommitTable(t.Context(), events, nil, []table.Update{table.NewSetLocationUpdate("file:///elsewhere")})
	require.True(t, IsDefiniteRefusal(err), "%v", err)
	require.Equal(t, "v1.metadata.json", path.Base(mustLoad(t, c, events).MetadataLocation()))
}

// TestBarrierBeforeSwap shows by the recorded file operations that all that a version
// refers to is durable before the version can be seen.
func TestBarrierBeforeSwap(t *testing.T) {
	eachKind(t, func(t *testing.T, w warehouse) {
		rec := objstoretest.NewRecorder()
		store, err := objstore.Open(t.Context(), objstore.Config{URL: w.url, Files: rec})
		require.NoError(t, err)
		c, err := Open(t.Context(), w.config(), store)
		require.NoError(t, err)
		defer func() { require.NoError(t, c.Close()) }()
		mustCreate(t, c, events)
		dir, _ := store.LocalPath(metadataKey(events))
		for i := range 3 {
			began := len(rec.Ops())
			waited := false
			ctx := WithCommit(t.Context(), CommitOptions{Wait: func(context.Context) error {
				waited = true
				return nil
			}})
			tbl := mustLoad(t, c, events)
			file, err := putRows(ctx, store, tbl, int64(i))
			require.NoError(t, err)
			txn := tbl.NewTransaction()
			require.NoError(t, txn.AddDataFiles(ctx, []iceberg.DataFile{file}, nil, table.WithoutDuplicateCheck(), table.WithoutAutoNameMapping()))
			next, err := txn.Commit(ctx)
			require.NoError(t, err)
			require.True(t, waited)

			swap := -1 // the link that is the commit
			named := map[string]int{}
			synced := 0 // the last sync of the folder before the swap
			for i, op := range rec.Ops()[began:] {
				switch {
				case op.Do == "link" && parseVersion(filepath.Base(op.To)) > 0:
					swap = i
				case op.Do == "rename" && filepath.Dir(op.To) == dir && filepath.Base(op.To) != hintFile && swap < 0:
					named[op.To] = i
				case op.Do == "syncdir" && op.Path == dir && swap < 0:
					synced = i
				}
			}
			if w.kind == "filesystem" {
				require.Positive(t, swap)
				require.Len(t, named, 2, "manifest and manifest list")
			} else {
				require.Len(t, named, 3, "manifest, manifest list and metadata")
			}
			for name, at := range named {
				require.Less(t, at, synced, "%s is durable before the swap", name)
				require.NoError(t, rec.Durable(name))
			}
			key, _ := store.Key(next.MetadataLocation())
			p, _ := store.LocalPath(key)
			require.NoError(t, rec.Durable(p))
		}
		require.Empty(t, rec.Violations())
	})
}

func TestFailedUploadFailsTheCommit(t *testing.T) {
	eachKind(t, func(t *testing.T, w warehouse) {
		rec := objstoretest.NewRecorder()
		store, err := objstore.Open(t.Context(), objstore.Config{URL: w.url, Files: rec})
		require.NoError(t, err)
		c, err := Open(t.Context(), w.config(), store)
		require.NoError(t, err)
		defer func() { require.NoError(t, c.Close()) }()
		mustCreate(t, c, events)
		before := mustLoad(t, c, events).MetadataLocation()

		full := errors.New("no space left on device")
		rec.FailWhen(objstoretest.FailOn("rename", ".avro", full))
		_, err = appendRows(t.Context(), c, events, "x", 1)
		require.ErrorIs(t, err, full)
		require.False(t, IsConflict(err) || IsDefiniteRefusal(err), "it may pass")
		require.Equal(t, before, mustLoad(t, w.mustOpen(t), events).MetadataLocation(), "nothing was committed")

		rec.FailWhen(nil)
		lost := errors.New("the caller's upload failed")
		tbl := mustLoad(t, c, events)
		_, err = setProperty(WithCommit(t.Context(), CommitOptions{Wait: func(context.Context) error { return lost }}), tbl, "a", "b")
		require.ErrorIs(t, err, lost)
		require.Equal(t, before, mustLoad(t, w.mustOpen(t), events).MetadataLocation())

		mustAppend(t, c, events, "x", 1)
		checkCommits(t, w.mustOpen(t), events, []string{"x"})
	})
}

func TestRemoveChosenSnapshots(t *testing.T) {
	eachKind(t, func(t *testing.T, w warehouse) {
		c := w.mustOpen(t)
		mustCreate(t, c, events)
		for i := range 4 {
			mustAppend(t, c, events, fmt.Sprint(i), int64(i))
		}
		snapshots := mustLoad(t, c, events).Metadata().Snapshots()
		require.Len(t, snapshots, 4)
		chosen := []int64{snapshots[0].SnapshotID, snapshots[2].SnapshotID}
		var given int
		ctx := WithCommit(t.Context(), CommitOptions{Remove: func(m table.Metadata) []int64 {
			given = len(m.Snapshots())
			return chosen
		}})
		tbl := mustLoad(t, c, events)
		file, err := putRows(ctx, c.store, tbl, 9)
		require.NoError(t, err)
		txn := tbl.NewTransaction()
		require.NoError(t, txn.AddDataFiles(ctx, []iceberg.DataFile{file}, nil, table.WithoutDuplicateCheck(), table.WithoutAutoNameMapping()))
		_, err = txn.Commit(ctx)
		require.NoError(t, err)
		require.Equal(t, 5, given, "the choice is made on what the commit would leave")
		after := mustLoad(t, w.mustOpen(t), events)
		require.Len(t, after.Metadata().Snapshots(), 3)
		for _, id := range chosen {
			require.Nil(t, after.Metadata().SnapshotByID(id))
		}
		files, err := liveFiles(t.Context(), after)
		require.NoError(t, err)
		require.Len(t, files, 5, "no file is lost with a snapshot")

		// One that a branch needs cannot be removed; the commit is refused whole.
		ctx = WithCommit(t.Context(), CommitOptions{Remove: func(m table.Metadata) []int64 { return []int64{-1} }})
		_, err = setProperty(ctx, after, "a", "b")
		require.NoError(t, err, "one that is not there is no matter")
	})
}

// clock is a time that tests set.
type clock struct{ now time.Time }

func (c *clock) at(d time.Duration) func() time.Time {
	return func() time.Time {
		c.now = c.now.Add(d)
		return c.now
	}
}

// TestStalledWriter is the writer that slept while others committed and old metadata
// was deleted: it finds a free name for its version, and must not believe it.
func TestStalledWriter(t *testing.T) {
	w := newWarehouse(t, "filesystem")
	slow, others := w.mustOpen(t), w.mustOpen(t)
	mustCreate(t, slow, events)
	mustAppend(t, slow, events, "first", 1)
	stale := mustLoad(t, slow, events) // v2
	for i := range 4 {
		mustAppend(t, others, events, fmt.Sprint("other", i), int64(i))
	} // v3 to v6
	for n := 1; n <= 4; n++ {
		require.NoError(t, others.store.Delete(t.Context(), versionKey(events, n)))
	}
	file, err := putRows(t.Context(), slow.store, stale, 5)
	require.NoError(t, err)
	attempt := func() error {
		ctx := WithCommit(t.Context(), CommitOptions{})
		txn := stale.NewTransaction()
		require.NoError(t, txn.AddDataFiles(ctx, []iceberg.DataFile{file}, iceberg.Properties{commitIDKey: "stalled"}, table.WithoutDuplicateCheck(), table.WithoutAutoNameMapping()))
		_, err := txn.Commit(ctx)
		return err
	}
	inner := slow.inner.(*filesystem)
	clk := &clock{now: time.Now()}

	// The put itself took two minutes.
	inner.now = clk.at(2 * time.Minute)
	err = attempt()
	require.True(t, IsConflict(err), "%v", err)
	require.ErrorContains(t, err, "does not descend from it")
	_, err = slow.store.Stat(t.Context(), versionKey(events, 3))
	require.NoError(t, err, "the test is about a put that succeeded")
	require.NoError(t, slow.store.Delete(t.Context(), versionKey(events, 3)))

	// What it knows is too old to be built on.
	stale2, ok := inner.recall(events)
	require.True(t, ok)
	stale2.version = version{meta: stale.Metadata(), location: stale.MetadataLocation()}
	stale2.n, stale2.seen = 2, clk.now.Add(-2*time.Hour)
	inner.remember(events, stale2)
	inner.now = clk.at(0)
	err = attempt()
	require.True(t, IsConflict(err), "%v", err)
	_, err = slow.store.Stat(t.Context(), versionKey(events, 3))
	require.ErrorIs(t, err, objstore.ErrNotFound, "nothing was put")

	// A slow put that was in order is found, and counts.
	inner.now = clk.at(2 * time.Minute)
	mustAppend(t, slow, events, "in order", 6)
	tbl, err := setProperty(t.Context(), mustLoad(t, slow, events), "a", "b")
	require.NoError(t, err, "a commit without a snapshot, too")
	require.Equal(t, "v8.metadata.json", path.Base(tbl.MetadataLocation()))
	names := map[string]int{}
	for _, s := range mustLoad(t, w.mustOpen(t), events).Metadata().Snapshots() {
		names[s.Summary.Properties[commitIDKey]]++
	}
	require.Equal(t, map[string]int{"first": 1, "other0": 1, "other1": 1, "other2": 1, "other3": 1, "in order": 1}, names)
}

func TestElapsed(t *testing.T) {
	now := time.Now()
	require.Equal(t, time.Hour, elapsed(now, now.Add(time.Hour)))
	// The wall clock went on while the other stood still, as when a machine sleeps.
	require.GreaterOrEqual(t, elapsed(now, now.Round(0).Add(3*time.Hour)), 3*time.Hour)
}

func TestConfirmed(t *testing.T) {
	w := newWarehouse(t, "filesystem")
	c := w.mustOpen(t)
	mustCreate(t, c, events)
	at := func() version {
		k, err := c.inner.(*filesystem).load(t.Context(), events)
		require.NoError(t, err)
		return k.version
	}
	v1 := at()
	mustAppend(t, c, events, "a", 1)
	v2 := at()
	mustAppend(t, c, events, "b", 2)
	v3 := at()
	_, err := setProperty(t.Context(), mustLoad(t, c, events), "k", "v")
	require.NoError(t, err)
	v4 := at()
	_, err = setProperty(t.Context(), mustLoad(t, c, events), "k", "w")
	require.NoError(t, err)
	v5 := at()
	require.True(t, confirmed(v1, v2, v2))
	require.True(t, confirmed(v1, v2, v5))
	require.True(t, confirmed(v2, v3, v4))
	require.True(t, confirmed(v3, v4, v5))
	require.False(t, confirmed(v2, v3, v2), "the snapshot is not there")
	require.False(t, confirmed(v3, v4, v3), "nor the entry in the log")
}

// TestOddRoot shows that every location in the metadata is written as it is, for a
// warehouse whose own path needs percent-encoding in a URL.
func TestOddRoot(t *testing.T) {
	eachKind(t, func(t *testing.T, w warehouse) {
		c := w.mustOpen(t)
		require.NotEmpty(t, c.io.encoded)
		mustCreate(t, c, events)
		for i := range 3 {
			mustAppend(t, c, events, fmt.Sprint(i), int64(i))
		}
		tbl := mustLoad(t, w.mustOpen(t), events)
		key, ok := c.store.Key(tbl.MetadataLocation())
		require.True(t, ok)
		require.Equal(t, c.store.Location(key), tbl.MetadataLocation())
		data, err := c.store.Get(t.Context(), key)
		require.NoError(t, err)
		require.NotContains(t, string(data), "%20")
		var doc struct {
			Location  string `json:"location"`
			Snapshots []struct {
				ManifestList string `json:"manifest-list"`
			} `json:"snapshots"`
			Log []struct {
				File string `json:"metadata-file"`
			} `json:"metadata-log"`
		}
		require.NoError(t, json.Unmarshal(data, &doc))
		names := []string{doc.Location, doc.Snapshots[0].ManifestList, doc.Snapshots[2].ManifestList, doc.Log[0].File}
		fs, err := tbl.FS(t.Context())
		require.NoError(t, err)
		manifests, err := tbl.CurrentSnapshot().Manifests(fs)
		require.NoError(t, err)
		require.Len(t, manifests, 3)
		for _, m := range manifests {
			names = append(names, m.FilePath())
		}
		for _, name := range names {
			require.True(t, strings.HasPrefix(name, "file://"+w.url+"/web/events/iceberg"), name)
		}
	})
}

// TestRawManifestList shows that nothing but the paths changes.
func TestRawManifestList(t *testing.T) {
	store, err := objstore.Open(t.Context(), objstore.Config{URL: t.TempDir()})
	require.NoError(t, err)
	c, err := Open(t.Context(), Config{}, store)
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	spec := iceberg.NewPartitionSpec(iceberg.PartitionField{SourceIDs: []int{2}, FieldID: 1000, Name: "name", Transform: iceberg.IdentityTransform{}})
	tbl, err := c.CreateTable(t.Context(), events, testSchema, CreateOptions{PartitionSpec: &spec})
	require.NoError(t, err)
	builder, err := iceberg.NewDataFileBuilder(spec, iceberg.EntryContentData, store.Location("web/events/delta/x.parquet"), iceberg.ParquetFile,
		map[int]any{1000: "value"}, nil, nil, 3, 100)
	require.NoError(t, err)
	txn := tbl.NewTransaction()
	require.NoError(t, txn.AddDataFiles(t.Context(), []iceberg.DataFile{builder.Build()}, nil, table.WithoutDuplicateCheck(), table.WithoutAutoNameMapping()))
	tbl, err = txn.Commit(t.Context())
	require.NoError(t, err)
	key, ok := store.Key(tbl.CurrentSnapshot().ManifestList)
	require.True(t, ok)
	require.True(t, isManifestList(key), key)
	data, err := store.Get(t.Context(), key)
	require.NoError(t, err)

	changed, err := rawManifestList(data, store.Root(), "file:///another root é")
	require.NoError(t, err)
	before, err := iceberg.ReadManifestList(strings.NewReader(string(data)))
	require.NoError(t, err)
	after, err := iceberg.ReadManifestList(strings.NewReader(string(changed)))
	require.NoError(t, err)
	require.Len(t, after, 1)
	require.Equal(t, strings.Replace(before[0].FilePath(), store.Root(), "file:///another root é", 1), after[0].FilePath())
	require.Equal(t, before[0].Partitions(), after[0].Partitions())
	require.Len(t, after[0].Partitions(), 1)
	require.Equal(t, before[0].SequenceNum(), after[0].SequenceNum())
	require.Equal(t, before[0].SnapshotID(), after[0].SnapshotID())
	require.Equal(t, before[0].AddedRows(), after[0].AddedRows())
	// And back again it is what it was.
	back, err := rawManifestList(changed, "file:///another root é", store.Root())
	require.NoError(t, err)
	again, err := iceberg.ReadManifestList(strings.NewReader(string(back)))
	require.NoError(t, err)
	require.Equal(t, before, again)

	_, err = rawManifestList([]byte("no avro"), "a", "b")
	require.Error(t, err)
	require.Equal(t, "file:///x/y", rawLocation("file:///x/y", "file:///z", "file:///w"))
}

func TestOpenRefuses(t *testing.T) {
	store, err := objstore.Open(t.Context(), objstore.Config{URL: t.TempDir()})
	require.NoError(t, err)
	for _, c := range []struct {
		cfg  Config
		says string
	}{
		{Config{Filesystem: &FilesystemConfig{}, SQL: &SQLConfig{}}, "choose one"},
		{Config{SQL: &SQLConfig{Driver: "oracle", DSN: "x"}}, `driver is "oracle"; it may be sqlite`},
		{Config{SQL: &SQLConfig{Driver: "sqlite"}}, "must be a file"},
		{Config{SQL: &SQLConfig{Driver: "sqlite", DSN: ":memory:"}}, "must be a file"},
		{Config{SQL: &SQLConfig{Driver: "sqlite", DSN: "file:x.db?mode=memory"}}, "must be a file"},
		{Config{SQL: &SQLConfig{Driver: "sqlite", DSN: t.TempDir()}}, "cannot be opened"},
	} {
		_, err := Open(t.Context(), c.cfg, store)
		require.ErrorContains(t, err, c.says)
	}
}

func TestSQLiteDSN(t *testing.T) {
	dir := t.TempDir()
	got, err := sqliteDSN(dir + "/a/b/catalog.db")
	require.NoError(t, err)
	require.DirExists(t, dir+"/a/b")
	for _, want := range []string{"busy_timeout%2830000%29", "journal_mode%28WAL%29", "synchronous%28FULL%29", "_txlock=immediate"} {
		require.Contains(t, got, want)
	}
	got, err = sqliteDSN("file:" + dir + "/with%20space/c.db?_pragma=busy_timeout(5)&_txlock=deferred")
	require.NoError(t, err)
	require.DirExists(t, dir+"/with space")
	require.Contains(t, got, "busy_timeout%285%29")
	require.NotContains(t, got, "30000")
	require.Contains(t, got, "_txlock=deferred")
}

// TestSQLCatalogName shows that two catalogs share a database, each with its own tables.
func TestSQLCatalogName(t *testing.T) {
	dir := t.TempDir()
	open := func(lake, name string) *Catalog {
		store, err := objstore.Open(t.Context(), objstore.Config{URL: filepath.Join(dir, lake)})
		require.NoError(t, err)
		c, err := Open(t.Context(), Config{SQL: &SQLConfig{Driver: "sqlite", DSN: filepath.Join(dir, "catalog.db"), Name: name}}, store)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		return c
	}
	one, two := open("one", ""), open("two", "two")
	mustCreate(t, one, events)
	_, err := two.LoadTable(t.Context(), events)
	require.ErrorIs(t, err, catalog.ErrNoSuchTable)
	mustCreate(t, two, events)
	mustAppend(t, one, events, "1", 1)
	mustAppend(t, two, events, "2", 2)
	checkCommits(t, one, events, []string{"1"})
	checkCommits(t, two, events, []string{"2"})

	// A table that lies in another warehouse is named, not guessed at.
	_, err = open("elsewhere", "two").LoadTable(t.Context(), events)
	require.ErrorContains(t, err, "outside of the warehouse")
}

// TestHintOrder is the hint of a store where looking costs a request: what this
// process wrote last still counts.
func TestHintOrder(t *testing.T) {
	store, err := objstore.Open(t.Context(), objstore.Config{URL: "mem://hint-order"})
	require.NoError(t, err)
	h := newHints(t.Context(), store, false)
	set := func(n int, made bool) string {
		h.set("t/metadata", store.Location(fmt.Sprintf("t/metadata/v%d.metadata.json", n)), made)
		h.wait(t.Context(), "")
		data, err := store.Get(t.Context(), "t/metadata/"+hintFile)
		require.NoError(t, err)
		return string(data)
	}
	require.Equal(t, "5", set(5, false))
	require.Equal(t, "5", set(3, false))
	require.Equal(t, "7", set(7, false))
	require.Equal(t, "1", set(1, true), "the table was made anew")
	require.Equal(t, "2", set(2, false))
}

// TestClockBehind is a commit of a machine whose clock was set back: nothing is
// committed, and nothing is refused for good.
func TestClockBehind(t *testing.T) {
	c := newWarehouse(t, "filesystem").mustOpen(t)
	mustCreate(t, c, events)
	mustAppend(t, c, events, "a", 1)
	k, err := c.inner.(*filesystem).load(t.Context(), events)
	require.NoError(t, err)
	snap := *k.meta.CurrentSnapshot()
	parent := snap.SnapshotID
	snap.SnapshotID, snap.ParentSnapshotID, snap.SequenceNumber = 77, &parent, snap.SequenceNumber+1
	snap.TimestampMs -= 2 * time.Minute.Milliseconds()
	_, _, err = c.CommitTable(t.Context(), events, nil, []table.Update{table.NewAddSnapshotUpdate(&snap)})
	require.ErrorContains(t, err, "clock is more than a minute behind")
	require.False(t, IsConflict(err) || IsDefiniteRefusal(err))
	require.Equal(t, "v2.metadata.json", path.Base(mustLoad(t, c, events).MetadataLocation()))
}
