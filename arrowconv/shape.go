package arrowconv

// shapeKind is what the values of a field look like, before a type is chosen.
type shapeKind uint8

const (
	shapeNone   shapeKind = iota // null, {}, [], or nests of them: the column is deferred
	shapeBool                    // true or false
	shapeNumber                  // its numberTraits say more
	shapeString
	shapeTime  // a string that is an RFC 3339 date-time, if timestamps are inferred
	shapeExact // a typed value: its Arrow type, by name
	shapeText  // values of several types, kept as JSON text
	shapeStruct
	shapeList
	shapeMap // only of typed payloads: JSON has objects
)

// numberTraits is what is known of all numbers seen in one place.
type numberTraits uint8

const (
	numberWhole     numberTraits = 1 << iota // some were written as integers
	numberFraction                           // some with fraction or exponent
	numberNotLong                            // some do not fit a long
	numberNotDouble                          // some integers do not fit a double
)

// fits tells whether one type takes all of them.
func (t numberTraits) fits() bool { return t&numberNotLong == 0 || t&numberNotDouble == 0 }

// double tells whether that type is double and not long.
func (t numberTraits) double() bool {
	return t&numberNotDouble == 0 && t&(numberFraction|numberNotLong) != 0
}

// shape is what one row holds in one place.
type shape struct {
	kind   shapeKind
	traits numberTraits
	typ    string       // of shapeExact; of a shapeMap's keys
	fields []shapeField // of shapeStruct, in the order of the row
	elem   *shape       // of shapeList, nil if no element has a type; of a shapeMap's values
}

type shapeField struct {
	name   string // as stored
	folded string // fold(name)
	raw    string // as it came
	shape  *shape
}

// deferred tells whether nothing in it has a type.
func (s *shape) deferred() bool {
	switch s.kind {
	case shapeNone:
		return true
	case shapeStruct:
		for _, f := range s.fields {
			if !f.shape.deferred() {
				return false
			}
		}
		return true
	case shapeList:
		return s.elem == nil || s.elem.deferred()
	}
	return false
}

// join widens s to what both hold; under text, places where no type fits become
// text, otherwise the join fails and s is of no further use.
func (s *shape) join(o *shape, text bool) bool {
	switch {
	case o.kind == shapeNone || s.kind == shapeText:
		return true
	case s.kind == shapeNone:
		s.become(o)
		return true
	case s.kind == o.kind:
		switch s.kind {
		case shapeNumber:
			if t := s.traits | o.traits; t.fits() {
				s.traits = t
				return true
			}
		case shapeExact:
			if t, ok := widest(s.typ, o.typ); ok {
				s.typ = t
				return true
			}
		case shapeStruct:
			return s.joinFields(o, text)
		case shapeMap:
			if s.typ == o.typ {
				return s.elem.join(o.elem, text)
			}
		case shapeList:
			if s.elem == nil {
				s.elem = o.elem
				return true
			}
			return o.elem == nil || s.elem.join(o.elem, text)
		default:
			return true
		}
	case s.kind == shapeString && o.kind == shapeTime:
		return true
	case s.kind == shapeTime && o.kind == shapeString:
		s.kind = shapeString
		return true
	case s.deferred():
		s.become(o)
		return true
	case o.deferred():
		return true
	}
	if text {
		s.kind, s.fields, s.elem = shapeText, s.fields[:0], nil
	}
	return text
}

// widest gives the type that takes the values of both, as column types widen.
func widest(a, b string) (string, bool) {
	if a == b {
		return a, true
	}
	ta, err := ParseType(a)
	if err != nil {
		return "", false
	}
	tb, err := ParseType(b)
	if err != nil {
		return "", false
	}
	switch {
	case wider(ta, tb):
		return b, true
	case wider(tb, ta):
		return a, true
	}
	return "", false
}

// become copies o, whose list of fields stays its own.
func (s *shape) become(o *shape) {
	fields := append(s.fields[:0], o.fields...)
	*s = *o
	s.fields = fields
}

func (s *shape) joinFields(o *shape, text bool) bool {
next:
	for _, of := range o.fields {
		for i := range s.fields {
			if s.fields[i].name == of.name {
				if !s.fields[i].shape.join(of.shape, text) {
					return false
				}
				continue next
			}
		}
		s.fields = append(s.fields, of)
	}
	return true
}

// newLeaves counts the scalar columns that a pruned shape would add: every
// scalar in it is new.
func (s *shape) newLeaves() int {
	switch s.kind {
	case shapeNone:
		return 0
	case shapeStruct:
		n := 0
		for _, f := range s.fields {
			n += f.shape.newLeaves()
		}
		return n
	case shapeMap:
		return 1 + s.elem.newLeaves()
	case shapeList:
		if s.elem == nil {
			return 0
		}
		return s.elem.newLeaves()
	}
	return 1
}

// String is the type that the shape infers to, for errors.
func (s *shape) String() string {
	switch s.kind {
	case shapeBool:
		return "boolean"
	case shapeNumber:
		if s.traits.double() {
			return "double"
		}
		return "long"
	case shapeString, shapeText:
		return "string"
	case shapeTime:
		return "timestamptz"
	case shapeExact:
		return s.typ
	case shapeStruct:
		return "an object"
	case shapeList:
		return "an array"
	case shapeMap:
		return "a map"
	}
	return "null"
}

// shapeArena hands out shapes for one row and takes them back at once.
type shapeArena struct {
	chunks [][]shape
	used   int
}

const arenaChunk = 256

func (a *shapeArena) reset() { a.used = 0 }

// new is an empty shape.
func (a *shapeArena) new() *shape {
	chunk := a.used / arenaChunk
	if chunk == len(a.chunks) {
		a.chunks = append(a.chunks, make([]shape, arenaChunk))
	}
	s := &a.chunks[chunk][a.used%arenaChunk]
	*s = shape{fields: s.fields[:0]}
	a.used++
	return s
}
