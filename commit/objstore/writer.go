package objstore

import (
	"context"
	"errors"
)

// writerBackend is the part of a streamed write that differs between stores.
type writerBackend interface {
	write(p []byte) (int, error)
	commit() error // makes the object visible and durable, and releases everything
	abort()        // releases everything; nothing becomes visible
}

var errWriterDone = errors.New("the object is already closed or aborted")

// Writer writes one new object as a stream. Nothing of it is visible before Close
// has returned nil. It belongs to one goroutine.
type Writer struct {
	s    *Store
	ctx  context.Context // bounds the whole write, as io.Writer takes none
	key  string
	w    writerBackend
	size int64
	err  error // the first failure, or errWriterDone
}

// Key is the key of the object.
func (w *Writer) Key() string { return w.key }

// Size is the number of bytes written so far.
func (w *Writer) Size() int64 { return w.size }

// Write appends p. After an error only Abort is of use.
func (w *Writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.w.write(p)
	w.size += int64(n)
	if err != nil {
		w.err = w.s.wrap("writing", w.key, err)
	}
	return n, w.err
}

// Close completes the object, in place of any of that name. It is visible and
// durable when nil is returned. After an error it may be there or not, but never in
// part; if a Write failed or ctx is done, it is not.
func (w *Writer) Close() error {
	if w.err == nil {
		w.err = w.ctx.Err()
	}
	if w.err != nil {
		err := w.err
		w.Abort()
		return err
	}
	w.err = errWriterDone
	return w.s.wrap("writing", w.key, w.w.commit())
}

// Abort gives the object up. It may follow anything, and be called twice.
func (w *Writer) Abort() {
	if !errors.Is(w.err, errWriterDone) {
		w.err = errWriterDone
		w.w.abort()
	}
}
