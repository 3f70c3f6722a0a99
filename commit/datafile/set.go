package datafile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore"
)

// Set writes the data files of one commit under one schema. Concurrent writes
// go to separate files (lanes), as many as [Options.Lanes]; a write that comes
// while no other is under way reuses an open file, so that a quiet stream makes
// one file a commit.
//
// In a partitioned table a file holds rows of one partition. Records are then
// held until [Options.PartitionRows] rows or 64 MiB have come or the set is closed, and
// written partition by partition: open files are bounded by the lanes, however
// many partitions a batch spans.
type Set struct {
	store  *objstore.Store
	schema *arrow.Schema
	name   func(lane int) string
	opts   Options

	free chan *writer  // open files that nobody writes to
	made chan struct{} // a token for each file opened

	parts *Partitioner // nil: unpartitioned

	mu     sync.Mutex
	failed error
	lanes  []*writer
	held   []arrow.RecordBatch // partitioned: not yet written
	rows   int                 // in held
	bytes  int64               // in held
	next   int                 // number of the next file
	done   []*File             // partitioned: finished
	encode time.Duration       // of done
}

// NewSet starts a set whose files all have the given schema (with field ids).
// parts is nil for an unpartitioned table. name gives the key of the n-th file.
func NewSet(store *objstore.Store, schema *arrow.Schema, parts *Partitioner, name func(n int) string, opts Options) *Set {
	if opts.Lanes < 1 {
		opts.Lanes = 1
	}
	return &Set{
		store: store, schema: schema, name: name, opts: opts, parts: parts,
		free: make(chan *writer, opts.Lanes),
		made: make(chan struct{}, opts.Lanes),
	}
}

// Schema is the schema of the files.
func (s *Set) Schema() *arrow.Schema { return s.schema }

// Write encodes rec into one of the set's files. It may be called concurrently.
// After an error the set is broken: only [Set.Abort] is of use.
func (s *Set) Write(ctx context.Context, rec arrow.RecordBatch) error {
	if rec.NumRows() == 0 {
		return nil
	}
	conformed, err := Conform(rec, s.schema, s.opts.mem())
	if err != nil {
		return s.fail(err)
	}
	if s.parts != nil {
		return s.hold(ctx, conformed)
	}
	defer conformed.Release()
	w, err := s.take(ctx, conformed)
	if err != nil {
		return s.fail(err)
	}
	defer func() { s.free <- w }()
	if err := w.write(conformed); err != nil {
		return s.fail(err)
	}
	return nil
}

func (s *Set) fail(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = err
	}
	return err
}

func (s *Set) take(ctx context.Context, first arrow.RecordBatch) (*writer, error) {
	select {
	case w := <-s.free:
		return w, nil
	default:
	}
	select {
	case w := <-s.free:
		return w, nil
	case s.made <- struct{}{}:
		w, err := s.open(ctx, first)
		if err != nil {
			<-s.made // let the next one try, or it would wait for a file that never comes
		}
		return w, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *Set) open(ctx context.Context, first arrow.RecordBatch) (*writer, error) {
	s.mu.Lock()
	lane := len(s.lanes)
	s.lanes = append(s.lanes, nil)
	name := s.name(s.next)
	s.next++
	s.mu.Unlock()
	w, err := newWriter(ctx, s.store, name, first, s.opts)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.lanes[lane] = w
	s.mu.Unlock()
	return w, nil
}

// Close finishes all files, side by side. On error nothing of the set remains
// in the store as far as it can be removed. No Write may be under way.
func (s *Set) Close(ctx context.Context) (files []*File, encode time.Duration, err error) {
	if s.parts != nil {
		s.mu.Lock()
		err := s.flush(ctx)
		s.mu.Unlock()
		if err != nil {
			_ = s.fail(err)
		}
	}
	if s.failed != nil {
		s.Abort(ctx)
		return nil, 0, s.failed
	}
	if s.parts != nil {
		files, encode = s.done, s.encode
		s.done = nil
		return files, encode, nil
	}
	files = make([]*File, len(s.lanes))
	errs := make([]error, len(s.lanes))
	var wg sync.WaitGroup
	for i, w := range s.lanes {
		wg.Go(func() { files[i], errs[i] = w.close() })
		encode += w.encode
	}
	wg.Wait()
	s.lanes = nil
	if err := errors.Join(errs...); err != nil {
		for _, f := range files {
			if f != nil {
				err = errors.Join(err, Remove(ctx, s.store, f))
			}
		}
		return nil, encode, err
	}
	return files, encode, nil
}

// Abort drops what was written. No Write may be under way.
func (s *Set) Abort(ctx context.Context) {
	for _, r := range s.held {
		r.Release()
	}
	s.held, s.rows, s.bytes = nil, 0, 0
	for _, f := range s.done {
		// A file that stays is referenced by nothing, and orphan cleanup finds it.
		_ = Remove(ctx, s.store, f)
	}
	s.done = nil
	for _, w := range s.lanes {
		if w != nil {
			w.abort()
		}
	}
	s.lanes = nil
}

// Remove deletes a finished file that no commit references.
func Remove(ctx context.Context, store *objstore.Store, f *File) error {
	if err := store.Delete(ctx, f.Key); err != nil {
		return fmt.Errorf("removing unreferenced data file %s: %w", f.Key, err)
	}
	return nil
}
