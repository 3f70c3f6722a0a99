package icebergtable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path"
	"strings"
	"time"

	icebergio "github.com/apache/iceberg-go/io"

	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore"
)

// IO is iceberg-go's file system over a warehouse. It is safe for concurrent use.
//
//   - A file created is uploaded from the moment it is closed; Close does not wait.
//     [IO.Barrier] does, and the commit path calls it before every swap.
//   - What was just written or read is answered from memory, within a bound.
//   - Remove is queued, behind an upload of that file if there is one; a metadata file
//     is left alone, because those go by age.
//   - Folders need not be made.
//
// Locations outside of the warehouse are refused.
type IO struct {
	store   *objstore.Store
	up      *uploads
	cache   *cache
	encoded string // the root as net/url spells it, where that differs; else ""
}

func newIO(store *objstore.Store) (*IO, error) {
	encoded, err := encodedRoot(store.Root())
	if err != nil {
		return nil, err
	}
	return &IO{store: store, up: newUploads(store), cache: newCache(cacheBytes), encoded: encoded}, nil
}

// encodedRoot is root as iceberg-go's location provider spells it, or "" where that
// is the same.
func encodedRoot(root string) (string, error) {
	u, err := url.Parse(root)
	if err != nil {
		return "", fmt.Errorf("%w: warehouse %s: %w", ErrRefused, root, err)
	}
	encoded := strings.TrimSuffix(u.JoinPath("x").String(), "/x")
	if encoded == root {
		return "", nil
	}
	return encoded, nil
}

// Barrier returns nil when every file under location whose Close has returned is
// durable. An upload that failed is tried once more; if it fails again the barrier
// does, and so does every later one until the file is stored or removed.
func (o *IO) Barrier(ctx context.Context, location string) error {
	key, ok := o.store.Key(location)
	if !ok {
		return o.outside("waiting for uploads under", location)
	}
	if key != "" {
		key += "/"
	}
	if err := o.up.barrier(ctx, key); err != nil {
		return fmt.Errorf("metadata files under %s are not stored: %w", location, err)
	}
	return nil
}

// For is the file system for calls that ctx bounds. Uploads are not bound by it.
func (o *IO) For(ctx context.Context) icebergio.IO { return boundIO{o, ctx} }

func (o *IO) close(ctx context.Context) { o.up.close(ctx) }

func (o *IO) outside(doing, location string) error {
	return fmt.Errorf("%w: %s %s: it lies outside of the warehouse %s", ErrRefused, doing, location, o.store.Root())
}

// boundIO is the IO as iceberg-go wants it: without contexts.
type boundIO struct {
	*IO
	ctx context.Context // of the call that asked for the file system
}

var (
	_ icebergio.WriteFileIO = boundIO{}
	_ icebergio.ReadFileIO  = boundIO{}
	_ icebergio.MkdirAllIO  = boundIO{}
)

// whole reports whether a file is read as one and kept: table metadata of any kind.
// Data files are read in parts.
func whole(key string) bool {
	return strings.HasSuffix(key, ".avro") || strings.HasSuffix(key, ".json")
}

// lasting reports whether a name always means the same content.
func lasting(key string) bool {
	base := path.Base(key)
	return strings.HasSuffix(base, ".avro") || strings.HasSuffix(base, ".metadata.json") && parseVersion(base) == 0
}

func (o boundIO) read(key string) ([]byte, error) {
	if data, ok := o.up.pending(key); ok {
		return data, nil
	}
	if data, ok := o.cache.get(key); ok {
		return data, nil
	}
	data, err := o.store.Get(o.ctx, key)
	if err == nil && lasting(key) {
		o.cache.put(key, data)
	}
	return data, err
}

// Open implements [icebergio.IO].
func (o boundIO) Open(name string) (icebergio.File, error) {
	key, ok := o.store.Key(name)
	if !ok || key == "" {
		return nil, pathError("open", name, o.outside("opening", name))
	}
	if !whole(key) {
		if _, pending := o.up.pending(key); !pending {
			r, err := o.store.OpenReader(o.ctx, key)
			if err != nil {
				return nil, pathError("open", name, err)
			}
			return storedFile{r, key}, nil
		}
	}
	data, err := o.read(key)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return memFile{bytes.NewReader(data), key}, nil
}

// ReadFile implements [icebergio.ReadFileIO]. The caller may change what it gets.
func (o boundIO) ReadFile(name string) ([]byte, error) {
	key, ok := o.store.Key(name)
	if !ok || key == "" {
		return nil, pathError("open", name, o.outside("reading", name))
	}
	data, err := o.read(key)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return bytes.Clone(data), nil
}

// Create implements [icebergio.WriteFileIO]. The upload begins with Close.
func (o boundIO) Create(name string) (icebergio.FileWriter, error) {
	key, ok := o.store.Key(name)
	if !ok {
		return nil, pathError("create", name, o.outside("creating", name))
	}
	if err := objstore.CheckNewKey(key); err != nil {
		return nil, pathError("create", name, err)
	}
	return &fileWriter{o: o.IO, ctx: o.ctx, key: key, encoded: o.encoded != "" && strings.HasPrefix(name, o.encoded+"/")}, nil
}

// WriteFile implements [icebergio.WriteFileIO].
func (o boundIO) WriteFile(name string, content []byte) error {
	w, err := o.Create(name)
	if err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		return err
	}
	return w.Close()
}

// Remove implements [icebergio.IO]. It only asks for the removal; a file that stays
// behind is an orphan, no error.
func (o boundIO) Remove(name string) error {
	key, ok := o.store.Key(name)
	if !ok || key == "" {
		return pathError("remove", name, o.outside("removing", name))
	}
	if !strings.HasSuffix(key, ".metadata.json") {
		o.remove(key)
	}
	return nil
}

func (o *IO) remove(key string) {
	o.cache.remove(key)
	o.up.remove(key)
}

// write stores data under key behind the caller's back. Nobody may change data afterwards.
func (o *IO) write(key string, data []byte) {
	if lasting(key) {
		o.cache.put(key, data)
	}
	o.up.put(key, data)
}

// MkdirAll implements [icebergio.MkdirAllIO]: folders come with their files.
func (o boundIO) MkdirAll(string) error { return nil }

// fileWriter gathers a file in memory.
type fileWriter struct {
	o       *IO
	ctx     context.Context // of the call that asked for the file system
	key     string
	encoded bool // the name came percent-encoded, as do the ones iceberg-go wrote into it
	buf     bytes.Buffer
	closed  bool
}

func (w *fileWriter) Write(p []byte) (int, error) {
	if w.closed {
		return 0, fs.ErrClosed
	}
	return w.buf.Write(p)
}

func (w *fileWriter) ReadFrom(r io.Reader) (int64, error) {
	if w.closed {
		return 0, fs.ErrClosed
	}
	return w.buf.ReadFrom(r)
}

func (w *fileWriter) Close() error {
	if w.closed {
		return fs.ErrClosed
	}
	w.closed = true
	data := w.buf.Bytes()
	if isManifestList(w.key) {
		var err error
		if data, err = w.manifestList(data); err != nil {
			return fmt.Errorf("writing %s: %w", w.o.store.Location(w.key), err)
		}
	}
	w.o.write(w.key, data)
	return nil
}

// manifestList is a manifest list as it is to be stored.
func (w *fileWriter) manifestList(data []byte) (_ []byte, err error) {
	if w.encoded {
		if data, err = rawManifestList(data, w.o.encoded, w.o.store.Root()); err != nil {
			return nil, err
		}
	}
	return wholeSummaries(data, func(location string) ([]byte, error) {
		key, ok := w.o.store.Key(location)
		if !ok {
			return nil, w.o.outside("reading", location)
		}
		return boundIO{w.o, w.ctx}.read(key)
	})
}

// memFile is a whole file in memory.
type memFile struct {
	*bytes.Reader
	key string
}

func (f memFile) Close() error               { return nil }
func (f memFile) Stat() (fs.FileInfo, error) { return fileInfo{path.Base(f.key), f.Size()}, nil }

// storedFile is a file that is read in parts.
type storedFile struct {
	objstore.Reader
	key string
}

func (f storedFile) Stat() (fs.FileInfo, error) { return fileInfo{path.Base(f.key), f.Size()}, nil }

type fileInfo struct {
	name string
	size int64
}

func (i fileInfo) Name() string     { return i.name }
func (i fileInfo) Size() int64      { return i.size }
func (fileInfo) Mode() fs.FileMode  { return 0o444 }
func (fileInfo) ModTime() time.Time { return time.Time{} }
func (fileInfo) IsDir() bool        { return false }
func (fileInfo) Sys() any           { return nil }

// pathError is err as package fs shapes it; a missing object is fs.ErrNotExist too.
func pathError(op, name string, err error) error {
	if errors.Is(err, objstore.ErrNotFound) {
		err = fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}
