package output

import (
	"encoding/json"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/managed-lakehouse/managed-lakehouse/arrowconv"
)

// messages are what one write brings for one table, as it came. They stay held
// until their epoch resolves, so that any of them can be converted again. Payloads
// are captured once and never changed: a commit may read them after the write
// that brought them has been cancelled and its batch belongs to others again.
//
// messages implements arrowconv.Source.
type messages struct {
	format     arrowconv.MessageFormat
	index      []int    // position in the write's batch
	raw        [][]byte // payload, or nil where the message is structured
	structured []any    // nil where no message is structured
}

func (m *messages) Len() int { return len(m.index) }

func (m *messages) Bytes(i int) ([]byte, bool) {
	if m.structured != nil && m.structured[i] != nil {
		return nil, false
	}
	return m.raw[i], true
}

func (m *messages) Structured(i int) (any, error) { return m.structured[i], nil }

// add captures message i of a batch. A message that has both forms is taken as
// bytes: they are the cheaper way into columns. A structured value is taken as it
// is, never serialised. It returns an estimate of the bytes that the message and
// its columns hold until it is committed.
func (m *messages) add(i int, msg *service.Message) (int64, error) {
	if msg.HasStructured() && !msg.HasBytes() {
		v, err := msg.AsStructured()
		if err != nil {
			return 0, err
		}
		if v != nil {
			m.pad()
			m.index, m.raw, m.structured = append(m.index, i), append(m.raw, nil), append(m.structured, v)
			// Its columns take about as much as its text would, a quarter of it.
			size := sizeOf(v)
			return size + size/4 + messageOverhead, nil
		}
		m.put(i, []byte("null"))
		return heldBytes(4), nil
	}
	b, err := msg.AsBytes()
	if err != nil {
		return 0, err
	}
	m.put(i, b)
	return heldPayload(b, m.format), nil
}

func (m *messages) put(i int, b []byte) {
	m.index, m.raw = append(m.index, i), append(m.raw, b)
	if m.structured != nil {
		m.structured = append(m.structured, nil)
	}
}

// pad makes room for structured values beside the payloads captured so far.
func (m *messages) pad() {
	if m.structured == nil {
		m.structured = make([]any, len(m.raw), cap(m.raw))
	}
}

// messageOverhead is what Benthos holds for a message beside its payload until it is
// acknowledged: the part, its contexts and spans, and the tracking of the batches
// it went through. Measured on messages of batches of a thousand; messages that come
// one by one cost about three times as much, which cannot be seen from here.
const messageOverhead = 900

// heldBytes is what a payload of that size costs until it is committed: itself,
// about as much again in columns, and the overhead of its message.
func heldBytes(payload int64) int64 { return 2*payload + messageOverhead }

// sizeOf estimates the memory of a structured value. A Go map of up to eight entries
// is a header and one group of slots.
func sizeOf(v any) int64 {
	const word, header, group, entry = 16, 48, 272, 40
	switch x := v.(type) {
	case string:
		return word + int64(len(x))
	case []byte:
		return word + int64(len(x))
	case json.Number:
		return word + int64(len(x))
	case time.Time:
		return 2 * word
	case map[string]any:
		n := int64(header + max(group, entry*len(x)))
		for _, e := range x {
			n += sizeOf(e)
		}
		return n
	case []any:
		n := int64(2 * word)
		for _, e := range x {
			n += word + sizeOf(e)
		}
		return n
	default:
		return word
	}
}

func newMessages(n int, format arrowconv.MessageFormat) *messages {
	return &messages{format: format, index: make([]int, 0, n), raw: make([][]byte, 0, n)}
}
