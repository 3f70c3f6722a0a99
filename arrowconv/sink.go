package arrowconv

import (
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/go-json-experiment/json/jsontext"
)

// column collects the values of one field of the plan in the layout of its
// Arrow array. Every entry is appended; what was appended last can be cut off
// again, which is how a row that fails half-way leaves nothing behind.
//
// Buffers come from the caller's allocator and go into the record as they are.
// NULLs are kept as positions, so values cost nothing for them; the bitmap is
// made at the end.
type column struct {
	*field
	n     int // entries so far
	nulls []int32

	// Views of buf's memory, by kind; their length is the room there is.
	i64  []int64 // long, timestamps
	i32  []int32 // int, date
	f64  []float64
	f32  []float32
	dec  []decimal128.Num
	bits []byte // bool: a byte each, packed at the end; kept from record to record

	offsets []int32 // string, binary, list, map: entry i ends at offsets[i+1]
	data    []byte  // string, binary

	buf, offBuf *memory.Buffer
	children    []*column
	mem         memory.Allocator
	cells       *int // leaf values in the lists and maps of the row, all columns together

	// What the scanner expects: the column's own label in the text, and for a
	// struct the child that came after each child (0 stands for the beginning,
	// and for none; children count from 1).
	label   label
	follows []int
}

func newColumn(f *field, cells *int) *column {
	c := &column{field: f, cells: cells}
	if name, err := jsontext.AppendQuote(nil, f.Name); err == nil {
		c.label = newLabel(string(name) + ":")
	}
	for _, child := range f.children {
		c.children = append(c.children, newColumn(child, cells))
	}
	if f.kind == kindStruct {
		c.follows = make([]int, len(c.children)+1)
		for i := range c.children {
			c.follows[i] = i + 1
		}
	}
	return c
}

// reserve makes room for rows entries in fresh buffers.
func (c *column) reserve(rows int, mem memory.Allocator) {
	c.mem = mem
	c.n, c.nulls = 0, c.nulls[:0]
	switch c.kind {
	case kindBool:
		if len(c.bits) < rows {
			c.bits = make([]byte, rows)
		}
	case kindString, kindBinary, kindList, kindMap:
		c.offBuf = memory.NewResizableBuffer(mem)
		c.growOffsets(rows)
		c.offsets[0] = 0
		inner := c.hint.room(rows)
		if c.kind == kindList || c.kind == kindMap {
			for _, child := range c.children {
				child.reserve(inner, mem)
			}
			return
		}
		c.buf = memory.NewResizableBuffer(mem)
		c.growData(inner)
	case kindStruct:
		for _, child := range c.children {
			child.reserve(rows, mem)
		}
	case kindUnsupported:
	default:
		c.buf = memory.NewResizableBuffer(mem)
		c.growFixed(rows)
	}
}

// drop gives the buffers back.
func (c *column) drop() {
	if c.buf != nil {
		c.buf.Release()
	}
	if c.offBuf != nil {
		c.offBuf.Release()
	}
	c.forget()
	for _, child := range c.children {
		child.drop()
	}
}

// forget lets go of buffers whose ownership has passed on.
func (c *column) forget() {
	c.buf, c.offBuf, c.mem = nil, nil, nil
	c.i64, c.i32, c.f64, c.f32, c.dec, c.offsets, c.data = nil, nil, nil, nil, nil, nil, nil
	c.n, c.nulls = 0, c.nulls[:0]
}

// view is a buffer's memory as values.
func view[T any](b *memory.Buffer) []T {
	raw := b.Buf()
	if len(raw) == 0 {
		return nil
	}
	var t T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(raw))), len(raw)/int(unsafe.Sizeof(t)))
}

// growFixed makes room for n entries of a fixed width.
func (c *column) growFixed(n int) {
	switch c.kind {
	case kindLong, kindTimestamp, kindTimestampTZ:
		c.resize(c.buf, n*8)
		c.i64 = view[int64](c.buf)
	case kindDouble:
		c.resize(c.buf, n*8)
		c.f64 = view[float64](c.buf)
	case kindInt, kindDate:
		c.resize(c.buf, n*4)
		c.i32 = view[int32](c.buf)
	case kindFloat:
		c.resize(c.buf, n*4)
		c.f32 = view[float32](c.buf)
	case kindDecimal:
		c.resize(c.buf, n*16)
		c.dec = view[decimal128.Num](c.buf)
	case kindBool:
		c.bits = append(c.bits, make([]byte, n-len(c.bits))...)
	}
}

// resize makes a buffer's length its whole room, so that growing copies all.
func (c *column) resize(b *memory.Buffer, bytes int) {
	b.ResizeNoShrink(bytes)
	b.ResizeNoShrink(b.Cap())
}

func (c *column) growOffsets(n int) {
	c.resize(c.offBuf, (n+1)*4)
	c.offsets = view[int32](c.offBuf)
}

func (c *column) growData(n int) {
	c.resize(c.buf, n)
	c.data = c.buf.Buf()
}

// more makes room for at least one more entry.
func (c *column) more() { c.growFixed(max(16, 2*c.n)) }

func (c *column) putInt64(v int64) {
	if c.n >= len(c.i64) {
		c.more()
	}
	c.i64[c.n] = v
	c.n++
}

func (c *column) putInt32(v int32) {
	if c.n >= len(c.i32) {
		c.more()
	}
	c.i32[c.n] = v
	c.n++
}

func (c *column) putFloat64(v float64) {
	if c.n >= len(c.f64) {
		c.more()
	}
	c.f64[c.n] = v
	c.n++
}

func (c *column) putFloat32(v float32) {
	if c.n >= len(c.f32) {
		c.more()
	}
	c.f32[c.n] = v
	c.n++
}

func (c *column) putDecimal(v decimal128.Num) {
	if c.n >= len(c.dec) {
		c.more()
	}
	c.dec[c.n] = v
	c.n++
}

func (c *column) putBool(v bool) {
	if c.n >= len(c.bits) {
		c.more()
	}
	c.bits[c.n] = 0
	if v {
		c.bits[c.n] = 1
	}
	c.n++
}

// used is the length of the data, or of the child entries, so far.
func (c *column) used() int { return int(c.offsets[c.n]) }

// room returns the free data of a string or binary column, at least n bytes.
func (c *column) room(n int) []byte {
	at := c.used()
	if at+n > len(c.data) {
		c.growData(max(64, 2*len(c.data), at+n))
	}
	return c.data[at:]
}

// endEntry closes an entry of a variable width that ends at the given offset.
func (c *column) endEntry(end int) {
	if c.n+1 >= len(c.offsets) {
		c.growOffsets(2 * len(c.offsets))
	}
	c.n++
	c.offsets[c.n] = int32(end)
}

func (c *column) putBytes(s []byte) {
	copy(c.room(len(s)), s)
	c.endEntry(c.used() + len(s))
}

func (c *column) putText(s string) {
	copy(c.room(len(s)), s)
	c.endEntry(c.used() + len(s))
}

// putNull appends NULL, or a filler below a NULL where NULL is not allowed.
func (c *column) putNull() {
	if c.Nullable {
		c.nulls = append(c.nulls, int32(c.n))
	}
	c.putFiller()
}

func (c *column) putFiller() {
	switch c.kind {
	case kindBool:
		c.putBool(false)
	case kindInt, kindDate:
		c.putInt32(0)
	case kindLong, kindTimestamp, kindTimestampTZ:
		c.putInt64(0)
	case kindFloat:
		c.putFloat32(0)
	case kindDouble:
		c.putFloat64(0)
	case kindDecimal:
		c.putDecimal(decimal128.Num{})
	case kindString, kindBinary, kindList, kindMap:
		c.endEntry(c.used())
	case kindStruct:
		for _, child := range c.children {
			child.putNull()
		}
		c.n++
	default:
		c.n++
	}
}

// truncate cuts the column back to n entries, whatever state the last is in.
func (c *column) truncate(n int) {
	if c.n > n {
		c.n = n
	}
	for len(c.nulls) > 0 && int(c.nulls[len(c.nulls)-1]) >= c.n {
		c.nulls = c.nulls[:len(c.nulls)-1]
	}
	switch c.kind {
	case kindStruct:
		for _, child := range c.children {
			child.truncate(c.n)
		}
	case kindList, kindMap:
		for _, child := range c.children {
			child.truncate(c.used())
		}
	}
}

// finish hands the entries over as an Arrow array's data and leaves the column
// without buffers.
func (c *column) finish() arrow.ArrayData {
	if c.kind == kindUnsupported {
		a := array.MakeArrayOfNull(c.mem, c.Type, c.n)
		defer a.Release()
		d := a.Data()
		d.Retain()
		c.forget()
		return d
	}
	buffers := []*memory.Buffer{c.validity()}
	var children []arrow.ArrayData
	switch c.kind {
	case kindBool:
		b := memory.NewResizableBuffer(c.mem)
		b.Resize(int(bitutil.BytesForBits(int64(c.n))))
		packBits(b.Bytes(), c.bits[:c.n])
		buffers = append(buffers, b)
	case kindString, kindBinary:
		c.hint.note(c.used(), c.n)
		c.buf.ResizeNoShrink(c.used())
		c.offBuf.ResizeNoShrink((c.n + 1) * 4)
		buffers = append(buffers, c.offBuf, c.buf)
	case kindList:
		c.hint.note(c.used(), c.n)
		c.offBuf.ResizeNoShrink((c.n + 1) * 4)
		buffers = append(buffers, c.offBuf)
		children = append(children, c.children[0].finish())
	case kindMap:
		c.hint.note(c.used(), c.n)
		entries := c.used()
		c.offBuf.ResizeNoShrink((c.n + 1) * 4)
		buffers = append(buffers, c.offBuf)
		key, value := c.children[0].finish(), c.children[1].finish()
		children = append(children, array.NewData(c.Type.(*arrow.MapType).Elem(), entries, []*memory.Buffer{nil}, []arrow.ArrayData{key, value}, 0, 0))
		key.Release()
		value.Release()
	case kindStruct:
		for _, child := range c.children {
			children = append(children, child.finish())
		}
	case kindDecimal:
		c.buf.ResizeNoShrink(c.n * 16)
		buffers = append(buffers, c.buf)
	case kindInt, kindFloat, kindDate:
		c.buf.ResizeNoShrink(c.n * 4)
		buffers = append(buffers, c.buf)
	default:
		c.buf.ResizeNoShrink(c.n * 8)
		buffers = append(buffers, c.buf)
	}
	data := array.NewData(c.Type, c.n, buffers, children, len(c.nulls), 0)
	for _, b := range buffers {
		if b != nil {
			b.Release()
		}
	}
	for _, child := range children {
		child.Release()
	}
	c.forget()
	return data
}

// validity is the bitmap, nil where nothing is NULL.
func (c *column) validity() *memory.Buffer {
	if len(c.nulls) == 0 {
		return nil
	}
	b := memory.NewResizableBuffer(c.mem)
	b.Resize(int(bitutil.BytesForBits(int64(c.n))))
	bm := b.Bytes()
	for i := range bm {
		bm[i] = 0xff
	}
	for _, at := range c.nulls {
		bm[at>>3] &^= 1 << (at & 7)
	}
	if tail := c.n & 7; tail != 0 {
		bm[len(bm)-1] &= 1<<tail - 1
	}
	return b
}

func packBits(dst, src []byte) {
	for i := range dst {
		var b byte
		for j, v := range src[i*8 : min(len(src), i*8+8)] {
			b |= v << j
		}
		dst[i] = b
	}
}

// maxRecordBytes is where a record is closed before its batch size, far enough
// below the 2 GiB that 32-bit offsets reach for one more row of the largest
// payload taken.
const (
	maxRecordBytes  = 64 << 20
	maxPayloadBytes = 512 << 20
)

// record hands over the rows of a root column as a record of the schema.
func record(root *column, schema *arrow.Schema) arrow.RecordBatch {
	rows := root.n
	columns := make([]arrow.Array, len(root.children))
	for i, c := range root.children {
		d := c.finish()
		columns[i] = array.MakeFromData(d)
		d.Release()
	}
	root.forget()
	r := array.NewRecordBatch(schema, columns, int64(rows))
	for _, c := range columns {
		c.Release()
	}
	return r
}
