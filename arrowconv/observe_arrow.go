package arrowconv

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
)

// arrow gives the shape of a payload by its schema, or the reason why a column
// of it can never be stored.
func (o *observer) arrow(fields []arrow.Field) (*shape, *refusal) {
	o.arena.reset()
	s := o.arena.new()
	if r := o.arrowStruct(s, fields, o.plan.root, 0); r != nil {
		return nil, r
	}
	return s, o.checkColumns(s)
}

func (o *observer) arrowStruct(s *shape, fields []arrow.Field, f *field, depth int) *refusal {
	s.kind = shapeStruct
	for i, src := range fields {
		if slices.ContainsFunc(fields[:i], func(g arrow.Field) bool { return g.Name == src.Name }) {
			return collision(src.Name, src.Name)
		}
		if !utf8.ValidString(src.Name) {
			return &refusal{expected: "a name in UTF-8", got: fmt.Sprintf("%+q", clip(src.Name)), reason: ReasonInvalidUTF8}
		}
		name := o.seen([]byte(src.Name))
		known := o.known(f, name)
		v := o.arena.new()
		if r := o.arrowType(v, src.Type, known, depth+1); r != nil {
			return r.field(src.Name)
		}
		if f != nil && known == nil && !v.deferred() && !o.plan.opts.Evolve {
			return (&refusal{expected: "a column of the table", got: "a field that it lacks", reason: ReasonUnknownField, hint: "schema_evolution.enabled is off"}).field(src.Name)
		}
		if r := o.add(s, f, known, name, v); r != nil {
			return r
		}
	}
	return nil
}

// arrowType gives the shape of a type: what is new in it below a known field, or
// the type of a new column.
func (o *observer) arrowType(s *shape, t arrow.DataType, f *field, depth int) *refusal {
	if depth > o.plan.opts.MaxDepth {
		return o.tooDeep()
	}
	switch t := t.(type) {
	case *arrow.DictionaryType:
		return o.arrowType(s, t.ValueType, f, depth)
	case *arrow.StructType:
		if f != nil && f.kind != kindStruct {
			return nil // adapt refuses it
		}
		return o.arrowStruct(s, t.Fields(), f, depth)
	case *arrow.MapType:
		return o.arrowMap(s, t, f, depth)
	case *arrow.ListType, *arrow.LargeListType, *arrow.FixedSizeListType:
		var known *field
		if f != nil {
			if f.kind != kindList {
				return nil
			}
			known = f.children[0]
		}
		v := o.arena.new()
		if r := o.arrowType(v, t.(arrow.ListLikeType).Elem(), known, depth+1); r != nil {
			return r.field(elementName)
		}
		s.kind = shapeList
		return o.join(s, v)
	}
	if f != nil {
		return nil
	}
	name, ok := columnType(t)
	if !ok {
		return &refusal{expected: "a type that the tables have", got: t.String(), reason: ReasonUnsupported, hint: "cast it before, to one of " + typeChoice}
	}
	if name != "" {
		s.kind, s.typ = shapeExact, name
	}
	return nil
}

func (o *observer) arrowMap(s *shape, t *arrow.MapType, f *field, depth int) *refusal {
	v := o.arena.new()
	if f != nil {
		if f.kind != kindMap {
			return nil
		}
		if r := o.arrowType(v, t.ItemType(), f.children[1], depth+1); r != nil {
			return r.field(valueName)
		}
		s.kind = shapeList // as a known map's shape is that of its values
		return o.join(s, v)
	}
	key, ok := columnType(t.KeyType())
	if !ok || key == "" {
		return (&refusal{expected: "a key of a scalar type", got: t.KeyType().String(), reason: ReasonUnsupported}).field(keyName)
	}
	if r := o.arrowType(v, t.ItemType(), nil, depth+1); r != nil {
		return r.field(valueName)
	}
	if v.deferred() {
		return nil
	}
	s.kind, s.typ, s.elem = shapeMap, key, v
	return nil
}

// columnType names the column type that a scalar of another Arrow producer
// becomes; empty for the null type, which says nothing.
func columnType(t arrow.DataType) (name string, ok bool) {
	switch t := t.(type) {
	case *arrow.NullType:
		return "", true
	case *arrow.DictionaryType:
		return columnType(t.ValueType)
	case *arrow.BooleanType:
		return "boolean", true
	case *arrow.Int8Type, *arrow.Int16Type, *arrow.Int32Type, *arrow.Uint8Type, *arrow.Uint16Type:
		return "int", true
	case *arrow.Int64Type, *arrow.Uint32Type, *arrow.Uint64Type:
		return "long", true
	case *arrow.Float32Type:
		return "float", true
	case *arrow.Float64Type:
		return "double", true
	case *arrow.StringType, *arrow.LargeStringType, *arrow.StringViewType:
		return "string", true
	case *arrow.BinaryType, *arrow.LargeBinaryType, *arrow.BinaryViewType:
		return "binary", true
	case *arrow.Date32Type:
		return "date", true
	case *arrow.TimestampType:
		if t.TimeZone == "" {
			return "timestamp", true
		}
		return "timestamptz", true
	case arrow.DecimalType:
		if t.GetScale() < 0 {
			return "", false
		}
		return fmt.Sprintf("decimal(%d,%d)", min(t.GetPrecision(), 38), min(t.GetScale(), 38)), true
	}
	return "", false
}
