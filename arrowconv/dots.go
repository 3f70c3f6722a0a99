package arrowconv

import (
	"fmt"
	"strings"
)

// Iceberg names a nested field by its path with dots (order.items.element.price),
// so a field whose own name holds a dot can share a path with another field. Such
// a table could not be made: the row that would bring the second field is refused.

// paths maps each dotted path to the place that it names: its steps, kept apart.
type paths map[string]string

const stepEnd = "\x00"

// note adds a place; it tells whether the path is free or names that place already.
func (p paths) note(path, place string) bool {
	if other, ok := p[path]; ok && other != place {
		return false
	}
	p[path] = place
	return true
}

// steps are what one field is called below another: in the path, in the place.
type steps struct{ path, place string }

func (s steps) to(name string) steps {
	return steps{s.path + name + ".", s.place + name + stepEnd}
}

func (p paths) at(s steps) bool { return p.note(s.path, s.place) }

// places adds all that lies below g.
func (g *growth) places(p paths, at steps) {
	below := func(name string, c *growth) {
		p.at(at.to(name))
		c.places(p, at.to(name))
	}
	if g.plan != nil {
		for i, f := range g.plan.children {
			switch {
			case g.plan.kind == kindStruct:
				below(f.Name, g.child(f.Name))
			case i == len(g.plan.children)-1:
				below(f.Name, g.element())
			default:
				p.at(at.to(f.Name)) // a map's key
			}
		}
	}
	for _, name := range g.names {
		below(name, g.below[name])
	}
	if g.plan == nil && g.elem != nil {
		if g.shape.kind == shapeMap {
			p.at(at.to(keyName))
			below(valueName, g.elem)
		} else {
			below(elementName, g.elem)
		}
	}
}

// claim adds the places that a row's shape would bring below g, where the two are
// of one kind (elsewhere it brings none). It returns the first path that names two
// fields, or "".
func (g *growth) claim(p paths, s *shape, at steps) (clash string) {
	one := func(name string, c *growth, s *shape) string {
		to := at.to(name)
		if !p.at(to) {
			return strings.TrimSuffix(to.path, ".")
		}
		if c == nil {
			c = &growth{}
		}
		return c.claim(p, s, to)
	}
	fresh := g.plan == nil && g.shape.kind == shapeNone
	known := func(k kind) bool { return g.plan != nil && g.plan.kind == k }
	grown := func(k shapeKind) bool { return g.plan == nil && g.shape.kind == k }
	switch {
	case s.kind == shapeStruct && (fresh || known(kindStruct) || grown(shapeStruct)):
		for _, f := range s.fields {
			if clash := one(f.name, g.child(f.name), f.shape); clash != "" {
				return clash
			}
		}
	case s.elem == nil:
	case s.kind == shapeList && known(kindList):
		return one(g.plan.children[0].Name, g.element(), s.elem)
	case s.kind == shapeList && known(kindMap): // a known map's shape is that of its values
		return one(g.plan.children[1].Name, g.element(), s.elem)
	case s.kind == shapeList && (fresh || grown(shapeList)):
		return one(elementName, g.elem, s.elem)
	case s.kind == shapeMap && (fresh || grown(shapeMap)):
		if key := at.to(keyName); !p.at(key) {
			return strings.TrimSuffix(key.path, ".")
		}
		return one(valueName, g.elem, s.elem)
	}
	return ""
}

// dotted tells whether a name at or below s holds a dot.
func (s *shape) dotted() bool {
	if s.elem != nil {
		return s.elem.dotted()
	}
	for _, f := range s.fields {
		if strings.Contains(f.name, ".") || f.shape.dotted() {
			return true
		}
	}
	return false
}

// dotted tells whether a name below f holds a dot.
func (f *field) dotted() bool {
	for _, c := range f.children {
		if strings.Contains(c.Name, ".") || c.dotted() {
			return true
		}
	}
	return false
}

// checkDots refuses a row that has two fields of one dotted path, or one of a path
// that the table has elsewhere.
func (p *Plan) checkDots(s *shape) *refusal {
	if !p.dotted && !s.dotted() {
		return nil
	}
	root, taken := &growth{plan: p.root}, paths{}
	root.places(taken, steps{})
	if clash := root.claim(taken, s, steps{}); clash != "" {
		return &refusal{expected: "fields of different dotted paths", got: fmt.Sprintf("two fields %q", clip(clash)), reason: ReasonNameClash,
			hint: "Iceberg names a struct's field by its path with dots; rename one of them"}
	}
	return nil
}

// dotClash is a dotted path that two declared fields have, or "".
func (p *Plan) dotClash() string {
	if !p.dotted {
		return ""
	}
	seen := paths{}
	var walk func(f *field, at steps) string
	walk = func(f *field, at steps) string {
		for _, c := range f.children {
			below := at.to(c.Name)
			if !seen.at(below) {
				return strings.TrimSuffix(below.path, ".")
			}
			if clash := walk(c, below); clash != "" {
				return clash
			}
		}
		return ""
	}
	return walk(p.root, steps{})
}
