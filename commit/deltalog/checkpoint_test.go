package deltalog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore"
)

func TestCheckpointRoundTrip(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	st := emptyState()
	st.version = 7
	st.protocol = &Protocol{MinReaderVersion: 3, MinWriterVersion: 7, ReaderFeatures: []string{"timestampNtz"}, WriterFeatures: []string{"appendOnly", "timestampNtz"}}
	st.metaData = &MetaData{ID: "x", Description: "d", Format: Format{"parquet", map[string]string{"o": "p"}}, SchemaString: "{}", PartitionColumns: []string{}, Configuration: map[string]string{"b": "2", "a": "1"}, CreatedTime: ptr(int64(5))}
	st.txns = map[string]Txn{"iceberg-" + testUUID: {"iceberg-" + testUUID, 8, ptr(int64(6))}, "other": {AppID: "other", Version: 1}}
	tail := newReplay("file:///w")
	const n = checkpointRows + 100
	var want []Action
	for i := range n {
		a := Action{Add: &Add{Path: fmt.Sprintf("f%06d.parquet", i), PartitionValues: map[string]*string{}, Size: int64(i), ModificationTime: 9, DataChange: true, Stats: fmt.Sprintf(`{"numRecords":%d}`, i)}}
		if i%3 == 0 {
			a.Add.Stats = ""
		}
		tail.apply([]Action{a})
		want = append(want, a)
	}
	tail.apply([]Action{{Remove: &Remove{Path: "gone.parquet", DeletionTimestamp: ptr(int64(1000)), ExtendedFileMetadata: true, PartitionValues: map[string]*string{}, Size: ptr(int64(1))}}})
	tail.apply([]Action{{Remove: &Remove{Path: "long-gone.parquet", DeletionTimestamp: ptr(int64(10))}}})
	tail.apply([]Action{{Remove: &Remove{Path: "soon-gone.parquet", DeletionTimestamp: ptr(int64(150))}}})
	tail.apply([]Action{{Remove: &Remove{Path: "f000005.parquet", DeletionTimestamp: ptr(int64(500))}}})
	tail.apply(want[5:6]) // and added again: no tombstone
	w, err := newCheckpointWriter(mem)
	require.NoError(t, err)
	defer w.release()
	require.NoError(t, writeCheckpoint(t.Context(), w, st, nil, tail, 50))
	data, err := w.close()
	require.NoError(t, err)
	require.Equal(t, int64(n), w.live)
	require.Equal(t, int64(1+1+2+n+2), w.actions)

	header, live, err := readCheckpointHeader(t.Context(), data)
	require.NoError(t, err)
	require.Equal(t, int64(n), live)
	require.Equal(t, []Action{{Protocol: st.protocol}, {MetaData: st.metaData}, {Txn: ptr(st.txns["iceberg-"+testUUID])}, {Txn: ptr(st.txns["other"])}}, header)
	var got []Action
	require.NoError(t, readCheckpointFiles(t.Context(), data, func(a []Action) error { got = append(got, a...); return nil }))
	require.Len(t, got, n+2)
	for i, a := range want {
		a.Add.DataChange = false
		require.Equal(t, a, got[i])
	}
	require.Equal(t, &Remove{Path: "gone.parquet", DeletionTimestamp: ptr(int64(1000)), ExtendedFileMetadata: true, PartitionValues: map[string]*string{}, Size: ptr(int64(1))}, got[n].Remove)

	// Folded into the next one, with removed, added-again and expired files.
	tail = newReplay("file:///w")
	tail.apply([]Action{{Remove: &Remove{Path: "f000001.parquet", DeletionTimestamp: ptr(int64(300))}}})
	tail.apply([]Action{{Add: &Add{Path: "gone.parquet", PartitionValues: map[string]*string{}, Size: 77}}})
	w, err = newCheckpointWriter(mem)
	require.NoError(t, err)
	defer w.release()
	require.NoError(t, writeCheckpoint(t.Context(), w, st, data, tail, 200))
	next, err := w.close()
	require.NoError(t, err)
	require.Equal(t, int64(1+1+2+n+1), w.actions, "nothing stands in it twice")
	r := newReplay("file:///w")
	require.NoError(t, readCheckpointFiles(t.Context(), next, func(a []Action) error { r.apply(a); return nil }))
	require.Len(t, r.live, n)
	require.Equal(t, int64(77), r.live[fileKey{rel: "gone.parquet"}].add.Size)
	require.NotContains(t, r.live, fileKey{rel: "f000001.parquet"})
	require.Len(t, r.removed, 1)
}

func TestCheckpointsOfATable(t *testing.T) {
	b := newBench(t, idSchema(), nil)
	now := time.Now()
	m := NewMirror(b.store, testRoot, Options{Now: func() time.Time { return now }})
	var last []iceberg.DataFile
	var written []int64
	for i := range 35 {
		if i%7 == 6 {
			b.rewrite(last, 1)
		} else {
			last = b.append(int64(i + 1))
		}
		s := b.catchUp(m)
		if s.TidyDue {
			tidied, err := m.Tidy(t.Context())
			require.NoError(t, err)
			written = append(written, tidied.Checkpoint)
			require.Zero(t, tidied.Deleted)
		}
	}
	require.Equal(t, []int64{10, 20, 30}, written)
	var p lastCheckpoint
	data, err := b.store.Get(t.Context(), testRoot+"/_delta_log/_last_checkpoint")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &p))
	require.Equal(t, int64(30), p.Version)
	require.Equal(t, int64(27), p.NumOfAddFiles)
	require.Equal(t, int64(27+4+3), p.Size, "protocol, metaData, txn; 27 live files, 4 tombstones")

	// A new process starts from the checkpoint, without listing and without the
	// versions below it.
	for v := range int64(30) {
		require.NoError(t, b.store.Delete(t.Context(), testRoot+"/_delta_log/"+commitName(v)))
	}
	f := &faultyStore{Store: b.store}
	m = NewMirror(f, testRoot, Options{})
	s := b.catchUp(m)
	require.Equal(t, Status{Version: 34, SnapshotID: b.table().CurrentSnapshot().SnapshotID, Sequence: 35}, s)
	require.NotContains(t, strings.Join(f.taken(), "\n"), "list")
	b.requireEqual()
	b.append(1)
	require.Equal(t, int64(35), b.catchUp(m).Version)
	require.NotContains(t, b.version(35), "metaData")

	// Without the pointer, or with one that leads nowhere, the log is listed once.
	for _, pointer := range []string{"", `{"version":3,"size":1}`, "{", `{"version":30,"size":9,"parts":3}`} {
		require.NoError(t, b.store.Delete(t.Context(), testRoot+"/_delta_log/_last_checkpoint"))
		if pointer != "" {
			require.NoError(t, b.store.Put(t.Context(), testRoot+"/_delta_log/_last_checkpoint", []byte(pointer)))
		}
		require.Equal(t, int64(35), b.catchUp(b.mirror()).Version)
	}
	b.requireEqual()

	// The commit of the checkpointed version may be gone too: the sequence number
	// in the checkpoint must do.
	for v := int64(30); v <= 35; v++ {
		require.NoError(t, b.store.Delete(t.Context(), testRoot+"/_delta_log/"+commitName(v)))
	}
	s = b.catchUp(b.mirror())
	require.Equal(t, int64(35), s.Version)
	require.Equal(t, 5, s.Written)
	require.NotContains(t, b.version(31), "difference")
	b.requireEqual()
}

func TestCheckpointInterval(t *testing.T) {
	for _, c := range []struct {
		version, checkpoint, live int64
		want                      bool
	}{
		{0, -1, 1, false}, {9, -1, 1, false}, {10, -1, 1, true}, {10, 10, 1, false}, {19, 10, 1, false}, {20, 10, 1, true},
		{25, 10, 1, true}, // a multiple was passed
		{20, 10, 5000, false}, {49, 10, 5000, false}, {50, 10, 5000, true}, {51, 50, 5000, false},
	} {
		require.Equal(t, c.want, checkpointDue(state{version: c.version, checkpoint: c.checkpoint, liveFiles: c.live}), "%+v", c)
	}
}

// A crash between checkpoint and pointer, or before either, is made up for.
func TestTidyAfterACrash(t *testing.T) {
	b := newBench(t, idSchema(), nil)
	m := b.mirror()
	for i := range 12 {
		b.append(int64(i + 1))
	}
	require.True(t, b.catchUp(m).TidyDue)
	m = b.mirror()
	tidied, err := m.Tidy(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(11), tidied.Checkpoint)
	require.False(t, b.catchUp(m).TidyDue)
	require.NoError(t, b.store.Delete(t.Context(), testRoot+"/_delta_log/_last_checkpoint"))
	m = b.mirror()
	require.False(t, b.catchUp(m).TidyDue)
	b.requireEqual()
	tidied, err = m.Tidy(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(-1), tidied.Checkpoint)
}

// The pointer never goes back to an older checkpoint.
func TestPointerGoesForward(t *testing.T) {
	b := newBench(t, idSchema(), nil)
	slow := b.mirror()
	for i := range 11 {
		b.append(int64(i + 1))
	}
	b.catchUp(slow)
	for i := range 10 {
		b.append(int64(i + 1))
	}
	fast := b.mirror()
	b.catchUp(fast)
	fast.st.liveFiles = 999 // as versions of another writer may leave it
	_, err := fast.Tidy(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(21), fast.st.liveFiles)
	_, err = slow.Tidy(t.Context())
	require.NoError(t, err)
	data, err := b.store.Get(t.Context(), testRoot+"/_delta_log/_last_checkpoint")
	require.NoError(t, err)
	require.Contains(t, string(data), `"version":20,`)
}

// A removed file that is still in an older checkpoint must not come back.
func TestDeleteAllThenCheckpoint(t *testing.T) {
	b := newBench(t, idSchema(), nil)
	m := b.mirror()
	var files []iceberg.DataFile
	for i := range 11 {
		files = append(files, b.append(int64(i+1))...)
	}
	b.catchUp(m)
	_, err := m.Tidy(t.Context())
	require.NoError(t, err)
	for i := range 10 {
		b.rewrite(files[i:i+1], int64(i+1))
	}
	b.catchUp(m)
	_, err = m.Tidy(t.Context())
	require.NoError(t, err)
	b.requireEqual()
	c, err := b.mirror().Read(t.Context())
	require.NoError(t, err)
	require.Len(t, c.Files, 11)
	require.Len(t, c.Tombstones, 10)
	require.Equal(t, int64(20), c.Version)
	require.Equal(t, b.table().CurrentSnapshot().SnapshotID, c.SnapshotID)
	var rows int64
	for _, f := range c.Files {
		rows += f.Records
	}
	require.Equal(t, int64(66), rows)
}

func TestExpired(t *testing.T) {
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	day := func(n int) time.Time { return now.AddDate(0, 0, -n) }
	var objects []objstore.Object
	add := func(name string, age int) {
		objects = append(objects, objstore.Object{Key: "t/_delta_log/" + name, ModTime: day(age)})
	}
	for v := range int64(60) {
		if v%10 == 0 && v > 0 {
			add(checkpointName(v), 60-int(v))
		}
		add(commitName(v), 60-int(v))
	}
	add("_last_checkpoint", 90)
	add("00000000000000000003.crc", 57)
	add("_sidecars/x.parquet", 90)
	add("00000000000000000001.checkpoint.8f1.parquet", 90)
	got := expired(objects, "t/_delta_log/", day(30))
	// Version 30 and its checkpoint are 30 days old: all below may go.
	require.Len(t, got, 30+2+1)
	require.NotContains(t, got, "t/_delta_log/"+commitName(30))
	require.NotContains(t, got, "t/_delta_log/"+checkpointName(30))
	require.NotContains(t, got, "t/_delta_log/_last_checkpoint")
	require.Equal(t, "t/_delta_log/"+commitName(0), got[0])
	require.Empty(t, expired(objects, "t/_delta_log/", day(51)), "no checkpoint is that old")
	// A file that was touched later stays, whatever its number.
	objects[3].ModTime = day(1)
	require.NotContains(t, expired(objects, "t/_delta_log/", day(30)), objects[3].Key)
}

func TestLogCleanup(t *testing.T) {
	b := newBench(t, idSchema(), nil)
	now := time.Now()
	m := NewMirror(b.store, testRoot, Options{Now: func() time.Time { return now }})
	grow := func(n int) Tidied {
		for range n {
			b.append(1)
		}
		require.True(t, b.catchUp(m).TidyDue)
		out, err := m.Tidy(t.Context())
		require.NoError(t, err)
		return out
	}
	require.Equal(t, Tidied{Checkpoint: 10}, grow(11))
	now = now.AddDate(0, 0, 31) // all of that is past its time now
	require.Equal(t, Tidied{Checkpoint: 20, Deleted: 21}, grow(10), "versions 0 to 19, and checkpoint 10")
	b.requireEqual()
	require.Equal(t, int64(20), b.catchUp(b.mirror()).Version)

	f := &faultyStore{Store: b.store}
	m.log.store = f
	grow(10)
	require.NotContains(t, strings.Join(f.taken(), "\n"), "list", "the log is listed once a day")
}

func TestCheckpointNeedsNoOtherWritersFeatures(t *testing.T) {
	st := shown(t)
	tail := newReplay("file:///w")
	tail.apply([]Action{{Add: &Add{Path: "x", DeletionVector: &DeletionVector{}}}})
	w, err := newCheckpointWriter(memory.DefaultAllocator)
	require.NoError(t, err)
	defer w.release()
	require.ErrorContains(t, writeCheckpoint(t.Context(), w, st, nil, tail, 0), "deletion vector")
	_, _, err = readCheckpointHeader(t.Context(), []byte("no parquet"))
	require.ErrorContains(t, err, "not a readable checkpoint")
}

// A foreign version is met also where it is the one that was checkpointed.
func TestCheckpointOfAForeignVersion(t *testing.T) {
	b := newBench(t, idSchema(), nil)
	for i := range 10 {
		b.append(int64(i + 1))
	}
	b.catchUp(b.mirror())
	require.NoError(t, b.store.PutIfAbsent(t.Context(), testRoot+"/_delta_log/"+commitName(10), []byte(`{"remove":{"path":"part-1.parquet","dataChange":true,"deletionTimestamp":1}}`)))
	tidied, err := b.mirror().Tidy(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(10), tidied.Checkpoint)
	require.NotEqual(t, b.wantLive(), b.live())
	require.Equal(t, 1, b.catchUp(b.mirror()).Written)
	b.requireEqual()
}

func TestStatesAreValues(t *testing.T) {
	first := shown(t)
	second := first.apply(1, []Action{{Txn: &Txn{AppID: "x", Version: 1}}})
	require.Len(t, first.txns, 1)
	require.Len(t, second.txns, 2)
}

// The log of a table whose checkpoints are written by two at once stays whole.
func TestTwoCheckpointersAtOnce(t *testing.T) {
	b := newBench(t, idSchema(), nil)
	for i := range 11 {
		b.append(int64(i + 1))
	}
	one, two := b.mirror(), b.mirror()
	b.catchUp(one)
	b.catchUp(two)
	errs := make(chan error)
	for _, m := range []*Mirror{one, two} {
		go func() { _, err := m.Tidy(context.Background()); errs <- err }()
	}
	require.NoError(t, <-errs)
	require.NoError(t, <-errs)
	b.requireEqual()
	data, err := b.store.Get(t.Context(), testRoot+"/_delta_log/"+checkpointName(10))
	require.NoError(t, err)
	require.True(t, bytes.HasPrefix(data, []byte("PAR1")))
	b.commit(func(txn *table.Transaction) error { return txn.SetProperties(iceberg.Properties{"a": "b"}) })
	require.Zero(t, b.catchUp(one).Written, "a change of properties is none of Delta's")
}
