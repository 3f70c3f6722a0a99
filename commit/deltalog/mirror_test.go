package deltalog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"
)

func le64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

func TestEachSnapshotBecomesOneVersion(t *testing.T) {
	b := newBench(t, idSchema(), nil)
	m := b.mirror()
	s := b.catchUp(m)
	require.Equal(t, Status{Version: -1}, s, "a table without snapshots has no log")

	b.append(10, 20)
	b.append(5)
	files := b.append(6)
	require.Equal(t, 3, b.catchUp(m).Written)
	b.rewrite(files, 6)
	s = b.catchUp(m)
	require.Equal(t, Status{Version: 3, SnapshotID: b.table().CurrentSnapshot().SnapshotID, Sequence: 4, Written: 1}, s)
	require.Equal(t, 0, b.catchUp(m).Written, "nothing is left to write")
	b.requireEqual()

	var id int64
	for v := range int64(4) {
		var txns int
		for _, a := range b.actions(v) {
			if a.Txn != nil {
				txns++
				require.Equal(t, "iceberg-"+testUUID, a.Txn.AppID)
				require.Equal(t, v+1, a.Txn.Version)
			}
			if a.CommitInfo != nil {
				require.NotEqual(t, id, *a.CommitInfo.IcebergSnapshotID)
				id = *a.CommitInfo.IcebergSnapshotID
				require.Equal(t, v+1, *a.CommitInfo.IcebergSequenceNumber)
			}
		}
		require.Equal(t, 1, txns)
	}
	for _, a := range b.actions(3) {
		if a.Add != nil {
			require.False(t, a.Add.DataChange, "a rewrite changes no row")
		}
		if a.Remove != nil {
			require.False(t, a.Remove.DataChange)
			require.Equal(t, int64(600), *a.Remove.Size)
		}
	}
}

// The ordinary append costs one request: no read, no listing.
func TestKnownAppendIsOneRequest(t *testing.T) {
	b := newBench(t, idSchema(), nil)
	f := &faultyStore{Store: b.store}
	m := NewMirror(f, testRoot, Options{})
	b.append(1)
	b.catchUp(m)
	f.taken()
	files := b.append(2, 3)
	b.cat.fs = nil // a read of any manifest would panic
	s, err := m.CatchUp(t.Context(), b.table(), Appended{b.table().CurrentSnapshot().SnapshotID, files})
	require.NoError(t, err)
	require.Equal(t, 1, s.Written)
	require.Equal(t, []string{"put 00000000000000000001.json"}, f.taken())
}

// Files handed over by their writer and files read back from manifests make the
// same bytes, whatever their order, and whether or not manifests were merged.
func TestKnownFilesMakeTheSameBytes(t *testing.T) {
	b := newBench(t, idSchema(), iceberg.Properties{"commit.manifest-merge.enabled": "true", "commit.manifest.min-count-to-merge": "2"})
	m := b.mirror()
	for i := range 6 {
		files := b.append(int64(i+1), 100, 7)
		files[0], files[2] = files[2], files[0]
		b.catchUp(m, Appended{b.table().CurrentSnapshot().SnapshotID, files})
	}
	var want []string
	for v := range int64(6) {
		want = append(want, b.version(v))
		require.NoError(t, b.store.Delete(t.Context(), testRoot+"/_delta_log/"+commitName(v)))
	}
	require.Equal(t, 6, b.catchUp(b.mirror()).Written)
	for v := range int64(6) {
		require.Equal(t, want[v], b.version(v))
	}
	b.requireEqual()
}

// Files are taken as handed over for an append only: another operation also
// removes some.
func TestKnownFilesOfARewriteAreReadBack(t *testing.T) {
	b := newBench(t, idSchema(), nil)
	m := b.mirror()
	old := b.append(3)
	b.catchUp(m)
	f := b.rewrite(old, 3)
	b.catchUp(m, Appended{b.table().CurrentSnapshot().SnapshotID, []iceberg.DataFile{f}})
	b.requireEqual()
}

// An append reads its own manifests and no others.
func TestAppendReadsItsOwnManifests(t *testing.T) {
	b := newBench(t, idSchema(), iceberg.Properties{"commit.manifest-merge.enabled": "false"})
	m := b.mirror()
	for range 5 {
		b.append(1)
	}
	b.catchUp(m)
	b.append(1)
	fs := &countingFS{IO: b.cat.fs}
	b.cat.fs = fs
	b.catchUp(m)
	require.Equal(t, 2, fs.opened, "the manifest list, and one manifest")
}

// Two mirrors that see every commit late, early and at once write each version
// once, and the same.
func TestConcurrentMirrors(t *testing.T) {
	b := newBench(t, idSchema(), nil)
	var wg sync.WaitGroup
	written := make([]int, 4)
	stop := make(chan struct{})
	for i := range written {
		m := b.mirror()
		wg.Go(func() {
			for {
				select {
				case <-stop:
					s, err := m.CatchUp(context.Background(), b.table())
					written[i] += s.Written
					if err != nil || s.Lag != 0 || s.Held != "" {
						t.Errorf("%+v %v", s, err)
					}
					return
				default:
					s, err := m.CatchUp(context.Background(), b.table())
					written[i] += s.Written
					if err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	for i := range 40 {
		b.append(int64(i + 1))
	}
	close(stop)
	wg.Wait()
	total := 0
	for _, n := range written {
		total += n
	}
	require.Equal(t, 40, total, "each version has one writer: %v", written)
	for v := range int64(40) {
		require.Contains(t, b.version(v), fmt.Sprintf(`"icebergSequenceNumber":%d}`, v+1))
	}
	b.requireEqual()
}

func TestLostResponseOfPut(t *testing.T) {
	lost := errors.New("connection reset")
	for name, put := range map[string]func(do func() error) error{
		"it is in":                             func(do func() error) error { _ = do(); return lost },
		"it is not":                            func(func() error) error { return lost },
		"it is in, and the client tried again": func(do func() error) error { _ = do(); return do() },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, idSchema(), nil)
			f := &faultyStore{Store: b.store}
			m := NewMirror(f, testRoot, Options{})
			b.append(1)
			b.catchUp(m)
			b.append(2)
			f.put = func(_ string, do func() error) error { return put(do) }
			s, err := m.CatchUp(t.Context(), b.table())
			if name == "it is not" {
				require.ErrorIs(t, err, lost)
				require.Equal(t, 1, s.Lag)
				require.Equal(t, int64(0), s.Version)
			} else {
				require.NoError(t, err)
				require.Equal(t, int64(1), s.Version)
			}
			f.put = nil
			b.append(3)
			s = b.catchUp(m)
			require.Equal(t, int64(2), s.Version, "no version is skipped or written twice")
			b.requireEqual()
		})
	}
}

// A write that was believed lost and comes in late meets the next attempt.
func TestLateWrite(t *testing.T) {
	b := newBench(t, idSchema(), nil)
	f := &faultyStore{Store: b.store}
	m := NewMirror(f, testRoot, Options{})
	b.append(1)
	var late func() error
	f.put = func(_ string, do func() error) error { late = do; return errors.New("timed out") }
	_, err := m.CatchUp(t.Context(), b.table())
	require.Error(t, err)
	require.NoError(t, late())
	f.put = nil
	s := b.catchUp(m)
	require.Equal(t, Status{Version: 0, SnapshotID: s.SnapshotID, Sequence: 1}, s)
	b.requireEqual()
}

// Whatever put fails, a new process finishes the work.
func TestCrashBetweenVersions(t *testing.T) {
	b := newBench(t, idSchema(), nil)
	for i := range 5 {
		b.append(int64(i + 1))
	}
	for left := 5; left > 0; left-- {
		f := &faultyStore{Store: b.store}
		puts := 0
		f.put = func(_ string, do func() error) error {
			if puts++; puts > 1 {
				return errors.New("killed")
			}
			return do()
		}
		s, err := NewMirror(f, testRoot, Options{}).CatchUp(t.Context(), b.table())
		require.Equal(t, 1, s.Written)
		require.Equal(t, left-1, s.Lag)
		require.Equal(t, left > 1, err != nil)
	}
	require.Equal(t, 0, b.catchUp(b.mirror()).Written)
	b.requireEqual()
}

func TestSchemaGrows(t *testing.T) {
	b := newBench(t, idSchema(), nil)
	m := b.mirror()
	b.append(1)
	b.catchUp(m)
	b.commit(func(txn *table.Transaction) error {
		if err := txn.UpdateSchema(true, false).AddColumn([]string{"at"}, iceberg.PrimitiveTypes.Timestamp, "", false, nil).Commit(); err != nil {
			return err
		}
		return txn.AddDataFiles(t.Context(), []iceberg.DataFile{b.dataFile(b.name(), 3)}, nil, table.WithoutDuplicateCheck(), table.WithoutAutoNameMapping())
	})
	require.Equal(t, 1, b.catchUp(m).Written)
	first, second := b.actions(0), b.actions(1)
	require.Equal(t, &Protocol{MinReaderVersion: 1, MinWriterVersion: 2}, first[1].Protocol)
	require.Equal(t, &Protocol{MinReaderVersion: 3, MinWriterVersion: 7, ReaderFeatures: []string{"timestampNtz"}, WriterFeatures: []string{"appendOnly", "invariants", "timestampNtz"}}, second[1].Protocol)
	require.Equal(t, first[2].MetaData.ID, second[2].MetaData.ID)
	require.Equal(t, first[2].MetaData.CreatedTime, second[2].MetaData.CreatedTime)
	require.Contains(t, second[2].MetaData.SchemaString, `"timestamp_ntz"`)

	// A change without a snapshot becomes a version of its own, once.
	b.alter(func(u *table.UpdateSchema) *table.UpdateSchema {
		return u.AddColumn([]string{"more"}, iceberg.PrimitiveTypes.String, "", false, nil)
	})
	old := b.mirror()
	s := b.catchUp(m)
	require.Equal(t, Status{Version: 2, SnapshotID: s.SnapshotID, Sequence: 2, Written: 1}, s)
	require.Contains(t, b.version(2), `\"more\"`)
	require.NotContains(t, b.version(2), `"add"`)
	require.Zero(t, b.catchUp(m).Written)
	require.Zero(t, b.catchUp(old).Written)
	b.append(4)
	require.Equal(t, 1, b.catchUp(m).Written)
	require.NotContains(t, b.version(3), "metaData")
	b.requireEqual()
}

// What cannot be expressed by name holds the mirror at its last equal version;
// once all files are rewritten, one difference version resumes it.
func TestHeldBySchema(t *testing.T) {
	for name, c := range map[string]struct {
		alter func(*table.UpdateSchema) *table.UpdateSchema
		held  string
	}{
		"rename": {func(u *table.UpdateSchema) *table.UpdateSchema { return u.RenameColumn([]string{"name"}, "title") }, "column name was renamed to title"},
		"drop":   {func(u *table.UpdateSchema) *table.UpdateSchema { return u.DeleteColumn([]string{"name"}) }, "column name was dropped"},
		"widening": {func(u *table.UpdateSchema) *table.UpdateSchema {
			return u.UpdateColumn([]string{"n"}, table.ColumnUpdate{FieldType: iceberg.Optional[iceberg.Type]{Valid: true, Val: iceberg.PrimitiveTypes.Int64}})
		}, "the type of column n was changed from integer to long"},
	} {
		t.Run(name, func(t *testing.T) {
			schema := iceberg.NewSchema(0, append(idSchema().Fields(), iceberg.NestedField{ID: 3, Name: "n", Type: iceberg.PrimitiveTypes.Int32})...)
			b := newBench(t, schema, nil)
			m := b.mirror()
			var files []iceberg.DataFile
			for range 2 {
				f := b.parquetFile(b.table().Schema())
				b.appendFiles(f)
				files = append(files, f)
			}
			b.catchUp(m)
			b.alter(c.alter)
			s := b.catchUp(m)
			require.Contains(t, s.Held, c.held)
			require.Zero(t, s.Lag)
			require.Equal(t, int64(1), s.Version)

			late := b.parquetFile(b.table().Schema())
			b.appendFiles(late)
			for _, m := range []*Mirror{m, b.mirror()} {
				s = b.catchUp(m)
				require.Contains(t, s.Held, c.held)
				require.Contains(t, s.Held, "part-")
				require.Equal(t, 1, s.Lag)
				require.Equal(t, int64(1), s.Version)
				require.Equal(t, int64(2), s.Sequence)
			}

			fresh := b.parquetFile(b.table().Schema())
			b.commit(func(txn *table.Transaction) error {
				return txn.NewRewrite(nil).DeleteFile(files[0]).DeleteFile(files[1]).AddDataFile(fresh).Commit(t.Context())
			})
			s = b.catchUp(m)
			require.Equal(t, Status{Version: 2, SnapshotID: b.table().CurrentSnapshot().SnapshotID, Sequence: 4, Written: 1}, s)
			b.requireEqual()
			require.Contains(t, b.version(2), `"metaData"`)
			b.appendFiles(b.parquetFile(b.table().Schema()))
			require.Equal(t, int64(3), b.catchUp(m).Version, "and it goes on version by version")
			b.requireEqual()
		})
	}
}

// A dropped name that comes back is another column: by name, old files would
// show the old values.
func TestHeldByColumnMadeAnew(t *testing.T) {
	b := newBench(t, idSchema(), nil)
	m := b.mirror()
	b.appendFiles(b.parquetFile(b.table().Schema()))
	b.catchUp(m)
	b.alter(func(u *table.UpdateSchema) *table.UpdateSchema { return u.DeleteColumn([]string{"name"}) })
	b.alter(func(u *table.UpdateSchema) *table.UpdateSchema {
		return u.AddColumn([]string{"name"}, iceberg.PrimitiveTypes.String, "", false, nil)
	})
	b.appendFiles(b.parquetFile(b.table().Schema()))
	s := b.catchUp(m)
	require.Contains(t, s.Held, "dropped and made anew")
	require.Equal(t, int64(0), s.Version)
	// The same for a mirror that is begun on such a table.
	require.NoError(t, b.store.Delete(t.Context(), testRoot+"/_delta_log/"+commitName(0)))
	b.expire()
	s = b.catchUp(b.mirror())
	require.Contains(t, s.Held, "dropped and made anew")
	require.Equal(t, int64(-1), s.Version)
}

func (b *bench) deleteFile(rows int64, target string) iceberg.DataFile {
	f, err := iceberg.NewDataFileBuilder(*iceberg.UnpartitionedSpec, iceberg.EntryContentPosDeletes, b.name(), iceberg.ParquetFile, nil, nil, nil, rows, 100)
	require.NoError(b.t, err)
	return f.LowerBoundValues(map[int][]byte{filePathFieldID: []byte(target)}).UpperBoundValues(map[int][]byte{filePathFieldID: []byte(target)}).Build()
}

func TestHeldByRowLevelDeletes(t *testing.T) {
	b := newBench(t, idSchema(), nil)
	m := b.mirror()
	files := append(b.append(10), b.append(10)...)
	b.catchUp(m)
	b.commit(func(txn *table.Transaction) error {
		return txn.NewRowDelta(nil).AddDeletes(b.deleteFile(3, files[0].FilePath())).Commit(t.Context())
	})
	other := b.append(4)
	f := &faultyStore{Store: b.store}
	for range 2 {
		s := b.catchUp(m)
		require.Contains(t, s.Held, "rows of data file "+files[0].FilePath()+" are deleted by")
		require.Equal(t, 2, s.Lag)
		require.Equal(t, int64(1), s.Version)
		require.Equal(t, int64(2), s.Sequence)
	}
	// A mirror that is held still knows what it has looked at.
	b.cat.fs = nil
	require.Equal(t, 2, b.catchUp(m).Lag)
	b.cat.fs = iceLocal()

	// A compaction of another file does not help; one of this file does, though
	// it leaves the delete file behind.
	b.rewrite(other, 4)
	require.Equal(t, 3, b.catchUp(m).Lag)
	b.rewrite(files[:1], 7)
	s := b.catchUp(m)
	require.Empty(t, s.Held)
	require.Zero(t, s.Lag)
	require.Equal(t, int64(2), s.Version)
	b.requireEqual()
	b.append(1)
	b.catchUp(NewMirror(f, testRoot, Options{}))
	b.requireEqual()
}

// The state that resumes a mirror is projected under its own schema; that the
// table's grew later is no reason to ask its files.
func TestResumeBeforeTheSchemaGrew(t *testing.T) {
	b := newBench(t, idSchema(), nil)
	m := b.mirror()
	files := b.append(10)
	b.catchUp(m)
	b.commit(func(txn *table.Transaction) error {
		return txn.NewRowDelta(nil).AddDeletes(b.deleteFile(3, files[0].FilePath())).Commit(t.Context())
	})
	b.rewrite(files, 7)
	b.alter(func(u *table.UpdateSchema) *table.UpdateSchema {
		return u.AddColumn([]string{"more"}, iceberg.PrimitiveTypes.String, "", false, nil)
	})
	b.append(1)
	s := b.catchUp(m) // the data files are named only: reading one would fail
	require.Equal(t, Status{Version: 2, SnapshotID: b.table().CurrentSnapshot().SnapshotID, Sequence: 4, Written: 2}, s)
	require.NotContains(t, b.version(1), "more")
	require.Contains(t, b.version(2), "more")
	b.requireEqual()
}

// A file that Iceberg lists twice has its rows twice; Delta would show them once.
func TestHeldByFileListedTwice(t *testing.T) {
	b := newBench(t, idSchema(), nil)
	files := b.append(1)
	b.appendFiles(files...)
	b.expire()
	s := b.catchUp(b.mirror())
	require.Contains(t, s.Held, "is listed twice")
	require.Equal(t, int64(-1), s.Version)
}

func TestHeldByFiles(t *testing.T) {
	for name, c := range map[string]struct {
		file func(b *bench) iceberg.DataFile
		held string
	}{
		"outside of the root": {func(b *bench) iceberg.DataFile { return b.dataFile(b.store.Location("ns/other/x.parquet"), 1) }, "lies outside of the Delta root"},
		"not Parquet": {func(b *bench) iceberg.DataFile {
			f, err := iceberg.NewDataFileBuilder(*iceberg.UnpartitionedSpec, iceberg.EntryContentData, b.name(), iceberg.OrcFile, nil, nil, nil, 1, 100)
			require.NoError(b.t, err)
			return f.Build()
		}, "Delta has only Parquet"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, idSchema(), nil)
			m := b.mirror()
			b.append(1)
			b.catchUp(m)
			bad := c.file(b)
			b.appendFiles(bad)
			s := b.catchUp(m, Appended{b.table().CurrentSnapshot().SnapshotID, []iceberg.DataFile{bad}})
			require.Contains(t, s.Held, c.held)
			require.Equal(t, 1, s.Lag)
			b.append(2)
			require.Equal(t, 2, b.catchUp(m).Lag)
			b.rewrite([]iceberg.DataFile{bad}, 1)
			s = b.catchUp(m)
			require.Empty(t, s.Held)
			require.Equal(t, int64(1), s.Version)
			b.requireEqual()
		})
	}
}

func TestHistoryExpired(t *testing.T) {
	b := newBench(t, idSchema(), nil)
	m := b.mirror()
	first := b.append(1)
	b.append(2)
	b.catchUp(m)
	b.append(3)
	b.rewrite(first, 1)
	b.append(4)
	b.expire()
	s := b.catchUp(m)
	require.Equal(t, Status{Version: 2, SnapshotID: b.table().CurrentSnapshot().SnapshotID, Sequence: 5, Written: 1}, s)
	b.requireEqual()
	require.Contains(t, b.version(2), "difference of live file sets")
	b.append(5)
	require.Equal(t, int64(3), b.catchUp(m).Version)
	b.requireEqual()
}

// Expiry of what is already projected does not disturb the walk.
func TestExpiryOfProjectedHistory(t *testing.T) {
	b := newBench(t, idSchema(), nil)
	m := b.mirror()
	b.append(1)
	b.append(2)
	b.catchUp(m)
	b.expire()
	b.append(3)
	b.append(4)
	require.Equal(t, 2, b.catchUp(m).Written)
	require.NotContains(t, b.version(2), "difference")
	b.requireEqual()
}

func TestRollback(t *testing.T) {
	b := newBench(t, idSchema(), nil)
	m := b.mirror()
	b.append(1)
	back := b.table().CurrentSnapshot().SnapshotID
	b.append(2)
	b.append(3)
	b.catchUp(m)
	stale := b.table()
	time.Sleep(2 * time.Millisecond) // metadata times have milliseconds
	b.commit(func(txn *table.Transaction) error { return txn.RollbackToSnapshot(back) })
	s := b.catchUp(m)
	require.Equal(t, Status{Version: 3, SnapshotID: back, Sequence: 1, Written: 1}, s)
	b.requireEqual()

	// A projector that still has the view from before must not undo it.
	for _, old := range []*Mirror{m, b.mirror()} {
		s, err := old.CatchUp(t.Context(), stale)
		require.NoError(t, err)
		require.True(t, s.Ahead)
		require.Zero(t, s.Written)
	}
	b.append(4)
	require.Equal(t, int64(4), b.catchUp(m).Version)
	b.requireEqual()
}

// After a rollback readers see the older files under the newest schema.
func TestRollbackUnderANewerSchema(t *testing.T) {
	b := newBench(t, idSchema(), nil)
	m := b.mirror()
	b.append(1)
	back := b.table().CurrentSnapshot().SnapshotID
	b.alter(func(u *table.UpdateSchema) *table.UpdateSchema {
		return u.AddColumn([]string{"more"}, iceberg.PrimitiveTypes.String, "", false, nil)
	})
	b.append(2)
	b.catchUp(m)
	b.commit(func(txn *table.Transaction) error { return txn.RollbackToSnapshot(back) })
	require.Equal(t, Status{Version: 2, SnapshotID: back, Sequence: 1, Written: 1}, b.catchUp(m))
	require.NotContains(t, b.version(2), "metaData")
	b.requireEqual()
}

// A view that is behind the log writes nothing.
func TestStaleView(t *testing.T) {
	b := newBench(t, idSchema(), nil)
	b.append(1)
	stale := b.table()
	b.append(2)
	b.catchUp(b.mirror())
	s, err := b.mirror().CatchUp(t.Context(), stale)
	require.NoError(t, err)
	require.True(t, s.Ahead)
	require.Zero(t, s.Written)
	require.Equal(t, int64(2), s.Sequence)
}

func TestTableMadeAnew(t *testing.T) {
	b := newBench(t, idSchema(), nil)
	m := b.mirror()
	b.append(1)
	b.append(2)
	b.append(2)
	b.expire()
	b.catchUp(m) // a difference, which names the old table's view
	b.append(2)
	b.catchUp(m)
	b.create("0b0e8a38-3c0a-4c60-9d0d-4e0a3a8f6c02", iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "other", Type: iceberg.PrimitiveTypes.Int64}), nil)
	s := b.catchUp(m)
	require.Equal(t, Status{Version: 2, Written: 1}, s, "the new table has no rows, and so has its mirror")
	require.Empty(t, b.live())
	require.Zero(t, b.catchUp(m).Written)
	require.Zero(t, b.catchUp(b.mirror()).Written)
	b.append(3)
	s = b.catchUp(m)
	require.Equal(t, int64(3), s.Version)
	b.requireEqual()
	b.append(4)
	require.Equal(t, int64(4), b.catchUp(b.mirror()).Version)
	b.requireEqual()

	b.create("1b0e8a38-3c0a-4c60-9d0d-4e0a3a8f6c03", idSchema(), nil)
	b.append(9)
	s = b.catchUp(m)
	require.Equal(t, int64(5), s.Version)
	b.requireEqual()
}

func TestForeignVersion(t *testing.T) {
	b := newBench(t, idSchema(), nil)
	m := b.mirror()
	b.append(1)
	b.append(2)
	b.catchUp(m)
	foreign := `{"commitInfo":{"timestamp":1,"operation":"DELETE","engineInfo":"Some-Engine/1.0","operationMetrics":{"n":3}}}
{"remove":{"path":"part-1.parquet","dataChange":true,"deletionTimestamp":1}}
{"add":{"path":"theirs%20x.parquet","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true}}
`
	require.NoError(t, b.store.PutIfAbsent(t.Context(), testRoot+"/_delta_log/"+commitName(2), []byte(foreign)))
	b.append(3)
	s := b.catchUp(m)
	require.Equal(t, int64(3), s.Version)
	b.requireEqual()
	require.Contains(t, b.version(3), `"path":"theirs%20x.parquet","deletionTimestamp"`)

	// Met at the start, with nothing else to do.
	require.NoError(t, b.store.PutIfAbsent(t.Context(), testRoot+"/_delta_log/"+commitName(4), []byte(foreign)))
	m = b.mirror()
	require.Equal(t, 1, b.catchUp(m).Written)
	b.requireEqual()
	require.Zero(t, b.catchUp(m).Written)

	// A version without data is no harm.
	require.NoError(t, b.store.PutIfAbsent(t.Context(), testRoot+"/_delta_log/"+commitName(6), []byte(`{"commitInfo":{"operation":"VACUUM END"}}`)))
	b.append(4)
	s = b.catchUp(m)
	require.Equal(t, int64(7), s.Version)
	require.NotContains(t, b.version(7), "difference")
	b.requireEqual()
}

func TestForeignTable(t *testing.T) {
	b := newBench(t, idSchema(), nil)
	text := `{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}
{"metaData":{"id":"x","format":{"provider":"parquet","options":{}},"schemaString":"{\"type\":\"struct\",\"fields\":[]}","partitionColumns":[],"configuration":{}}}
`
	require.NoError(t, b.store.Put(t.Context(), testRoot+"/_delta_log/"+commitName(0), []byte(text)))
	b.append(1)
	s := b.catchUp(b.mirror())
	require.Contains(t, s.Held, "not the mirror of an Iceberg table")
	require.Zero(t, s.Written)
	require.Equal(t, text, b.version(0))
}

func TestForeignProtocol(t *testing.T) {
	b := newBench(t, idSchema(), nil)
	b.append(1)
	b.catchUp(b.mirror())
	require.NoError(t, b.store.Put(t.Context(), testRoot+"/_delta_log/"+commitName(1),
		[]byte(`{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["deletionVectors"],"writerFeatures":["deletionVectors"]}}`)))
	b.append(1)
	s := b.catchUp(b.mirror())
	require.Contains(t, s.Held, "deletionVectors")
	require.Equal(t, 1, s.Lag)
}

func TestAdoptedTableWithALongHistory(t *testing.T) {
	b := newBench(t, idSchema(), nil)
	for i := range firstWalk + 1 {
		b.append(int64(i + 1))
	}
	s := b.catchUp(b.mirror())
	require.Equal(t, int64(0), s.Version)
	require.Equal(t, int64(firstWalk+1), s.Sequence)
	b.requireEqual()
}

func TestUnsupportedSchemaHolds(t *testing.T) {
	b := newBench(t, iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 2, Name: "at", Type: iceberg.PrimitiveTypes.Time}), nil)
	b.append(1)
	s := b.catchUp(b.mirror())
	require.Equal(t, "column at: Delta has no type for time", s.Held)
	require.Equal(t, Status{Version: -1, Lag: 1, Held: s.Held}, s)
}

// Names that some engines encode in Parquet are looked up in the files.
func TestEncodedNames(t *testing.T) {
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "a-b", Type: iceberg.PrimitiveTypes.Int64})
	b := newBench(t, schema, nil)
	m := b.mirror()
	b.appendFiles(b.parquetFile(schema))
	require.Equal(t, 1, b.catchUp(m).Written)
	encoded := b.parquetFile(iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "a_x2Db", Type: iceberg.PrimitiveTypes.Int64}))
	b.appendFiles(encoded)
	s := b.catchUp(m)
	require.Contains(t, s.Held, "it holds column a-b by the name a_x2Db")
	// The writer that knows its files is not asked.
	b.rewrite([]iceberg.DataFile{encoded}, 1)
	_, err := m.CatchUp(t.Context(), b.table())
	require.Error(t, err, "the new file was never written")
	require.ErrorContains(t, err, "part-3.parquet")
}

// A mirror that slept through the cleanup of the log must not write a version
// anew that was there and is removed.
func TestSleptThroughLogCleanup(t *testing.T) {
	b := newBench(t, idSchema(), nil)
	now := time.Now()
	m := NewMirror(b.store, testRoot, Options{Now: func() time.Time { return now }})
	b.append(1)
	b.catchUp(m)
	for range 20 {
		b.append(1)
	}
	other := b.mirror()
	b.catchUp(other)
	_, err := other.Tidy(t.Context())
	require.NoError(t, err)
	for v := range int64(20) {
		require.NoError(t, b.store.Delete(t.Context(), testRoot+"/_delta_log/"+commitName(v)))
	}
	now = now.Add(31 * 24 * time.Hour)
	b.append(1)
	b.expire()
	require.Equal(t, int64(21), b.catchUp(m).Version)
	b.requireEqual()
}

func TestErrorsNameTheLog(t *testing.T) {
	b := newBench(t, idSchema(), nil)
	b.append(1)
	require.NoError(t, b.store.Put(t.Context(), testRoot+"/_delta_log/"+commitName(0), []byte("{\n")))
	_, err := b.mirror().CatchUp(t.Context(), b.table())
	require.ErrorContains(t, err, commitName(0))
	require.ErrorContains(t, err, "line 1")

	require.NoError(t, b.store.Delete(t.Context(), testRoot+"/_delta_log/"+commitName(0)))
	require.NoError(t, b.store.Put(t.Context(), testRoot+"/_delta_log/"+commitName(7), []byte("{}\n")))
	_, err = b.mirror().CatchUp(t.Context(), b.table())
	require.ErrorContains(t, err, "begins at version 7 without a checkpoint")
}
