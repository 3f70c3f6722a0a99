package arrowconv

import (
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

// Rename tells that the field From is stored as To.
type Rename struct{ From, To string }

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

// converter is the state of one Convert; plans pool them.
type converter struct {
	plan       *Plan
	root       *column
	scanner    scanner
	strict     strict
	structured structured
	observer   *observer

	src    Source
	mem    memory.Allocator
	batch  int // rows of a record
	open   bool
	weight int // bytes of payload in the open record
	origin []int32
	left   int // messages to come, about
	chunk  *Chunk
}

func newConverter(p *Plan) *converter {
	c := &converter{plan: p, root: newColumn(p.root)}
	c.observer = newObserver(p)
	return c
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

// message converts one message.
func (c *converter) message(i int) error {
	c.openRecord()
	c.left--
	var r *refusal
	var s *shape
	if text, ok := c.src.Bytes(i); ok {
		s, r = c.text(text)
	} else {
		v, err := c.src.Structured(i)
		if err != nil {
			return fmt.Errorf("reading message %d: %w", i, err)
		}
		s, r = c.value(v)
	}
	if r == nil && s == nil && len(c.root.children) == 0 && (c.plan.settled || !c.plan.opts.Evolve) {
		c.root.truncate(c.root.n - 1)
		r = &refusal{expected: "a value with a type", got: "nothing but null, {} or []", reason: ReasonNoColumns, hint: "the table has no column yet"}
	}
	switch {
	case r != nil:
		c.chunk.Errors = append(c.chunk.Errors, r.rowError(i, -1))
		return nil
	case s != nil:
		c.unknown(s)
	default:
		c.origin = append(c.origin, int32(i))
	}
	c.chunk.Rows++
	if c.root.n >= c.batch || c.weight >= maxRecordBytes {
		c.closeRecord()
	}
	return nil
}

// text converts a row of JSON: it is appended, or unknown (its shape), or
// refused.
func (c *converter) text(text []byte) (*shape, *refusal) {
	if len(text) > maxPayloadBytes {
		return nil, &refusal{expected: fmt.Sprintf("a payload of at most %d bytes", maxPayloadBytes), got: fmt.Sprintf("%d bytes", len(text)), reason: ReasonTooLarge}
	}
	c.weight += len(text)
	rows := c.root.n
	if c.scanner.row(c.root, text) {
		return nil, nil
	}
	c.root.truncate(rows)
	text, r := c.strict.row(c.root, text)
	if r != nil || !c.strict.unknown {
		return nil, r
	}
	s, r := c.observer.json(text)
	return c.settle(rows, s, r)
}

// value converts a row of Go values likewise.
func (c *converter) value(v any) (*shape, *refusal) {
	rows := c.root.n
	c.structured.weight = 0
	r := c.structured.row(c.root, v)
	c.weight += c.structured.weight
	if r != nil || !c.structured.unknown {
		return nil, r
	}
	s, r := c.observer.structured(v)
	return c.settle(rows, s, r)
}

// settle decides on a row with unknown fields, which lies appended without
// them: it stays if they hold nothing typed, and goes otherwise.
func (c *converter) settle(rows int, s *shape, r *refusal) (*shape, *refusal) {
	if r == nil && s.deferred() {
		return nil, nil
	}
	c.root.truncate(rows)
	if r != nil {
		return nil, r
	}
	return s, nil
}

func (c *converter) unknown(s *shape) {
	if c.chunk.Unknown == nil {
		c.chunk.Unknown = newObservation()
	}
	c.chunk.Unknown.add(s)
	c.reportRenames(s)
}

func (c *converter) reportRenames(s *shape) {
	if s.kind == shapeList && s.elem != nil {
		c.reportRenames(s.elem)
	}
	for _, f := range s.fields {
		if f.raw != f.name {
			rename := Rename{From: f.raw, To: f.name}
			if _, reported := c.plan.shared.renames.LoadOrStore(rename, struct{}{}); !reported {
				c.chunk.Renamed = append(c.chunk.Renamed, rename)
			}
		}
		c.reportRenames(f.shape)
	}
}

func (c *converter) openRecord() {
	if c.open {
		return
	}
	rows := min(c.batch, c.left)
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
	c.src, c.mem, c.chunk = nil, nil, nil
	return chunk
}
