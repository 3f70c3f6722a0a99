package objstoretest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore"
)

// Factory makes an empty warehouse and returns a function that opens it; each call
// is another view of the same warehouse, as another process would have.
type Factory func(t *testing.T) func() *objstore.Store

// Run holds a kind of store to what package objstore promises.
func Run(t *testing.T, fresh Factory) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, func() *objstore.Store){
		"an object is read back whole and in parts": reading,
		"a missing object":                          missing,
		"put replaces":                              replacing,
		"put if absent keeps the first":             keepsFirst,
		"put if absent has one winner":              oneWinner,
		"a streamed object":                         streaming,
		"a stream aborted leaves nothing":           aborting,
		"a stream cancelled leaves nothing":         cancelling,
		"delete":                                    deleting,
		"list is in byte order":                     listing,
		"list resumes after any key":                resuming,
		"folders":                                   folders,
		"odd keys are refused":                      oddKeys,
		"locations lead back to keys":               locations,
		"large objects":                             large,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, fresh(t))
		})
	}
}

func reading(t *testing.T, open func() *objstore.Store) {
	s, ctx := open(), t.Context()
	require.NoError(t, s.Put(ctx, "a/b/object", []byte("0123456789")))
	for _, view := range []*objstore.Store{s, open()} {
		data, err := view.Get(ctx, "a/b/object")
		require.NoError(t, err)
		require.Equal(t, "0123456789", string(data))

		o, err := view.Stat(ctx, "a/b/object")
		require.NoError(t, err)
		require.Equal(t, "a/b/object", o.Key)
		require.EqualValues(t, 10, o.Size)
		require.False(t, o.ModTime.IsZero())

		r, err := view.OpenReader(ctx, "a/b/object")
		require.NoError(t, err)
		require.EqualValues(t, 10, r.Size())
		part := make([]byte, 4)
		n, err := r.ReadAt(part, 3)
		require.NoError(t, err)
		require.Equal(t, "3456", string(part[:n]))
		n, err = r.ReadAt(part, 8)
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, "89", string(part[:n]))
		_, err = r.ReadAt(part, 10)
		require.ErrorIs(t, err, io.EOF)
		pos, err := r.Seek(-3, io.SeekEnd)
		require.NoError(t, err)
		require.EqualValues(t, 7, pos)
		rest, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, "789", string(rest))
		_, err = r.Seek(0, io.SeekStart)
		require.NoError(t, err)
		rest, err = io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, "0123456789", string(rest))
		require.NoError(t, r.Close())
	}
	require.NoError(t, s.Put(ctx, "empty", nil))
	data, err := s.Get(ctx, "empty")
	require.NoError(t, err)
	require.Empty(t, data)
}

func missing(t *testing.T, open func() *objstore.Store) {
	s, ctx := open(), t.Context()
	require.NoError(t, s.Put(ctx, "a/b/object", []byte("x")))
	// Never there; a folder on local disk; below an object.
	for _, key := range []string{"nothing", "a/nothing", "a/b", "a/b/object/deeper"} {
		_, err := s.Get(ctx, key)
		require.ErrorIs(t, err, objstore.ErrNotFound, key)
		require.ErrorContains(t, err, s.Location(key))
		_, err = s.Stat(ctx, key)
		require.ErrorIs(t, err, objstore.ErrNotFound, key)
		_, err = s.OpenReader(ctx, key)
		require.ErrorIs(t, err, objstore.ErrNotFound, key)
		require.NoError(t, s.Delete(ctx, key), key)
	}
	require.Equal(t, []string{"a/b/object"}, keys(t, s, "", ""))
}

func replacing(t *testing.T, open func() *objstore.Store) {
	s, ctx := open(), t.Context()
	require.NoError(t, s.Put(ctx, "k", []byte("a longer first value")))
	require.NoError(t, s.Put(ctx, "k", []byte("second")))
	data, err := open().Get(ctx, "k")
	require.NoError(t, err)
	require.Equal(t, "second", string(data))
}

func keepsFirst(t *testing.T, open func() *objstore.Store) {
	s, ctx := open(), t.Context()
	require.NoError(t, s.PutIfAbsent(ctx, "a/k", []byte("first")))
	for _, view := range []*objstore.Store{s, open()} {
		require.ErrorIs(t, view.PutIfAbsent(ctx, "a/k", []byte("second")), objstore.ErrExists)
	}
	data, err := s.Get(ctx, "a/k")
	require.NoError(t, err)
	require.Equal(t, "first", string(data))
	// After a delete the name is free again.
	require.NoError(t, s.Delete(ctx, "a/k"))
	require.NoError(t, s.PutIfAbsent(ctx, "a/k", []byte("third")))
}

// oneWinner races put-if-absent over many names, on several views.
func oneWinner(t *testing.T, open func() *objstore.Store) {
	const names, racers = 40, 8
	ctx := t.Context()
	views := []*objstore.Store{open(), open()}
	for n := range names {
		key := fmt.Sprintf("race/%d/%d", n%3, n)
		start := make(chan struct{})
		errs := make([]error, racers)
		var wg sync.WaitGroup
		for r := range racers {
			wg.Go(func() {
				<-start
				errs[r] = views[r%len(views)].PutIfAbsent(ctx, key, bytes.Repeat([]byte{byte('a' + r)}, 100))
			})
		}
		close(start)
		wg.Wait()
		winner := -1
		for r, err := range errs {
			if err == nil {
				require.Equal(t, -1, winner, "two winners of %s", key)
				winner = r
				continue
			}
			require.ErrorIs(t, err, objstore.ErrExists)
		}
		require.NotEqual(t, -1, winner, "no winner of %s", key)
		data, err := views[0].Get(ctx, key)
		require.NoError(t, err)
		require.Equal(t, strings.Repeat(string(rune('a'+winner)), 100), string(data))
	}
	require.Len(t, keys(t, views[1], "race/", ""), names)
}

func streaming(t *testing.T, open func() *objstore.Store) {
	s, ctx := open(), t.Context()
	w, err := s.Create(ctx, "t/delta/part-1.parquet")
	require.NoError(t, err)
	require.Equal(t, "t/delta/part-1.parquet", w.Key())
	for range 3 {
		n, err := w.Write([]byte("chunk"))
		require.NoError(t, err)
		require.Equal(t, 5, n)
	}
	require.EqualValues(t, 15, w.Size())
	require.Empty(t, keys(t, open(), "", ""), "visible before it is closed")
	_, err = s.Get(ctx, w.Key())
	require.ErrorIs(t, err, objstore.ErrNotFound)
	require.NoError(t, w.Close())
	data, err := open().Get(ctx, w.Key())
	require.NoError(t, err)
	require.Equal(t, "chunkchunkchunk", string(data))
	require.Error(t, w.Close(), "closed twice")
	_, err = w.Write([]byte("late"))
	require.Error(t, err)
	w.Abort() // after Close: nothing
	require.Equal(t, []string{w.Key()}, keys(t, s, "", ""))
}

func aborting(t *testing.T, open func() *objstore.Store) {
	s, ctx := open(), t.Context()
	for _, size := range []int{0, 10, 9 << 20} {
		w, err := s.Create(ctx, "a/aborted")
		require.NoError(t, err)
		if size > 0 {
			_, err = w.Write(make([]byte, size))
			require.NoError(t, err)
		}
		w.Abort()
		w.Abort()
		require.Error(t, w.Close())
	}
	require.Empty(t, keys(t, s, "", ""))
	require.NoError(t, s.PutIfAbsent(ctx, "a/aborted", []byte("x")), "the name is free")
}

func cancelling(t *testing.T, open func() *objstore.Store) {
	s := open()
	ctx, cancel := context.WithCancel(t.Context())
	w, err := s.Create(ctx, "a/cancelled")
	require.NoError(t, err)
	_, err = w.Write([]byte("some"))
	require.NoError(t, err)
	cancel()
	require.ErrorIs(t, w.Close(), context.Canceled)
	require.ErrorIs(t, s.Put(ctx, "a/cancelled", nil), context.Canceled)
	require.ErrorIs(t, s.PutIfAbsent(ctx, "a/cancelled", nil), context.Canceled)
	require.Empty(t, keys(t, s, "", ""))
}

func deleting(t *testing.T, open func() *objstore.Store) {
	s, ctx := open(), t.Context()
	require.NoError(t, s.Put(ctx, "a/one", nil))
	require.NoError(t, s.Put(ctx, "a/two", nil))
	require.NoError(t, s.Delete(ctx, "a/one"))
	require.NoError(t, s.Delete(ctx, "a/one"), "deleting twice")
	require.Equal(t, []string{"a/two"}, keys(t, open(), "", ""))
}

// manyKeys are in no order, with the pairs whose order a walk of folders gets
// wrong: "a-b" and "a.b" are before "a/b", "a0" after it.
func manyKeys() []string {
	out := []string{
		"a/b", "a-b", "a.b", "a0", "a/b-c", "a/b/c", "a/b0", "a=1/x", "a=1-", "Z", "_log/1", "b",
		"t/delta/_delta_log/00000000000000000009.json",
		"t/delta/_delta_log/00000000000000000010.json",
		"t/delta/_delta_log/00000000000000000010.checkpoint.parquet",
		"t/delta/_delta_log/_last_checkpoint",
	}
	// "a/b" as object and as folder cannot both be on local disk.
	out = slices.DeleteFunc(out, func(k string) bool { return k == "a/b" })
	for i := range 1100 { // more than a page of every driver
		out = append(out, fmt.Sprintf("many/%04d", (i*617)%1100))
	}
	return out
}

func listing(t *testing.T, open func() *objstore.Store) {
	s, ctx := open(), t.Context()
	all := manyKeys()
	for i, key := range all {
		require.NoError(t, s.Put(ctx, key, make([]byte, i%3)))
	}
	slices.Sort(all)
	require.Equal(t, all, keys(t, open(), "", ""))
	for _, prefix := range []string{"a", "a/", "a/b", "a/b/", "a=", "many/", "many/00", "many", "t/delta/_delta_log/", "t/delta/_delta_log/0000000000000000001", "nothing/", "b/"} {
		var want []string
		for _, key := range all {
			if strings.HasPrefix(key, prefix) {
				want = append(want, key)
			}
		}
		require.Equal(t, want, keys(t, s, prefix, ""), "prefix %q", prefix)
	}
	for o, err := range s.List(ctx, "many/", "") {
		require.NoError(t, err)
		require.Equal(t, "many/0000", o.Key)
		require.False(t, o.ModTime.IsZero())
		break // and stopping early is fine
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	for _, err := range s.List(cancelled, "many/", "") {
		require.ErrorIs(t, err, context.Canceled)
	}
}

func resuming(t *testing.T, open func() *objstore.Store) {
	s, ctx := open(), t.Context()
	all := []string{"a-b", "a/b-c", "a/b/c", "a/b/d", "a/b0", "a0", "b/c"}
	for _, key := range all {
		require.NoError(t, s.Put(ctx, key, nil))
	}
	for _, after := range append(slices.Clone(all), "a", "a/", "a/b", "a/b/", "a/b/cc", "a/c", "b/", "c", "A") {
		want := slices.DeleteFunc(slices.Clone(all), func(k string) bool { return k <= after })
		require.Equal(t, want, nonNil(keys(t, s, "", after)), "after %q", after)
		want = slices.DeleteFunc(want, func(k string) bool { return !strings.HasPrefix(k, "a/") })
		require.Equal(t, want, nonNil(keys(t, s, "a/", after)), "prefix a/ after %q", after)
	}
}

func folders(t *testing.T, open func() *objstore.Store) {
	s, ctx := open(), t.Context()
	for _, key := range []string{"b/x/1", "a/2", "a-b/x", "a/y/z", "file", "c/d/e/f"} {
		require.NoError(t, s.Put(ctx, key, nil))
	}
	for prefix, want := range map[string][]string{"": {"a", "a-b", "b", "c"}, "a/": {"y"}, "c/": {"d"}, "c/d/": {"e"}, "c/d/e/": nil, "nothing/": nil} {
		var got []string
		for name, err := range s.Folders(ctx, prefix) {
			require.NoError(t, err)
			got = append(got, name)
		}
		require.ElementsMatch(t, want, got, "prefix %q", prefix)
	}
	for _, prefix := range []string{"a", "/", "../", ".staging/"} {
		for _, err := range s.Folders(ctx, prefix) {
			require.ErrorIs(t, err, objstore.ErrKey, prefix)
		}
	}
}

func oddKeys(t *testing.T, open func() *objstore.Store) {
	s, ctx := open(), t.Context()
	require.NoError(t, s.Put(ctx, "inside", []byte("x")))
	for _, key := range []string{
		"", "/", "/abs", "a//b", "a/", "a/../b", "../outside", "..", ".", "a/./b", "a/..", "a/../../outside",
		"a\x00b", "a\\b", `..\outside`, ".staging/x", ".staging",
	} {
		_, err := s.Get(ctx, key)
		require.ErrorIs(t, err, objstore.ErrKey, "get %q", key)
		_, err = s.Stat(ctx, key)
		require.ErrorIs(t, err, objstore.ErrKey, "stat %q", key)
		_, err = s.OpenReader(ctx, key)
		require.ErrorIs(t, err, objstore.ErrKey, "open %q", key)
		require.ErrorIs(t, s.Delete(ctx, key), objstore.ErrKey, "delete %q", key)
		require.ErrorIs(t, s.Put(ctx, key, nil), objstore.ErrKey, "put %q", key)
	}
	for _, key := range []string{"a b", "é", "a%20b", "a?b", "a#b", "a:b", "a+b", "a\nb", "a,b", "%2e%2e/outside"} {
		require.ErrorIs(t, s.Put(ctx, key, nil), objstore.ErrKey, "put %q", key)
		require.ErrorIs(t, s.PutIfAbsent(ctx, key, nil), objstore.ErrKey, "put %q if absent", key)
		_, err := s.Create(ctx, key)
		require.ErrorIs(t, err, objstore.ErrKey, "create %q", key)
		// Another engine may have made such an object: it can be looked for.
		_, err = s.Get(ctx, key)
		require.ErrorIs(t, err, objstore.ErrNotFound, "get %q", key)
	}
	for _, prefix := range []string{"/", "../", "a/../", "a//", ".staging/"} {
		for _, err := range s.List(ctx, prefix, "") {
			require.ErrorIs(t, err, objstore.ErrKey, "list %q", prefix)
		}
	}
	require.Equal(t, []string{"inside"}, keys(t, s, "", ""))
}

func locations(t *testing.T, open func() *objstore.Store) {
	s := open()
	require.Equal(t, s.Root(), s.Location(""))
	require.Equal(t, s.Root()+"/ns/t/delta", s.Location("ns/t/delta"))
	for _, key := range []string{"", "x", "ns/t/delta/part=a%20b/f.parquet"} {
		got, ok := s.Key(s.Location(key))
		require.True(t, ok, key)
		require.Equal(t, key, got)
	}
	got, ok := s.Key(s.Location("ns/t") + "/")
	require.True(t, ok)
	require.Equal(t, "ns/t", got)
	for _, location := range []string{"", "other://bucket/x", s.Root() + "x/y", s.Root() + "/../x", s.Root() + "/a/../../x", s.Root() + "/a//b"} {
		_, ok := s.Key(location)
		require.False(t, ok, location)
	}
}

func large(t *testing.T, open func() *objstore.Store) {
	s, ctx := open(), t.Context()
	data := make([]byte, 9<<20) // above one part of a streamed upload
	for i := range data {
		data[i] = byte(i * 31 >> 3)
	}
	require.NoError(t, s.PutIfAbsent(ctx, "once", data))
	require.ErrorIs(t, s.PutIfAbsent(ctx, "once", data), objstore.ErrExists)
	w, err := s.Create(ctx, "streamed")
	require.NoError(t, err)
	for rest := data; len(rest) > 0; {
		n, err := w.Write(rest[:min(len(rest), 700_001)])
		require.NoError(t, err)
		rest = rest[n:]
	}
	require.NoError(t, w.Close())
	require.EqualValues(t, len(data), w.Size())
	for _, key := range []string{"once", "streamed"} {
		got, err := open().Get(ctx, key)
		require.NoError(t, err)
		require.True(t, bytes.Equal(data, got), key)
	}
}

func keys(t *testing.T, s *objstore.Store, prefix, startAfter string) []string {
	t.Helper()
	var out []string
	for o, err := range s.List(t.Context(), prefix, startAfter) {
		require.NoError(t, err)
		out = append(out, o.Key)
	}
	return out
}

func nonNil(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
