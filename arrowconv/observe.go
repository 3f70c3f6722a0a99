package arrowconv

import (
	"bytes"
	"fmt"
)

// observer finds out what a row holds beyond the plan: its shape, or the reason
// why the row can never be stored. It looks only at what the plan lacks.
//
// Not safe for concurrent use; a shape is valid until the next.
type observer struct {
	plan    *Plan
	text    []byte
	scratch []byte
	names   map[string]*seenName
	arena   shapeArena
}

// seenName is what there is to know of a name in the data, found out once.
type seenName struct {
	name, stored, folded string
	problem              string // why it cannot be stored
}

func newObserver(p *Plan) *observer {
	return &observer{plan: p, names: map[string]*seenName{}}
}

func (o *observer) seen(name []byte) *seenName {
	if s, ok := o.names[string(name)]; ok {
		return s
	}
	if len(o.names) > 4096 { // hostile names must not pile up
		clear(o.names)
	}
	s := &seenName{name: string(name)}
	s.stored, s.problem = storedName(s.name, o.plan.opts.ColumnNames)
	s.folded = fold(s.stored)
	o.names[s.name] = s
	return s
}

// json gives the shape of a row that the strict decoder has accepted, so what
// follows reads text that is known to be JSON without repeated names.
func (o *observer) json(text []byte) (*shape, *refusal) {
	o.text = text
	o.arena.reset()
	s := o.arena.new()
	if _, r := o.value(s, o.plan.root, o.space(0), 0); r != nil {
		return nil, r
	}
	return s, o.checkColumns(s)
}

func (o *observer) space(i int) int {
	for i < len(o.text) && o.text[i] <= ' ' {
		i++
	}
	return i
}

// value reads one value at i into an empty shape and gives where it ends. f is
// the plan's field there, nil where it has none; a known scalar is passed over.
func (o *observer) value(s *shape, f *field, i, depth int) (int, *refusal) {
	first := o.text[i]
	if first == 'n' {
		return i + 4, nil
	}
	if f != nil && !observed(f, first) {
		return o.skip(i), nil
	}
	if depth > o.plan.opts.MaxDepth {
		return i, o.tooDeep()
	}
	switch first {
	case '{':
		return o.object(s, f, i, depth)
	case '[':
		return o.array(s, f, i, depth)
	case 't':
		s.kind = shapeBool
		return i + 4, nil
	case 'f':
		s.kind = shapeBool
		return i + 5, nil
	case '"':
		end := o.stringEnd(i)
		s.kind = shapeString
		if o.plan.opts.InferTimestamps {
			o.scratch = o.unquoted(o.scratch[:0], o.text[i:end])
			o.classifyText(s, o.scratch)
		}
		return end, nil
	}
	end := numberEnd(o.text, i)
	return end, o.number(s, o.text[i:end])
}

// observed tells whether a value may hold something new below a known field.
func observed(f *field, first byte) bool {
	return first == '{' && (f.kind == kindStruct || f.kind == kindMap) || first == '[' && f.kind == kindList
}

// skip passes over a value.
func (o *observer) skip(i int) int {
	depth := 0
	for {
		switch o.text[i] {
		case '"':
			i = o.stringEnd(i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case 't', 'n':
			i += 4
		case 'f':
			i += 5
		case ',', ':', ' ', '\n', '\r', '\t':
			i++
		default:
			i = numberEnd(o.text, i)
		}
		if depth == 0 {
			return i
		}
	}
}

// stringEnd gives the index past the closing quote of the string that opens at i.
func (o *observer) stringEnd(i int) int {
	for i++; ; {
		i = specialASCII(o.text, i)
		if o.text[i] == '"' {
			return i + 1
		}
		i += 2 // an escaped quote or backslash closes nothing
	}
}

// unquoted appends the text of a quoted string.
func (o *observer) unquoted(dst, quoted []byte) []byte {
	dst, _ = unquote(dst, quoted) // cannot fail: the text is checked
	return dst
}

// name reads the member name at i, and gives where its value begins.
func (o *observer) name(i int) (*seenName, int) {
	end := o.stringEnd(i)
	name := o.text[i+1 : end-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		o.scratch = o.unquoted(o.scratch[:0], o.text[i:end])
		name = o.scratch
	}
	return o.seen(name), o.space(o.space(end) + 1)
}

// more passes over the comma after a value, or tells that the end is reached.
func (o *observer) more(i int) (int, bool) {
	i = o.space(i)
	if o.text[i] == ',' {
		return o.space(i + 1), true
	}
	return i + 1, false
}

func (o *observer) object(s *shape, f *field, i, depth int) (int, *refusal) {
	s.kind = shapeStruct
	if i = o.space(i + 1); o.text[i] == '}' {
		return i + 1, nil
	}
	if f != nil && f.kind == kindMap {
		return o.entries(s, f, i, depth)
	}
	for more := true; more; i, more = o.more(i) {
		var name *seenName
		var r *refusal
		name, i = o.name(i)
		known := o.known(f, name)
		v := o.arena.new()
		if i, r = o.value(v, known, i, depth+1); r != nil {
			return i, r.field(name.name)
		}
		if r := o.add(s, f, known, name, v); r != nil {
			return i, r
		}
	}
	return i, nil
}

// entries reads a known map, whose values may hold new fields: its shape is
// that of a list of the values.
func (o *observer) entries(s *shape, f *field, i, depth int) (int, *refusal) {
	s.kind = shapeList
	for more := true; more; i, more = o.more(i) {
		var name *seenName
		var r *refusal
		name, i = o.name(i)
		v := o.arena.new()
		if i, r = o.value(v, f.children[1], i, depth+1); r != nil {
			return i, r.key(name.name)
		}
		if r := o.join(s, v); r != nil {
			return i, r.key(name.name)
		}
	}
	return i, nil
}

func (o *observer) array(s *shape, f *field, i, depth int) (int, *refusal) {
	s.kind = shapeList
	if i = o.space(i + 1); o.text[i] == ']' {
		return i + 1, nil
	}
	var known *field
	if f != nil {
		known = f.children[0]
	}
	n := 0
	for more := true; more; i, more = o.more(i) {
		v := o.arena.new()
		var r *refusal
		if i, r = o.value(v, known, i, depth+1); r != nil {
			return i, r.index(n)
		}
		if r := o.join(s, v); r != nil {
			return i, r.index(n)
		}
		n++
	}
	return i, nil
}

// known gives the plan's field for a name, nil if it has none.
func (o *observer) known(f *field, name *seenName) *field {
	if f == nil || len(f.children) == 0 {
		return nil
	}
	i, ok := f.names.exact[name.name]
	if !ok && name.problem == "" {
		i, ok = f.names.exact[name.stored]
	}
	if !ok {
		return nil
	}
	return f.children[i]
}

// add puts a field into a struct's shape under its stored name, unless nothing
// in it has a type; names that cannot be stored refuse the row.
func (o *observer) add(s *shape, f, known *field, name *seenName, v *shape) *refusal {
	if v.deferred() {
		return nil
	}
	stored, folded := name.stored, name.folded
	if known != nil {
		stored, folded = known.Name, fold(known.Name)
	} else {
		if name.problem != "" {
			return (&refusal{expected: "a name that both formats can hold", got: quote(name.name), reason: ReasonBadName, hint: name.problem}).field(name.name)
		}
		if by := reserved[folded]; by != "" && f == o.plan.root {
			return (&refusal{expected: "a name that is not reserved", got: quote(name.name), reason: ReasonReservedName, hint: by + " keeps this name for itself"}).field(name.name)
		}
		if f != nil {
			if i, ok := f.names.folded[folded]; ok {
				return clash(name.name, f.children[i].Name)
			}
		}
	}
	for i := range s.fields {
		if other := &s.fields[i]; other.folded == folded {
			if other.name == stored {
				return collision(name.name, stored)
			}
			return clash(name.name, other.name)
		}
	}
	if len(s.fields) > o.plan.opts.MaxColumns+o.plan.leaves {
		return o.tooWide(len(s.fields))
	}
	s.fields = append(s.fields, shapeField{name: stored, raw: name.name, folded: folded, shape: v})
	return nil
}

func clash(name, other string) *refusal {
	r := &refusal{expected: "names that differ in more than case", got: fmt.Sprintf("%q beside column %q", clip(name), clip(other)), reason: ReasonNameClash, hint: "most engines take them for one"}
	return r.field(name)
}

// join adds an element's shape to a list's.
func (o *observer) join(list, v *shape) *refusal {
	if v.deferred() {
		return nil
	}
	if list.elem == nil {
		list.elem = v
		return nil
	}
	before := *list.elem
	if !list.elem.join(v, o.plan.opts.OnTypeConflict == ConflictsAsText) {
		return &refusal{expected: before.String() + ", as the elements before", got: v.String(), reason: ReasonTypeMismatch, hint: "with on_type_conflict: string, both are stored as JSON text"}
	}
	return o.checkClash(list.elem)
}

// checkClash refuses a joined struct whose names differ only in case.
func (o *observer) checkClash(s *shape) *refusal {
	if s.kind != shapeStruct {
		return nil
	}
	for i, f := range s.fields {
		for _, g := range s.fields[:i] {
			if f.folded == g.folded {
				return clash(f.name, g.name)
			}
		}
	}
	return nil
}

// number classifies a number in JSON's grammar.
func (o *observer) number(s *shape, raw []byte) *refusal {
	s.kind = shapeNumber
	d := parseDecimal(raw)
	v, exact, ok := d.shifted(0)
	if d.fraction {
		s.traits = numberFraction
		if !exact || !ok {
			s.traits |= numberNotLong
		}
		if _, problem := parseDouble(raw, 64); problem != numberOK {
			return &refusal{expected: "double", got: clip(raw), reason: ReasonOutOfRange, hint: "declared decimal or string, the column may take it"}
		}
		return nil
	}
	if !ok {
		return &refusal{expected: "long", got: clip(raw), reason: ReasonOutOfRange, hint: "declared decimal(38,0), the column would take it"}
	}
	held := int64Exact(v, float64(v))
	if o.plan.opts.Numbers == DoubleNumbers {
		if !held {
			return &refusal{expected: "double", got: clip(raw), reason: ReasonInexact, hint: "double cannot hold this integer exactly; declared long, the column would take it"}
		}
		s.traits = numberFraction
		return nil
	}
	s.traits = numberWhole
	if !held {
		s.traits |= numberNotDouble
	}
	return nil
}

// classifyText classifies a string.
func (o *observer) classifyText(s *shape, v []byte) {
	s.kind = shapeString
	if o.plan.opts.InferTimestamps {
		if _, problem := parseTimestamp(v, true, o.plan.opts.TimestampPrecision == TruncateFiner); problem == timeOK {
			s.kind = shapeTime
		}
	}
}

// checkColumns refuses a row that alone would make the table too wide.
func (o *observer) checkColumns(s *shape) *refusal {
	if n := s.newLeaves(); o.plan.leaves+n > o.plan.opts.MaxColumns {
		r := o.tooWide(n)
		var widest shapeField
		most := 1
		for _, f := range s.fields {
			if n := f.shape.newLeaves(); n > most {
				widest, most = f, n
			}
		}
		if widest.shape != nil {
			r = r.field(widest.name)
		}
		return r
	}
	return nil
}

func (o *observer) tooWide(more int) *refusal {
	return &refusal{
		expected: fmt.Sprintf("at most %d leaf columns in the table", o.plan.opts.MaxColumns),
		got:      fmt.Sprintf("%d beside the %d it has", more, o.plan.leaves),
		reason:   ReasonTooManyColumns,
		hint:     "declare an object whose names are data as map, or as string with on_type_conflict: string, or raise max_columns",
	}
}

func (o *observer) tooDeep() *refusal {
	return &refusal{
		expected: fmt.Sprintf("at most %d levels of nesting", o.plan.opts.MaxDepth),
		got:      "more",
		reason:   ReasonTooDeep,
		hint:     "declare the column as map, or as string with on_type_conflict: string, or raise max_depth",
	}
}

// row is the last look at a row's shape as a whole.
func (o *observer) row(s *shape, r *refusal) (*shape, *refusal) {
	if r == nil {
		r = o.plan.checkDots(s)
	}
	return s, r
}
