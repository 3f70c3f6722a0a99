package objstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"

	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"
	"gocloud.dev/gcerrors"
)

const (
	// onePut is the size in bytes up to which a streamed object is one request.
	onePut = 8 << 20
	// contentType is given with every write: drivers else sniff the content, and
	// Bucket.Upload demands one.
	contentType = "application/octet-stream"
	// conflictTries bounds the repetition of a conditional put that the store
	// says collided with another one still under way (S3 status 409).
	conflictTries = 5
)

// bucket is any store that gocloud.dev has a driver for.
type bucket struct {
	b       *blob.Bucket
	closing func() error
}

// memory holds the warehouses of scheme "mem" by name, so that a second Open of a
// name is a second process's view of the same warehouse.
var memory = struct {
	sync.Mutex
	buckets map[string]*blob.Bucket
}{buckets: map[string]*blob.Bucket{}}

// openBucket opens the bucket of p through the driver that is registered for its scheme.
func openBucket(ctx context.Context, p place) (*bucket, error) {
	var b *blob.Bucket
	closing := func() error { return nil }
	if p.scheme == "mem" {
		memory.Lock()
		defer memory.Unlock()
		b = memory.buckets[p.host]
		if b == nil {
			b = memblob.OpenBucket(nil)
			memory.buckets[p.host] = b
		}
		// A prefixed view cannot be had: it would close the shared bucket's own handle.
		if p.prefix != "" {
			return nil, errors.New("a warehouse in memory is mem://name, without a path")
		}
		return &bucket{b: b, closing: closing}, nil
	}
	url := p.scheme + "://" + p.host
	if p.query != "" {
		url += "?" + p.query
	}
	b, err := blob.OpenBucket(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("opening the bucket: %w", err)
	}
	if p.prefix != "" {
		b = blob.PrefixedBucket(b, p.prefix+"/")
	}
	return &bucket{b: b, closing: b.Close}, nil
}

func (b *bucket) close() error { return b.closing() }

func (b *bucket) get(ctx context.Context, key string) ([]byte, error) {
	data, err := b.b.ReadAll(ctx, key)
	return data, typed(err)
}

func (b *bucket) put(ctx context.Context, key string, data []byte) error {
	return typed(b.b.Upload(ctx, key, bytes.NewReader(data), oneRequest(data, false)))
}

func (b *bucket) putIfAbsent(ctx context.Context, key string, data []byte) error {
	// Upload and not a Writer: the Azure driver's Writer panics on a lost race.
	for try := 1; ; try++ {
		err := b.b.Upload(ctx, key, bytes.NewReader(data), oneRequest(data, true))
		switch {
		case err == nil:
			return nil
		case gcerrors.Code(err) == gcerrors.FailedPrecondition, gcerrors.Code(err) == gcerrors.AlreadyExists:
			return fmt.Errorf("%w: %w", ErrExists, err)
		case try < conflictTries && ctx.Err() == nil && strings.Contains(err.Error(), "ConditionalRequestConflict"):
			// Neither won nor lost: the other put may yet fail.
		default:
			return typed(err)
		}
	}
}

// oneRequest keeps the driver from splitting the upload: a conditional put in
// several parts is not one everywhere.
func oneRequest(data []byte, ifNotExist bool) *blob.WriterOptions {
	return &blob.WriterOptions{
		BufferSize:  max(onePut, len(data)+1),
		ContentType: contentType,
		IfNotExist:  ifNotExist,
	}
}

func (b *bucket) stat(ctx context.Context, key string) (Object, error) {
	a, err := b.b.Attributes(ctx, key)
	if err != nil {
		return Object{}, typed(err)
	}
	return Object{Key: key, Size: a.Size, ModTime: a.ModTime}, nil
}

func (b *bucket) delete(ctx context.Context, key string) error { return typed(b.b.Delete(ctx, key)) }

func (b *bucket) list(ctx context.Context, prefix, startAfter string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		it := b.b.List(&blob.ListOptions{Prefix: prefix})
		for {
			o, err := it.Next(ctx)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Object{}, typed(err))
				return
			}
			if o.Key <= startAfter || strings.HasSuffix(o.Key, "/") {
				continue // a name that ends with a slash is a console's idea of a folder
			}
			if !yield(Object{Key: o.Key, Size: o.Size, ModTime: o.ModTime}, nil) {
				return
			}
		}
	}
}

// typed gives gocloud's code for a missing object this package's error.
func typed(err error) error {
	if gcerrors.Code(err) == gcerrors.NotFound {
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return err
}

func (b *bucket) folders(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		it := b.b.List(&blob.ListOptions{Prefix: prefix, Delimiter: "/"})
		for {
			o, err := it.Next(ctx)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield("", typed(err))
				return
			}
			if name := strings.TrimSuffix(strings.TrimPrefix(o.Key, prefix), "/"); o.IsDir && name != "" && !yield(name, nil) {
				return
			}
		}
	}
}
