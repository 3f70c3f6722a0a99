package datafile

import (
	"context"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"golang.org/x/sync/errgroup"
)

const (
	defaultPartitionRows = 256 << 10
	// partitionBytes ends a holding of wide rows before its row limit.
	partitionBytes = 64 << 20
)

// hold takes ownership of rec.
func (s *Set) hold(ctx context.Context, rec arrow.RecordBatch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = append(s.held, rec)
	s.rows += int(rec.NumRows())
	s.bytes += size(rec.Columns())
	limit := s.opts.PartitionRows
	if limit <= 0 {
		limit = defaultPartitionRows
	}
	if s.rows < limit && s.bytes < partitionBytes {
		return nil
	}
	if err := s.flush(ctx); err != nil {
		if s.failed == nil {
			s.failed = err
		}
		return err
	}
	return nil
}

// flush writes the held rows, a file for each partition, as many at once as
// there are lanes. s.mu is held.
func (s *Set) flush(ctx context.Context) error {
	if len(s.held) == 0 {
		return nil
	}
	rec, err := s.join()
	if err != nil {
		return err
	}
	defer rec.Release()
	parts, err := s.parts.Split(rec)
	if err != nil {
		return err
	}
	// One gather puts the rows of each partition side by side; a partition is
	// then a slice.
	sorted, err := gather(compute.WithAllocator(ctx, s.opts.mem()), rec, parts)
	if err != nil {
		return fmt.Errorf("grouping rows by partition: %w", err)
	}
	defer sorted.Release()

	files := make([]*File, len(parts))
	took := make([]time.Duration, len(parts))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(s.opts.Lanes)
	offset := int64(0)
	for i, p := range parts {
		slice := sorted.NewSlice(offset, offset+int64(len(p.Rows)))
		offset += int64(len(p.Rows))
		name := s.name(s.next)
		s.next++
		group.Go(func() error {
			defer slice.Release()
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			w, err := newWriter(ctx, s.store, name, slice, s.opts)
			if err != nil {
				return err
			}
			if err := w.write(slice); err != nil {
				w.abort()
				return err
			}
			f, err := w.close()
			if err != nil {
				return err
			}
			f.partition = p.Values
			files[i], took[i] = f, w.encode
			return nil
		})
	}
	err = group.Wait()
	for i, f := range files {
		if f != nil {
			s.done = append(s.done, f) // Abort removes them
			s.encode += took[i]
		}
	}
	return err
}

// join is the held records as one, and lets go of them.
func (s *Set) join() (arrow.RecordBatch, error) {
	defer func() {
		for _, r := range s.held {
			r.Release()
		}
		s.held, s.rows, s.bytes = nil, 0, 0
	}()
	if len(s.held) == 1 {
		s.held[0].Retain()
		return s.held[0], nil
	}
	return Join(s.held, s.opts.mem())
}

// Join concatenates records of one schema. The caller releases the result.
func Join(recs []arrow.RecordBatch, mem memory.Allocator) (arrow.RecordBatch, error) {
	schema := recs[0].Schema()
	cols := make([]arrow.Array, schema.NumFields())
	defer release(cols)
	var rows int64
	for _, r := range recs {
		rows += r.NumRows()
	}
	for c := range cols {
		parts := make([]arrow.Array, len(recs))
		for i, r := range recs {
			parts[i] = r.Column(c)
		}
		a, err := array.Concatenate(parts, mem)
		if err != nil {
			return nil, fmt.Errorf("joining records: column %q: %w", schema.Field(c).Name, err)
		}
		cols[c] = a
	}
	return array.NewRecordBatch(schema, cols, rows), nil
}

// size is about what arrays hold, in bytes: of a slice, its own share.
func size(arrays []arrow.Array) (n int64) {
	for _, a := range arrays {
		switch x := a.(type) {
		case *array.Struct:
			for i := range x.NumField() {
				n += size([]arrow.Array{x.Field(i)})
			}
		case array.ListLike: // maps too
			if x.Len() == 0 || x.ListValues().Len() == 0 {
				continue
			}
			start, _ := x.ValueOffsets(0)
			_, end := x.ValueOffsets(x.Len() - 1)
			n += 4*int64(x.Len()) + size([]arrow.Array{x.ListValues()})*(end-start)/int64(x.ListValues().Len())
		case array.BinaryLike:
			n += 4*int64(x.Len()) + int64(len(x.ValueBytes()))
		default:
			if w, ok := a.DataType().(arrow.FixedWidthDataType); ok {
				n += int64(a.Len()) * int64(w.BitWidth()) / 8
			}
		}
	}
	return n
}

func gather(ctx context.Context, rec arrow.RecordBatch, parts []Partition) (arrow.RecordBatch, error) {
	b := array.NewInt32Builder(compute.GetAllocator(ctx))
	defer b.Release()
	b.Reserve(int(rec.NumRows()))
	for _, p := range parts {
		b.AppendValues(p.Rows, nil)
	}
	indices := b.NewInt32Array()
	defer indices.Release()
	cols := make([]arrow.Array, rec.NumCols())
	defer release(cols)
	for i, c := range rec.Columns() {
		taken, err := compute.TakeArrayOpts(ctx, c, indices, compute.TakeOptions{BoundsCheck: false})
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", rec.ColumnName(i), err)
		}
		cols[i] = taken
	}
	return array.NewRecordBatch(rec.Schema(), cols, rec.NumRows()), nil
}
