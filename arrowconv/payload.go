package arrowconv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// payloadReader reads the records of an Arrow or Parquet payload one by one.
type payloadReader interface {
	Schema() *arrow.Schema
	// Read gives the next record, which the reader owns until the next call;
	// io.EOF at the end.
	Read() (arrow.RecordBatch, error)
	Release()
}

// openPayload opens an Arrow IPC stream or file, or a Parquet file.
func openPayload(text []byte, format MessageFormat, batch int, mem memory.Allocator) (payloadReader, error) {
	if format == Parquet {
		return openParquet(text, batch, mem)
	}
	if err := checkIPC(text); err != nil {
		return nil, err
	}
	if bytes.HasPrefix(text, []byte(ipcMagic)) {
		r, err := ipc.NewFileReader(bytes.NewReader(text), ipc.WithAllocator(mem))
		if err != nil {
			return nil, err
		}
		return &ipcFile{FileReader: r}, nil
	}
	r, err := ipc.NewReader(bytes.NewReader(text), ipc.WithAllocator(mem))
	if err != nil {
		return nil, err
	}
	return r, nil
}

// ipcFile reads the records of an IPC file in order.
type ipcFile struct {
	*ipc.FileReader
	last arrow.RecordBatch
	next int
}

func (f *ipcFile) Read() (arrow.RecordBatch, error) {
	if f.last != nil {
		f.last.Release()
		f.last = nil
	}
	if f.next >= f.NumRecords() {
		return nil, io.EOF
	}
	r, err := f.RecordBatchAt(f.next)
	if err != nil {
		return nil, err
	}
	f.next++
	f.last = r
	return r, nil
}

func (f *ipcFile) Release() {
	if f.last != nil {
		f.last.Release()
	}
	f.Close()
}

type parquetFile struct {
	pqarrow.RecordReader
	file *file.Reader
}

func openParquet(text []byte, batch int, mem memory.Allocator) (payloadReader, error) {
	f, err := file.NewParquetReader(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	r, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{BatchSize: int64(batch)}, mem)
	if err != nil {
		f.Close()
		return nil, err
	}
	records, err := r.GetRecordReader(context.Background(), nil, nil)
	if err != nil {
		f.Close()
		return nil, err
	}
	return &parquetFile{records, f}, nil
}

func (f *parquetFile) Release() {
	f.RecordReader.Release()
	f.file.Close()
}

// payload converts the records of an Arrow or Parquet message; row is the one
// refused, -1 if the message is wrong as a whole.
func (c *converter) payload(i int, text []byte) (row int, r *refusal) {
	defer func() {
		// The readers panic on some malformed payloads.
		if p := recover(); p != nil {
			row, r = -1, c.unreadable(fmt.Errorf("malformed: %v", p))
		}
	}()
	if len(text) == 0 {
		return -1, &refusal{expected: c.formatName(), got: "an empty payload", reason: ReasonEmpty}
	}
	c.closeRecord()
	reader, err := openPayload(text, c.plan.opts.Format, c.batch, boundMemory(c.mem, len(text)))
	if err != nil {
		return -1, c.unreadable(err)
	}
	defer reader.Release()
	fields := reader.Schema().Fields()
	s, r := c.observer.row(c.observer.arrow(fields))
	if r != nil {
		return -1, r
	}
	from, r := c.root.sources(fields)
	if r != nil {
		return -1, r
	}
	total := 0
	for {
		rec, err := reader.Read()
		if errors.Is(err, io.EOF) || err == nil && rec == nil {
			break
		}
		if err != nil {
			return -1, c.unreadable(err)
		}
		if at, r := c.adaptRecord(i, rec, from); r != nil {
			return total + at, r
		}
		total += int(rec.NumRows())
	}
	c.chunk.Rows += total
	if !s.deferred() && total > 0 {
		c.pending = newObservation()
		c.pending.add(s)
		c.reportRenames(s)
	} else if total > 0 && len(c.root.children) == 0 && (c.plan.settled || !c.plan.opts.Evolve) {
		return -1, noColumns()
	}
	return -1, nil
}

func (c *converter) formatName() string {
	if c.plan.opts.Format == Parquet {
		return "a Parquet file"
	}
	return "an Arrow IPC stream or file"
}

func (c *converter) unreadable(err error) *refusal {
	return &refusal{expected: c.formatName(), got: clip(err.Error()), reason: ReasonUnreadable}
}

// adaptRecord makes a record of the payload one of the plan's, cut at the batch
// size; at is the row refused.
func (c *converter) adaptRecord(i int, rec arrow.RecordBatch, from []int) (at int, r *refusal) {
	rows := int(rec.NumRows())
	columns := make([]arrow.Array, 0, len(from))
	defer func() {
		for _, a := range columns {
			a.Release()
		}
	}()
	for j, child := range c.root.children {
		var data arrow.ArrayData
		if from[j] < 0 {
			if child.required() && rows > 0 {
				return 0, (&refusal{expected: child.typeName() + ", required", got: "nothing", reason: ReasonNull}).field(child.Name)
			}
			data = nullData(child.Type, rows, c.mem)
		} else if data, at, r = c.adapt(rec.Column(from[j]), child.field, nil); r != nil {
			return at, r.field(child.Name)
		}
		columns = append(columns, array.MakeFromData(data))
		data.Release()
	}
	whole := array.NewRecordBatch(c.plan.schema, columns, int64(rows))
	defer whole.Release()
	for start := 0; start < rows; start += c.batch {
		end := min(start+c.batch, rows)
		origin := make([]int32, end-start)
		for k := range origin {
			origin[k] = int32(i)
		}
		c.chunk.Records = append(c.chunk.Records, whole.NewSlice(int64(start), int64(end)))
		c.chunk.Origin = append(c.chunk.Origin, origin)
	}
	return 0, nil
}

func nullData(t arrow.DataType, n int, mem memory.Allocator) arrow.ArrayData {
	a := array.MakeArrayOfNull(mem, t, n)
	defer a.Release()
	d := a.Data()
	d.Retain()
	return d
}

// sources gives for each field of a struct column the place it comes from, -1
// for none.
func (c *column) sources(fields []arrow.Field) ([]int, *refusal) { return sources(c.field, fields) }

func sources(f *field, fields []arrow.Field) ([]int, *refusal) {
	from := make([]int, len(f.children))
	for j := range from {
		from[j] = -1
	}
	for i, src := range fields {
		j, ok := f.find(src.Name)
		if !ok {
			continue
		}
		if from[j] >= 0 {
			return nil, collision(src.Name, f.children[j].Name)
		}
		from[j] = i
	}
	return from, nil
}
