package arrowconv

import (
	"bytes"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Source is the messages of one write. A message is bytes, or else a structured
// value; neither may change while Convert runs, nor is it kept afterwards.
type Source interface {
	Len() int
	// Bytes is the payload of message i, false if it has a structured value.
	Bytes(i int) ([]byte, bool)
	// Structured is the value of message i: a map[string]any for a row.
	Structured(i int) (any, error)
}

// Chunk is what the messages of one write became.
type Chunk struct {
	// Records hold the rows, in the order of the messages, each record at most
	// the batch size. The caller releases them (Release).
	Records []arrow.RecordBatch
	// Origin is the message of each row of each record.
	Origin [][]int32
	// Errors are the rows refused, by message.
	Errors []RowError
	// Unknown is what rows hold beyond the plan; nil if nothing.
	Unknown *Observation
	// Rows counts the rows that were not refused.
	Rows int
	// Renamed are the fields stored under another name than their own, each
	// reported once for a plan and its extensions.
	Renamed []Rename
}

// Release gives the records back.
func (c *Chunk) Release() {
	for _, r := range c.Records {
		r.Release()
	}
	c.Records, c.Origin = nil, nil
}

// Convert turns messages into records of the plan's schema. Messages that skip
// names are left out; skip may be nil.
//
// A row that cannot be converted is in Errors and in no record. If a row holds
// something that the plan lacks, the chunk has Unknown and no records: the
// caller keeps the messages and converts them again, under the plan extended by
// what all rows pending hold; Errors are then only the rows refused so far.
//
// An error of Convert itself means that the source failed; nothing is to be
// released then.
func (p *Plan) Convert(src Source, skip func(i int) bool, tuning ArrowTuning, mem memory.Allocator) (*Chunk, error) {
	if mem == nil {
		mem = memory.DefaultAllocator
	}
	c := p.pool.Get().(*converter)
	defer p.pool.Put(c)
	return c.convert(src, skip, tuning, mem)
}

// converter is the state of one Convert; plans pool them.
type converter struct {
	plan       *Plan
	root       *column
	scanner    scanner
	strict     strict
	structured structured
	observer   *observer
	strictOnly bool // leaves the scanner out, so that tests can compare

	src    Source
	mem    memory.Allocator
	batch  int // rows of a record
	open   bool
	weight int // bytes of payload in the open record, and of what lists multiplied
	cells  int // as in column
	origin []int32
	left   int // messages to come
	chunk  *Chunk
	// pending is what the rows of the message hold beyond the plan; it counts
	// once the message is through.
	pending *Observation
}

func newConverter(p *Plan) *converter {
	c := &converter{plan: p}
	c.root = newColumn(p.root, &c.cells)
	c.observer = newObserver(p)
	return c
}

func (c *converter) convert(src Source, skip func(i int) bool, tuning ArrowTuning, mem memory.Allocator) (*Chunk, error) {
	c.begin(src, tuning, mem)
	for i := range src.Len() {
		if skip != nil && skip(i) {
			continue
		}
		if err := c.message(i); err != nil {
			c.chunk.Release()
			c.root.drop()
			return nil, err
		}
	}
	return c.end(), nil
}

func (c *converter) begin(src Source, tuning ArrowTuning, mem memory.Allocator) {
	c.src, c.mem, c.chunk = src, mem, &Chunk{}
	c.batch = tuning.BatchSize
	if c.batch <= 0 {
		c.batch = DefaultBatchSize
	}
	c.left = src.Len()
	c.open = false
}

// message converts one message, all of its rows or none.
func (c *converter) message(i int) error {
	c.left--
	at := c.mark()
	var row int
	var r *refusal
	if text, ok := c.src.Bytes(i); !ok {
		v, err := c.src.Structured(i)
		if err != nil {
			return fmt.Errorf("reading message %d: %w", i, err)
		}
		row, r = c.structuredRows(i, v)
	} else if len(text) > maxPayloadBytes {
		row, r = -1, &refusal{expected: fmt.Sprintf("a payload of at most %d bytes", maxPayloadBytes), got: fmt.Sprintf("%d bytes", len(text)), reason: ReasonTooLarge}
	} else {
		switch c.plan.opts.Format {
		case NDJSON:
			row, r = c.lines(i, text)
		case ArrowIPC, Parquet:
			row, r = c.payload(i, text)
		default:
			row, r = -1, c.text(i, text)
		}
	}
	switch {
	case r != nil:
		c.rollback(at)
		c.chunk.Errors = append(c.chunk.Errors, r.rowError(i, row))
	case c.pending != nil && c.chunk.Unknown == nil:
		c.chunk.Unknown = c.pending
	case c.pending != nil:
		c.chunk.Unknown.Merge(c.pending)
	}
	c.pending = nil
	return nil
}

// lines converts the rows of an NDJSON payload; row is the one refused.
func (c *converter) lines(i int, text []byte) (row int, r *refusal) {
	for line := range bytes.Lines(text) {
		if len(bytes.Trim(line, " \t\r\n")) == 0 {
			continue
		}
		if r := c.text(i, line); r != nil {
			return row, r
		}
		row++
	}
	if row == 0 {
		return -1, &refusal{expected: "JSON objects, one a line", got: "an empty payload", reason: ReasonEmpty}
	}
	return row, nil
}

// structuredRows converts a structured message: a row, or in a format of many
// rows a list of them.
func (c *converter) structuredRows(i int, v any) (row int, r *refusal) {
	list, ok := v.([]any)
	if !ok || c.plan.opts.Format == JSON {
		return -1, c.value(i, v)
	}
	for row, v := range list {
		if r := c.value(i, v); r != nil {
			return row, r
		}
	}
	if len(list) == 0 {
		return -1, &refusal{expected: "a list of rows", got: "an empty one", reason: ReasonEmpty}
	}
	return -1, nil
}

// text converts a row of JSON for message i.
func (c *converter) text(i int, text []byte) *refusal {
	c.openRecord()
	c.weight += len(text)
	rows := c.root.n
	c.cells = 0
	if !c.strictOnly {
		if c.scanner.row(c.root, text) {
			return c.added(i)
		}
		c.root.truncate(rows)
		c.cells = 0
	}
	text, r := c.strict.row(c.root, text)
	if r != nil {
		return r
	}
	if c.strict.unknown {
		s, r := c.observer.row(c.observer.json(text))
		if r != nil || !s.deferred() {
			return c.unknown(rows, s, r)
		}
	}
	return c.added(i)
}

// value converts a row of Go values for message i.
func (c *converter) value(i int, v any) *refusal {
	c.openRecord()
	rows := c.root.n
	c.structured.weight, c.cells = 0, 0
	r := c.structured.row(c.root, v)
	c.weight += c.structured.weight
	if r != nil {
		return r
	}
	if c.structured.unknown {
		s, r := c.observer.row(c.observer.structured(v))
		if r != nil || !s.deferred() {
			return c.unknown(rows, s, r)
		}
	}
	return c.added(i)
}

// added counts a row that lies in the columns.
func (c *converter) added(i int) *refusal {
	if len(c.root.children) == 0 && (c.plan.settled || !c.plan.opts.Evolve) {
		c.root.truncate(c.root.n - 1)
		return noColumns()
	}
	c.origin = append(c.origin, int32(i))
	c.chunk.Rows++
	c.weight += 8 * c.cells
	if c.root.n >= c.batch || c.weight >= maxRecordBytes {
		c.closeRecord()
	}
	return nil
}

func noColumns() *refusal {
	return &refusal{expected: "a value with a type", got: "nothing but null, {} or []", reason: ReasonNoColumns, hint: "the table has no column yet"}
}

// unknown takes back a row that lies in the columns without its unknown fields,
// and notes its shape, or refuses it.
func (c *converter) unknown(rows int, s *shape, r *refusal) *refusal {
	c.root.truncate(rows)
	if r != nil {
		return r
	}
	o := &c.chunk.Unknown
	if c.plan.opts.Format != JSON {
		o = &c.pending
	}
	if *o == nil {
		*o = newObservation()
	}
	(*o).add(s)
	c.reportRenames(s)
	c.chunk.Rows++
	return nil
}

// mark is where a message begins.
type mark struct{ records, rows, total int }

func (c *converter) mark() mark {
	m := mark{records: len(c.chunk.Records), total: c.chunk.Rows}
	if c.open {
		m.rows = c.root.n
	}
	return m
}

// rollback takes back all rows since the mark, also those whose record was
// closed since.
func (c *converter) rollback(m mark) {
	c.chunk.Rows = m.total
	chunk := c.chunk
	if chunk.Unknown != nil {
		return // no records will be made
	}
	if len(chunk.Records) == m.records {
		if c.open {
			c.root.truncate(m.rows)
			c.origin = c.origin[:m.rows]
		}
		return
	}
	if c.open {
		c.root.drop()
		c.open = false
	}
	first := chunk.Records[m.records]
	if m.rows > 0 {
		chunk.Records[m.records] = first.NewSlice(0, int64(m.rows))
		chunk.Origin[m.records] = chunk.Origin[m.records][:m.rows]
		first.Release()
		m.records++
	}
	for _, r := range chunk.Records[m.records:] {
		r.Release()
	}
	chunk.Records, chunk.Origin = chunk.Records[:m.records], chunk.Origin[:m.records]
}

func (c *converter) reportRenames(s *shape) {
	if s.kind == shapeList && s.elem != nil {
		c.reportRenames(s.elem)
	}
	for _, f := range s.fields {
		if f.raw != f.name {
			c.plan.renames.note(Rename{From: f.raw, To: f.name})
		}
		c.reportRenames(f.shape)
	}
}

func (c *converter) openRecord() {
	if c.open {
		return
	}
	rows := min(c.batch, c.left+1)
	if c.plan.opts.Format != JSON {
		rows = min(c.batch, max(rows, int(c.plan.root.hint.entries.Load())))
	}
	c.root.reserve(rows, c.mem)
	c.origin = make([]int32, 0, rows)
	c.open, c.weight = true, 0
}

// closeRecord hands over the rows so far, or throws them away if they will be
// converted again.
func (c *converter) closeRecord() {
	if !c.open {
		return
	}
	c.open = false
	if c.chunk.Unknown != nil || c.root.n == 0 {
		c.root.drop()
		return
	}
	c.plan.root.hint.note(0, c.root.n)
	c.chunk.Records = append(c.chunk.Records, record(c.root, c.plan.schema))
	c.chunk.Origin = append(c.chunk.Origin, c.origin)
	c.origin = nil
}

func (c *converter) end() *Chunk {
	c.closeRecord()
	chunk := c.chunk
	if chunk.Unknown == nil && len(c.plan.root.children) == 0 && chunk.Rows > 0 {
		chunk.Unknown = newObservation() // the rows have no column yet: others may bring one
	}
	if chunk.Unknown != nil {
		chunk.Release()
	}
	chunk.Renamed = c.plan.renames.take()
	c.src, c.mem, c.chunk = nil, nil, nil
	return chunk
}
