package objstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"strings"
	"time"
)

// Config says where a warehouse lies.
type Config struct {
	// URL is a folder ("./lakehouse", "/data/lakehouse", "file:///data/lakehouse"),
	// "mem://name" (this process's memory, for tests: the same name is the same
	// warehouse), or the URL of a bucket, "scheme://bucket/prefix".
	URL string
	// Files replaces the operating system's file operations under a local
	// warehouse, so that a test can record or fail them. Nil: the real ones.
	Files FileSystem
}

// Object is what a listing tells of an object.
type Object struct {
	Key     string
	Size    int64 // bytes
	ModTime time.Time
}

// Reader reads one object. ReadAt may be called concurrently, the rest not.
type Reader interface {
	io.Reader
	io.ReaderAt
	io.Seeker
	io.Closer
	// Size is the object's size in bytes.
	Size() int64
}

// backend is what a kind of storage supplies. Keys are checked before they come here.
type backend interface {
	get(ctx context.Context, key string) ([]byte, error)
	open(ctx context.Context, key string) (Reader, error)
	put(ctx context.Context, key string, data []byte) error
	putIfAbsent(ctx context.Context, key string, data []byte) error
	create(ctx context.Context, key string) (writerBackend, error)
	stat(ctx context.Context, key string) (Object, error)
	delete(ctx context.Context, key string) error
	list(ctx context.Context, prefix, startAfter string) iter.Seq2[Object, error]
	folders(ctx context.Context, prefix string) iter.Seq2[string, error]
	close() error
}

// Store is an open warehouse. It is safe for concurrent use.
type Store struct {
	root string
	dir  string // local folder, or ""
	b    backend
}

// Open opens the warehouse at cfg.URL. A local folder is made where there is none;
// a file in its place, a folder that cannot be written to, and a file system
// without hard links are refused.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	p, err := parsePlace(cfg.URL)
	if err != nil {
		return nil, err
	}
	var b backend
	if p.scheme == "file" {
		files := cfg.Files
		if files == nil {
			files = osFiles{}
		}
		b, err = openLocal(p.dir, files)
	} else {
		b, err = openBucket(ctx, p)
	}
	if err != nil {
		return nil, fmt.Errorf("warehouse %s: %w", p.shown(), err)
	}
	return &Store{root: p.root(), dir: p.dir, b: b}, nil
}

// shown is the place as a message to people names it: never with its query, which
// may hold credentials.
func (p place) shown() string {
	if p.scheme == "file" {
		return p.dir
	}
	return p.root()
}

// Close releases the store. Operations under way may fail.
func (s *Store) Close() error { return s.b.close() }

// Root is the warehouse's location, without a trailing slash.
func (s *Store) Root() string { return s.root }

// Location is the location of key, as table metadata holds it.
func (s *Store) Location(key string) string {
	if key == "" {
		return s.root
	}
	return s.root + "/" + key
}

// Key is the key of a location, or false where that lies outside of the warehouse.
// For a local warehouse it takes "file:/x", "file:///x" and plain "/x".
func (s *Store) Key(location string) (string, bool) { return keyIn(s.root, location) }

// LocalPath is the path of key for messages to people, or false where the warehouse
// is not on local disk.
func (s *Store) LocalPath(key string) (string, bool) {
	if s.dir == "" {
		return "", false
	}
	return filepath.Join(s.dir, filepath.FromSlash(key)), true
}

// Get is the whole object. A missing one is [ErrNotFound].
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	if err := CheckKey(key); err != nil {
		return nil, err
	}
	data, err := s.b.get(ctx, key)
	return data, s.wrap("reading", key, err)
}

// OpenReader opens an object for reading in parts; ctx bounds all reads.
func (s *Store) OpenReader(ctx context.Context, key string) (Reader, error) {
	if err := CheckKey(key); err != nil {
		return nil, err
	}
	r, err := s.b.open(ctx, key)
	if err != nil {
		return nil, s.wrap("opening", key, err)
	}
	return r, nil
}

// Put writes an object, in place of any that is there. It is durable on return.
// After an error the old, the new or no object may be there, but never a part.
func (s *Store) Put(ctx context.Context, key string, data []byte) error {
	if err := checkWrite(ctx, key); err != nil {
		return err
	}
	return s.wrap("writing", key, s.b.put(ctx, key, data))
}

// PutIfAbsent writes an object where there is none; of several that try, one wins
// and the others get [ErrExists]. It is durable on return. Any other error leaves
// the outcome unknown.
func (s *Store) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	if err := checkWrite(ctx, key); err != nil {
		return err
	}
	return s.wrap("writing", key, s.b.putIfAbsent(ctx, key, data))
}

// Create begins an object that is written as a stream. ctx bounds the whole write.
func (s *Store) Create(ctx context.Context, key string) (*Writer, error) {
	if err := checkWrite(ctx, key); err != nil {
		return nil, err
	}
	w, err := s.b.create(ctx, key)
	if err != nil {
		return nil, s.wrap("creating", key, err)
	}
	return &Writer{s: s, ctx: ctx, key: key, w: w}, nil
}

// Stat describes an object. A missing one is [ErrNotFound].
func (s *Store) Stat(ctx context.Context, key string) (Object, error) {
	if err := CheckKey(key); err != nil {
		return Object{}, err
	}
	o, err := s.b.stat(ctx, key)
	return o, s.wrap("looking up", key, err)
}

// Delete removes an object. A missing one is no error.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	err := s.b.delete(ctx, key)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return s.wrap("deleting", key, err)
}

// List yields all objects whose key begins with prefix and is after startAfter, in
// byte order of their keys. Objects written or deleted meanwhile may be in or not. A
// prefix under which nothing lies yields nothing. The first error ends the listing.
func (s *Store) List(ctx context.Context, prefix, startAfter string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		if err := checkPrefix(prefix); err != nil {
			yield(Object{}, err)
			return
		}
		if err := ctx.Err(); err != nil {
			yield(Object{}, s.wrap("listing", prefix, err))
			return
		}
		for o, err := range s.b.list(ctx, prefix, startAfter) {
			if err != nil {
				yield(Object{}, s.wrap("listing", prefix, err))
				return
			}
			if strings.HasPrefix(o.Key, stagingDir+"/") {
				continue
			}
			if !yield(o, nil) {
				return
			}
		}
	}
}

// Folders yields the names, in no promised order, of the folders directly under prefix,
// which is "" or ends with "/": the distinct first segments of the keys that go on
// below it. On local disk empty folders count too.
func (s *Store) Folders(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		err := checkPrefix(prefix)
		if err == nil && prefix != "" && !strings.HasSuffix(prefix, "/") {
			err = fmt.Errorf("%w: prefix %q names no folder; it must end with a slash", ErrKey, prefix)
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			yield("", err)
			return
		}
		for name, err := range s.b.folders(ctx, prefix) {
			if err != nil {
				yield("", s.wrap("listing", prefix, err))
				return
			}
			if prefix+name == stagingDir {
				continue
			}
			if !yield(name, nil) {
				return
			}
		}
	}
}

func checkWrite(ctx context.Context, key string) error {
	if err := CheckNewKey(key); err != nil {
		return err
	}
	return ctx.Err()
}

// wrap says what was being done to which object.
func (s *Store) wrap(doing, key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", doing, s.Location(key), err)
}
