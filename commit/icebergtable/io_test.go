package icebergtable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync/atomic"
	"testing"
	"time"

	icebergio "github.com/apache/iceberg-go/io"
	"github.com/stretchr/testify/require"

	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore"
	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore/objstoretest"
)

// openIO is an IO over a store whose file operations are recorded, and held up or
// failed by gate if that is set.
func openIO(t *testing.T) (*IO, *objstore.Store, *objstoretest.Recorder) {
	t.Helper()
	rec := objstoretest.NewRecorder()
	store, err := objstore.Open(t.Context(), objstore.Config{URL: t.TempDir(), Files: rec})
	require.NoError(t, err)
	o, err := newIO(store)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		o.close(ctx)
	})
	return o, store, rec
}

func fileSystem(ctx context.Context, o *IO) interface {
	icebergio.WriteFileIO
	icebergio.ReadFileIO
	icebergio.MkdirAllIO
} {
	return boundIO{o, ctx}
}

func TestIOWriteBehind(t *testing.T) {
	o, store, rec := openIO(t)
	gate := make(chan struct{})
	held := atomic.Bool{}
	slow := &gated{FileSystem: rec, gate: gate, held: &held}
	store2, err := objstore.Open(t.Context(), objstore.Config{URL: store.Root(), Files: slow})
	require.NoError(t, err)
	held.Store(true)
	o.up.store = store2 // uploads now wait for the gate

	ctx, cancel := context.WithCancel(t.Context())
	fsys := fileSystem(ctx, o)
	name := store.Location("ns/t/iceberg/metadata/m0.avro")
	w, err := fsys.Create(name)
	require.NoError(t, err)
	n, err := w.ReadFrom(bytes.NewReader([]byte("first ")))
	require.NoError(t, err)
	require.EqualValues(t, 6, n)
	_, err = w.Write([]byte("second"))
	require.NoError(t, err)
	require.NoError(t, w.Close(), "Close does not wait")
	require.Error(t, w.Close())
	_, err = w.Write(nil)
	require.Error(t, err)
	cancel() // the call that wrote the file is over; its upload is not

	// It is read back while it is on its way.
	data, err := fsys.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "first second", string(data))
	data[0] = 'X' // the caller's own copy
	f, err := fsys.Open(name)
	require.NoError(t, err)
	read, err := io.ReadAll(f)
	require.NoError(t, err)
	require.Equal(t, "first second", string(read))
	info, err := f.Stat()
	require.NoError(t, err)
	require.EqualValues(t, 12, info.Size())
	require.Equal(t, "m0.avro", info.Name())
	require.NoError(t, f.Close())

	_, err = store.Stat(t.Context(), "ns/t/iceberg/metadata/m0.avro")
	require.ErrorIs(t, err, objstore.ErrNotFound, "it is not stored yet")
	short, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	require.ErrorIs(t, o.Barrier(short, store.Location("ns/t/iceberg")), context.DeadlineExceeded)
	require.NoError(t, o.Barrier(t.Context(), store.Location("ns/other")), "another table is not held up")
	require.NoError(t, o.Barrier(t.Context(), store.Location("ns/t/ice")), "nor one whose name begins alike")

	close(gate)
	require.NoError(t, o.Barrier(t.Context(), store.Location("ns/t/iceberg")))
	path, _ := store.LocalPath("ns/t/iceberg/metadata/m0.avro")
	require.NoError(t, rec.Durable(path))
	got, err := store.Get(t.Context(), "ns/t/iceberg/metadata/m0.avro")
	require.NoError(t, err)
	require.Equal(t, "first second", string(got))
	require.Empty(t, o.up.last, "nothing is kept of uploads that are done")
}

// gated holds up the making of files until gate is closed.
type gated struct {
	objstore.FileSystem
	gate <-chan struct{}
	held *atomic.Bool
}

func (g *gated) CreateNew(path string) (objstore.File, error) {
	if g.held.Load() {
		<-g.gate
	}
	return g.FileSystem.CreateNew(path)
}

func TestIOFailedUpload(t *testing.T) {
	o, store, rec := openIO(t)
	fsys := fileSystem(t.Context(), o)
	full := errors.New("no space left on device")
	location := store.Location("ns/t/iceberg")
	failures := 0
	rec.FailWhen(func(op objstoretest.Op) error {
		if op.Do == "rename" {
			failures++
			return full
		}
		return nil
	})
	require.NoError(t, fsys.WriteFile(location+"/metadata/a.avro", []byte("a")))
	require.ErrorIs(t, o.Barrier(t.Context(), location), full)
	require.Equal(t, 2, failures, "tried once more")
	require.ErrorIs(t, o.Barrier(t.Context(), location), full, "whoever waits next must not pass")
	require.NoError(t, o.Barrier(t.Context(), store.Location("ns/u")), "another table does")
	data, err := fsys.ReadFile(location + "/metadata/a.avro")
	require.NoError(t, err)
	require.Equal(t, "a", string(data))

	rec.FailWhen(nil)
	require.NoError(t, o.Barrier(t.Context(), location), "it heals")
	_, err = store.Get(t.Context(), "ns/t/iceberg/metadata/a.avro")
	require.NoError(t, err)

	// Given up: no barrier waits for it any more.
	rec.FailWhen(objstoretest.FailOn("rename", "b.avro", full))
	require.NoError(t, fsys.WriteFile(location+"/metadata/b.avro", []byte("b")))
	require.ErrorIs(t, o.Barrier(t.Context(), location), full)
	require.NoError(t, fsys.Remove(location+"/metadata/b.avro"))
	require.NoError(t, o.Barrier(t.Context(), location))
}

func TestIORemove(t *testing.T) {
	o, store, _ := openIO(t)
	fsys := fileSystem(t.Context(), o)
	location := store.Location("ns/t/iceberg/metadata")
	for i := range 100 { // more than run at once
		require.NoError(t, fsys.WriteFile(fmt.Sprintf("%s/%d.avro", location, i), []byte("x")))
		require.NoError(t, fsys.Remove(fmt.Sprintf("%s/%d.avro", location, i)))
		if i%2 == 0 {
			require.NoError(t, fsys.WriteFile(fmt.Sprintf("%s/%d.avro", location, i), []byte("again")))
		}
	}
	require.NoError(t, fsys.Remove(location+"/never-there.avro"))
	require.NoError(t, fsys.WriteFile(location+"/v1.metadata.json", []byte("{}")))
	require.NoError(t, fsys.Remove(location+"/v1.metadata.json"))
	require.NoError(t, fsys.MkdirAll(location))
	o.close(t.Context())
	var left []string
	for o, err := range store.List(t.Context(), "", "") {
		require.NoError(t, err)
		left = append(left, o.Key)
	}
	require.Len(t, left, 51, "the last word on each file counts; metadata files stay")
	require.Contains(t, left, "ns/t/iceberg/metadata/v1.metadata.json")
	require.NotContains(t, left, "ns/t/iceberg/metadata/1.avro")
	_, err := fsys.ReadFile(location + "/1.avro")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = fsys.ReadFile(location + "/2.avro")
	require.NoError(t, err)
}

func TestIOOutside(t *testing.T) {
	o, store, _ := openIO(t)
	fsys := fileSystem(t.Context(), o)
	for _, name := range []string{"file:///elsewhere/x.avro", store.Root() + "/../x.avro", "s3://bucket/x.avro", ""} {
		_, err := fsys.Open(name)
		require.ErrorIs(t, err, ErrRefused, name)
		_, err = fsys.ReadFile(name)
		require.ErrorIs(t, err, ErrRefused, name)
		_, err = fsys.Create(name)
		require.Error(t, err, name)
		require.ErrorIs(t, fsys.Remove(name), ErrRefused, name)
		require.ErrorIs(t, o.Barrier(t.Context(), name), ErrRefused, name)
	}
	_, err := fsys.Create(store.Location("a b.avro"))
	require.ErrorIs(t, err, objstore.ErrKey)
	var pathErr *fs.PathError
	_, err = fsys.Open(store.Location("missing.avro"))
	require.ErrorAs(t, err, &pathErr)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = fsys.Open(store.Location("missing.parquet"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestIOReadsDataFilesInParts(t *testing.T) {
	o, store, _ := openIO(t)
	require.NoError(t, store.Put(t.Context(), "ns/t/delta/x.parquet", []byte("0123456789")))
	f, err := fileSystem(t.Context(), o).Open(store.Location("ns/t/delta/x.parquet"))
	require.NoError(t, err)
	part := make([]byte, 3)
	_, err = f.ReadAt(part, 4)
	require.NoError(t, err)
	require.Equal(t, "456", string(part))
	info, err := f.Stat()
	require.NoError(t, err)
	require.EqualValues(t, 10, info.Size())
	require.NoError(t, f.Close())
	require.Zero(t, o.cache.size)
}

func TestCache(t *testing.T) {
	c := newCache(100)
	for i := range 10 {
		c.put(fmt.Sprint(i), make([]byte, 30))
	}
	require.LessOrEqual(t, c.size, 100)
	_, ok := c.get("9")
	require.True(t, ok)
	_, ok = c.get("0")
	require.False(t, ok)
	_, ok = c.get("7") // now more recent than 8
	require.True(t, ok)
	c.put("10", make([]byte, 30))
	_, ok = c.get("8")
	require.False(t, ok)
	_, ok = c.get("7")
	require.True(t, ok)
	c.put("big", make([]byte, 101))
	_, ok = c.get("big")
	require.False(t, ok)
	c.put("7", make([]byte, 40))
	c.remove("7")
	c.remove("7")
	_, ok = c.get("7")
	require.False(t, ok)
	for range c.order.Len() {
		c.remove(c.order.Front().Value.(*cached).key)
	}
	require.Zero(t, c.size)

	require.True(t, lasting("a/m0.avro"))
	require.True(t, lasting("a/00001-8f6b1c1e.metadata.json"))
	require.False(t, lasting("a/v1.metadata.json"), "a table made anew has the same name for it")
	require.False(t, lasting("a/version-hint.text"))
	require.False(t, lasting("a/x.parquet"))
}
