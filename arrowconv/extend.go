package arrowconv

import (
	"fmt"
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
)

// Extend is the plan with the columns that the observed rows bring, each with
// the type that fits all of them. Rows are taken in the order of their arrival:
// one whose values fit no common type with those before it brings nothing, and
// Convert will refuse it. The receiver stays as it is and may be a later plan
// than the one that observed.
//
// Convert under the new plan finds nothing unknown in the rows observed.
func (p *Plan) Extend(o *Observation) (*Plan, error) {
	root := &growth{plan: p.root}
	leaves := p.leaves
	text := p.opts.OnTypeConflict == ConflictsAsText
	var shapes []*shape
	if o != nil {
		for _, key := range o.shapes {
			shapes = append(shapes, o.decode(key))
		}
	}
	dotted := p.dotted
	for _, s := range shapes {
		dotted = dotted || s.dotted()
	}
	taken := paths{}
	root.places(taken, steps{})
	// A struct that becomes text makes room for others, so rows that did not
	// fit are asked again until nothing changes.
	for grown := true; grown; {
		grown = false
		var refused []*shape
		for _, s := range shapes {
			more, ok := root.check(s, text)
			if !ok || leaves+more > p.opts.MaxColumns && more > 0 {
				refused = append(refused, s)
				continue
			}
			if dotted {
				joined := maps.Clone(taken)
				if root.claim(joined, s, steps{}) != "" {
					refused = append(refused, s)
					continue
				}
				taken = joined
			}
			root.grow(s, text)
			leaves += more
			grown = true
			if dotted && text { // what became text gives its paths back
				taken = paths{}
				root.places(taken, steps{})
			}
		}
		shapes = refused
	}
	fields, err := root.fields()
	if err != nil {
		return nil, err
	}
	next := &Plan{opts: p.opts, renames: p.renames, settled: true}
	next.build(fields, p.schema.Metadata())
	next.applyDeclared()
	next.inheritHints(p)
	return next, nil
}

// growth is one place of the table that grows: a field of the plan with what is
// new below it, or a new field.
type growth struct {
	plan  *field // nil for a new field
	shape shape  // of a new scalar field: kind and traits
	names []string
	below map[string]*growth // a struct's fields by stored name, those of the plan only if touched
	elem  *growth            // of a list, of a map's values
	folds map[string]string  // names of a new struct, or new in a known one, by fold
}

// child finds or describes a field below a struct.
func (g *growth) child(name string) *growth {
	if c := g.below[name]; c != nil {
		return c
	}
	if g.plan != nil {
		if i := g.plan.child(name); i >= 0 {
			return &growth{plan: g.plan.children[i]}
		}
	}
	return nil
}

// check tells whether a row's shape can be joined and how many leaves it adds.
func (g *growth) check(s *shape, text bool) (leaves int, ok bool) {
	if g.plan != nil {
		return g.checkKnown(s, text)
	}
	switch {
	case s.kind == shapeNone || g.shape.kind == shapeText:
		return 0, true
	case g.shape.kind == shapeNone:
		return s.newLeaves(), true
	case g.shape.kind == shapeStruct && s.kind == shapeStruct:
		return g.checkFields(s, text)
	case g.shape.kind == shapeList && s.kind == shapeList:
		if s.elem == nil {
			return 0, true
		}
		if g.elem == nil {
			return s.elem.newLeaves(), true
		}
		return g.elem.check(s.elem, text)
	case g.shape.kind == shapeMap && s.kind == shapeMap && g.shape.typ == s.typ:
		return g.elem.check(s.elem, text)
	case g.shape.kind >= shapeStruct || s.kind >= shapeStruct:
		return 1 - g.leaves(), text // all of it becomes one column of text
	}
	joined := g.shape
	return 0, joined.join(s, text)
}

func (g *growth) checkKnown(s *shape, text bool) (leaves int, ok bool) {
	switch {
	case g.plan.kind == kindStruct && s.kind == shapeStruct:
		return g.checkFields(s, text)
	case (g.plan.kind == kindList || g.plan.kind == kindMap) && s.kind == shapeList:
		if s.elem == nil {
			return 0, true
		}
		return g.element().check(s.elem, text)
	}
	return 0, true // Convert knows whether the value fits
}

func (g *growth) checkFields(s *shape, text bool) (leaves int, ok bool) {
	for _, f := range s.fields {
		c := g.child(f.name)
		if c == nil {
			if g.clashes(f.name) {
				return 0, false
			}
			leaves += f.shape.newLeaves()
			continue
		}
		n, ok := c.check(f.shape, text)
		if !ok {
			return 0, false
		}
		leaves += n
	}
	return leaves, true
}

// leaves counts the scalar columns of a new field.
func (g *growth) leaves() int {
	switch g.shape.kind {
	case shapeStruct:
		n := 0
		for _, c := range g.below {
			n += c.leaves()
		}
		return n
	case shapeList:
		return g.elem.leaves()
	case shapeMap:
		return 1 + g.elem.leaves()
	}
	return 1
}

// clashes tells whether a name that is new differs only in case from another.
func (g *growth) clashes(name string) bool {
	if _, ok := g.folds[fold(name)]; ok {
		return true
	}
	if g.plan == nil {
		return false
	}
	_, ok := g.plan.names.folded[fold(name)]
	return ok
}

// element is the growth of a known list's elements or a known map's values.
func (g *growth) element() *growth {
	if g.elem != nil {
		return g.elem
	}
	return &growth{plan: g.plan.children[len(g.plan.children)-1]}
}

// grow joins a shape that check has passed.
func (g *growth) grow(s *shape, text bool) {
	if g.plan != nil {
		switch {
		case g.plan.kind == kindStruct && s.kind == shapeStruct:
			g.growFields(s, text)
		case (g.plan.kind == kindList || g.plan.kind == kindMap) && s.kind == shapeList && s.elem != nil:
			g.elem = g.element()
			g.elem.grow(s.elem, text)
		}
		return
	}
	switch {
	case s.kind == shapeNone || g.shape.kind == shapeText:
	case g.shape.kind == shapeNone && s.kind == shapeStruct, g.shape.kind == shapeStruct && s.kind == shapeStruct:
		g.shape.kind = shapeStruct
		g.growFields(s, text)
	case g.shape.kind == shapeNone && s.kind == shapeList, g.shape.kind == shapeList && s.kind == shapeList:
		g.shape.kind = shapeList
		if s.elem != nil {
			if g.elem == nil {
				g.elem = &growth{}
			}
			g.elem.grow(s.elem, text)
		}
	case s.kind == shapeMap && (g.shape.kind == shapeNone || g.shape.kind == shapeMap && g.shape.typ == s.typ):
		if g.elem == nil {
			g.shape.kind, g.shape.typ, g.elem = shapeMap, s.typ, &growth{}
		}
		g.elem.grow(s.elem, text)
	case g.shape.kind >= shapeStruct || s.kind >= shapeStruct:
		*g = growth{shape: shape{kind: shapeText}}
	default:
		g.shape.join(s, text)
	}
}

func (g *growth) growFields(s *shape, text bool) {
	for _, f := range s.fields {
		if f.shape.deferred() {
			continue
		}
		c := g.child(f.name)
		if c == nil {
			c = &growth{}
			if g.folds == nil {
				g.folds = map[string]string{}
			}
			g.folds[fold(f.name)] = f.name
			g.names = append(g.names, f.name)
		}
		if g.below == nil {
			g.below = map[string]*growth{}
		}
		g.below[f.name] = c
		c.grow(f.shape, text)
	}
}

// fields is the struct's fields with what was added, the plan's first.
func (g *growth) fields() ([]arrow.Field, error) {
	var fields []arrow.Field
	if g.plan != nil {
		fields = slices.Clone(g.plan.Type.(*arrow.StructType).Fields())
		for i, f := range g.plan.children {
			if c := g.below[f.Name]; c != nil && c.plan == f {
				t, err := c.dataType()
				if err != nil {
					return nil, err
				}
				fields[i].Type = t
			}
		}
	}
	for _, name := range g.names {
		t, err := g.below[name].dataType()
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", name, err)
		}
		fields = append(fields, arrow.Field{Name: name, Type: t, Nullable: true})
	}
	return fields, nil
}

// dataType is the Arrow type of the place, grown.
func (g *growth) dataType() (arrow.DataType, error) {
	if g.plan != nil {
		return g.knownType()
	}
	switch g.shape.kind {
	case shapeBool:
		return arrow.FixedWidthTypes.Boolean, nil
	case shapeNumber:
		if g.shape.traits.double() {
			return arrow.PrimitiveTypes.Float64, nil
		}
		return arrow.PrimitiveTypes.Int64, nil
	case shapeString, shapeText:
		return arrow.BinaryTypes.String, nil
	case shapeTime:
		return typeTimestampTZ, nil
	case shapeExact:
		return ParseType(g.shape.typ)
	case shapeStruct:
		fields, err := g.fields()
		if err != nil {
			return nil, err
		}
		return arrow.StructOf(fields...), nil
	case shapeList:
		t, err := g.elem.dataType()
		if err != nil {
			return nil, err
		}
		return listOf(t), nil
	case shapeMap:
		key, err := ParseType(g.shape.typ)
		if err != nil {
			return nil, err
		}
		value, err := g.elem.dataType()
		if err != nil {
			return nil, err
		}
		return mapOf(key, value), nil
	}
	return nil, fmt.Errorf("no type observed")
}

func (g *growth) knownType() (arrow.DataType, error) {
	switch t := g.plan.Type.(type) {
	case *arrow.StructType:
		fields, err := g.fields()
		if err != nil {
			return nil, err
		}
		return arrow.StructOf(fields...), nil
	case *arrow.ListType:
		if g.elem == nil {
			return t, nil
		}
		e := t.ElemField()
		inner, err := g.elem.dataType()
		if err != nil {
			return nil, err
		}
		e.Type = inner
		return arrow.ListOfField(e), nil
	case *arrow.MapType:
		if g.elem == nil {
			return t, nil
		}
		v := t.ItemField()
		inner, err := g.elem.dataType()
		if err != nil {
			return nil, err
		}
		v.Type = inner
		return arrow.MapOfFields(t.KeyField(), v), nil
	}
	return g.plan.Type, nil
}

// inheritHints carries the buffer sizes over to the fields that both have.
func (p *Plan) inheritHints(from *Plan) { inheritHints(p.root, from.root) }

func inheritHints(to, from *field) {
	to.hint.note(int(from.hint.used.Load()), int(from.hint.entries.Load()))
	if to.kind != from.kind {
		return
	}
	for i, f := range from.children {
		if i < len(to.children) {
			inheritHints(to.children[i], f)
		}
	}
}
