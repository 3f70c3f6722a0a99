package objstore

import (
	"context"
	"errors"
	"fmt"
	"io"

	"gocloud.dev/blob"
)

// bucketWriter streams an object: one request if it stays under onePut, parts else.
type bucketWriter struct {
	w      *blob.Writer
	cancel context.CancelFunc
}

func (b *bucket) create(ctx context.Context, key string) (writerBackend, error) {
	ctx, cancel := context.WithCancel(ctx)
	w, err := b.b.NewWriter(ctx, key, &blob.WriterOptions{BufferSize: onePut, ContentType: contentType})
	if err != nil {
		cancel()
		return nil, typed(err)
	}
	return &bucketWriter{w: w, cancel: cancel}, nil
}

func (w *bucketWriter) write(p []byte) (int, error) { return w.w.Write(p) }

func (w *bucketWriter) commit() error {
	defer w.cancel()
	return typed(w.w.Close())
}

// abort cancels before it closes, which is how a driver is told to drop the object.
func (w *bucketWriter) abort() {
	w.cancel()
	_ = w.w.Close()
}

// bucketReader reads ranges of an object, one request each; sequential reads share
// one for as long as nobody seeks.
type bucketReader struct {
	ctx  context.Context // bounds all reads, as io.Reader takes none
	b    *bucket
	key  string
	size int64
	off  int64
	seq  *blob.Reader // at off, or nil
}

func (b *bucket) open(ctx context.Context, key string) (Reader, error) {
	o, err := b.stat(ctx, key)
	if err != nil {
		return nil, err
	}
	return &bucketReader{ctx: ctx, b: b, key: key, size: o.Size}, nil
}

func (r *bucketReader) Size() int64 { return r.size }

func (r *bucketReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if r.off >= r.size {
		return 0, io.EOF
	}
	if r.seq == nil {
		seq, err := r.b.b.NewRangeReader(r.ctx, r.key, r.off, -1, nil)
		if err != nil {
			return 0, typed(err)
		}
		r.seq = seq
	}
	n, err := r.seq.Read(p)
	r.off += int64(n)
	return n, err
}

func (r *bucketReader) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("reading %s at the negative offset %d", r.key, off)
	}
	if off >= r.size {
		return 0, io.EOF
	}
	want := min(int64(len(p)), r.size-off)
	part, err := r.b.b.NewRangeReader(r.ctx, r.key, off, want, nil)
	if err != nil {
		return 0, typed(err)
	}
	n, err := io.ReadFull(part, p[:want])
	err = errors.Join(err, part.Close())
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

func (r *bucketReader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.off
	case io.SeekEnd:
		offset += r.size
	}
	if offset < 0 {
		return r.off, fmt.Errorf("seeking in %s to the negative offset %d", r.key, offset)
	}
	if offset != r.off {
		_ = r.Close()
		r.off = offset
	}
	return offset, nil
}

func (r *bucketReader) Close() error {
	if r.seq == nil {
		return nil
	}
	err := r.seq.Close()
	r.seq = nil
	return err
}
