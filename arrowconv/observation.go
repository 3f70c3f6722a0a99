package arrowconv

import (
	"encoding/binary"
)

// Observation is what rows hold beyond a plan: the distinct shapes of those
// rows, in the order of their first arrival. A shape is kept whole, so that a
// row that is refused in the end brings no column, and kept small, as bytes over
// a table of names.
//
// Not safe for concurrent use.
type Observation struct {
	names  []string
	ids    map[string]uint64
	shapes []string // encoded
	seen   map[string]struct{}
	buf    []byte
}

func newObservation() *Observation {
	return &Observation{ids: map[string]uint64{}, seen: map[string]struct{}{}}
}

// Merge appends what the other observed after this one. It is associative; the
// other stays as it is.
func (o *Observation) Merge(other *Observation) {
	if other == nil {
		return
	}
	if o.ids == nil { // the zero value is an empty observation
		o.ids, o.seen = map[string]uint64{}, map[string]struct{}{}
	}
	for _, s := range other.shapes {
		o.add(other.decode(s))
	}
}

// Shapes is the number of distinct row shapes, a measure of its size.
func (o *Observation) Shapes() int { return len(o.shapes) }

// add notes one row's shape.
func (o *Observation) add(s *shape) {
	o.buf = o.encode(o.buf[:0], s)
	if _, ok := o.seen[string(o.buf)]; ok {
		return
	}
	key := string(o.buf)
	o.seen[key] = struct{}{}
	o.shapes = append(o.shapes, key)
}

func (o *Observation) id(name string) uint64 {
	id, ok := o.ids[name]
	if !ok {
		id = uint64(len(o.names))
		o.names = append(o.names, name)
		o.ids[name] = id
	}
	return id
}

// encode appends a shape: its kind, then by kind the traits, the type's id, the
// fields (id+1 and shape each, closed by 0), the element, or a map's key type and
// value.
func (o *Observation) encode(dst []byte, s *shape) []byte {
	dst = append(dst, byte(s.kind))
	switch s.kind {
	case shapeNumber:
		dst = append(dst, byte(s.traits))
	case shapeExact:
		dst = binary.AppendUvarint(dst, o.id(s.typ))
	case shapeStruct:
		for _, f := range s.fields {
			if f.shape.deferred() {
				continue
			}
			dst = binary.AppendUvarint(dst, o.id(f.name)+1)
			dst = o.encode(dst, f.shape)
		}
		dst = append(dst, 0)
	case shapeMap:
		dst = binary.AppendUvarint(dst, o.id(s.typ))
		dst = o.encode(dst, s.elem)
	case shapeList:
		if s.elem == nil || s.elem.deferred() {
			return append(dst, byte(shapeNone))
		}
		dst = o.encode(dst, s.elem)
	}
	return dst
}

func (o *Observation) decode(key string) *shape {
	s, _ := o.decodeShape(key)
	return s
}

func (o *Observation) decodeShape(b string) (*shape, string) {
	s := &shape{kind: shapeKind(b[0])}
	b = b[1:]
	switch s.kind {
	case shapeNumber:
		s.traits = numberTraits(b[0])
		b = b[1:]
	case shapeExact:
		var id uint64
		id, b = uvarint(b)
		s.typ = o.names[id]
	case shapeStruct:
		for {
			var id uint64
			if id, b = uvarint(b); id == 0 {
				break
			}
			var v *shape
			v, b = o.decodeShape(b)
			s.fields = append(s.fields, shapeField{name: o.names[id-1], shape: v})
		}
	case shapeMap:
		var id uint64
		id, b = uvarint(b)
		s.typ = o.names[id]
		s.elem, b = o.decodeShape(b)
	case shapeList:
		s.elem, b = o.decodeShape(b)
		if s.elem.kind == shapeNone {
			s.elem = nil
		}
	}
	return s, b
}

func uvarint(b string) (uint64, string) {
	var v uint64
	for i := 0; ; i++ {
		v |= uint64(b[i]&0x7f) << (7 * i)
		if b[i] < 0x80 {
			return v, b[i+1:]
		}
	}
}
