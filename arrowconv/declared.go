package arrowconv

import (
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
)

// This file turns the declarations of a schema into Arrow fields, checks them in
// themselves and against the table, and marks the plan's fields with them.

// applyDeclared marks the declared nodes, with the units given.
func (p *Plan) applyDeclared() {
	for _, c := range p.opts.Declared {
		if i := p.root.child(c.Name); i >= 0 {
			p.root.children[i].markDeclared(&c)
		}
	}
}

func (f *field) markDeclared(c *Column) {
	f.declared = true
	if c == nil {
		for _, child := range f.children {
			child.markDeclared(nil)
		}
		return
	}
	f.unit, f.must = unitOf(c.Unit), c.Required
	switch f.kind {
	case kindStruct:
		if len(c.Fields) == 0 { // spelled out in the type
			for _, child := range f.children {
				child.markDeclared(nil)
			}
		}
		for _, sub := range c.Fields {
			if i := f.child(sub.Name); i >= 0 {
				f.children[i].markDeclared(&sub)
			}
		}
	case kindList:
		f.children[0].markDeclared(c.Element)
	case kindMap:
		f.children[0].markDeclared(c.Key)
		f.children[1].markDeclared(c.Value)
	}
}

// declaredFields turns declarations into Arrow fields, checking each.
func declaredFields(columns []Column) ([]arrow.Field, error) {
	fields := make([]arrow.Field, 0, len(columns))
	seen := map[string]string{}
	for _, c := range columns {
		f, err := declaredField(c, c.Name)
		if err != nil {
			return nil, fmt.Errorf("schema: %w", err)
		}
		if c.Name == "" {
			return nil, errors.New("schema: a column has no name")
		}
		if other, ok := seen[fold(c.Name)]; ok {
			return nil, fmt.Errorf("schema: column %q is declared twice (names that differ only in case count as one): %q", c.Name, other)
		}
		seen[fold(c.Name)] = c.Name
		fields = append(fields, f)
	}
	return fields, nil
}

func declaredField(c Column, path string) (arrow.Field, error) {
	t, err := declaredType(c, path)
	if err != nil {
		return arrow.Field{}, err
	}
	if err := checkUnit(c, t, path); err != nil {
		return arrow.Field{}, err
	}
	f := arrow.Field{Name: c.Name, Type: t, Nullable: !c.Required}
	if c.Doc != "" {
		f.Metadata = arrow.MetadataFrom(map[string]string{docKey: c.Doc})
	}
	return f, nil
}

func declaredType(c Column, path string) (arrow.DataType, error) {
	wrong := func(err error) error { return fmt.Errorf("column %q: %w", path, err) }
	switch {
	case c.Type == "struct" || c.Type == "" && len(c.Fields) > 0:
		if len(c.Fields) == 0 {
			return nil, wrong(errors.New("a struct needs its fields"))
		}
		var fields []arrow.Field
		seen := map[string]bool{}
		for _, sub := range c.Fields {
			if sub.Name == "" {
				return nil, wrong(errors.New("a field of it has no name"))
			}
			if seen[fold(sub.Name)] {
				return nil, wrong(fmt.Errorf("field %q is declared twice (names that differ only in case count as one)", sub.Name))
			}
			seen[fold(sub.Name)] = true
			f, err := declaredField(sub, path+"."+sub.Name)
			if err != nil {
				return nil, err
			}
			fields = append(fields, f)
		}
		return arrow.StructOf(fields...), nil
	case c.Type == "list" || c.Type == "" && c.Element != nil:
		if c.Element == nil {
			return nil, wrong(errors.New("a list needs its element"))
		}
		e, err := declaredField(*c.Element, path+"."+elementName)
		if err != nil {
			return nil, err
		}
		e.Name = elementName
		return arrow.ListOfField(e), nil
	case c.Type == "map" || c.Type == "" && c.Value != nil:
		if c.Value == nil {
			return nil, wrong(errors.New("a map needs its value"))
		}
		key := arrow.Field{Name: keyName, Type: arrow.BinaryTypes.String}
		if c.Key != nil {
			k, err := declaredField(*c.Key, path+"."+keyName)
			if err != nil {
				return nil, err
			}
			k.Name, k.Nullable = keyName, false
			key = k
		}
		v, err := declaredField(*c.Value, path+"."+valueName)
		if err != nil {
			return nil, err
		}
		v.Name = valueName
		m := arrow.MapOfFields(key, v)
		if err := checkMapKeys(m); err != nil {
			return nil, wrong(err)
		}
		return m, nil
	case c.Type == "":
		return nil, wrong(fmt.Errorf("it has no type: %s", typeChoice))
	}
	t, err := ParseType(c.Type)
	if err != nil {
		return nil, wrong(err)
	}
	if err := checkMapKeys(t); err != nil {
		return nil, wrong(err)
	}
	return t, nil
}

// checkMapKeys refuses maps with nested keys: JSON names are scalars.
func checkMapKeys(t arrow.DataType) error {
	switch t := t.(type) {
	case *arrow.MapType:
		switch t.KeyType().(type) {
		case *arrow.MapType, *arrow.ListType, *arrow.StructType, *arrow.BinaryType, *arrow.BooleanType:
			return fmt.Errorf("a map's key may be string, a number, a date or a timestamp, not %s", typeName(t.KeyType()))
		}
		return checkMapKeys(t.ItemType())
	case *arrow.ListType:
		return checkMapKeys(t.Elem())
	case *arrow.StructType:
		for _, f := range t.Fields() {
			if err := checkMapKeys(f.Type); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkUnit(c Column, t arrow.DataType, path string) error {
	if c.Unit == "" {
		return nil
	}
	u := unitOf(c.Unit)
	switch kindOf(t) {
	case kindTimestamp, kindTimestampTZ:
		if u >= unitSecond && u <= unitNano {
			return nil
		}
		return fmt.Errorf("column %q: unit %q: it may be s, ms, us or ns", path, c.Unit)
	case kindDate:
		if u == unitDay {
			return nil
		}
		return fmt.Errorf("column %q: unit %q: for a date it may be d", path, c.Unit)
	}
	return fmt.Errorf("column %q: a unit has a meaning for timestamp, timestamptz and date only, not for %s", path, typeName(t))
}

// mergeDeclared joins the table's field with its declaration: the same type (or
// a wider one, if allowed), and for structs the union of the fields.
func mergeDeclared(have, want arrow.Field, widen bool, path string) (arrow.Field, error) {
	switch h := have.Type.(type) {
	case *arrow.StructType:
		w, ok := want.Type.(*arrow.StructType)
		if !ok {
			break
		}
		fields := slices.Clone(h.Fields())
		for _, wf := range w.Fields() {
			at := slices.IndexFunc(fields, func(f arrow.Field) bool { return f.Name == wf.Name })
			if at < 0 {
				if clash := slices.IndexFunc(fields, func(f arrow.Field) bool { return fold(f.Name) == fold(wf.Name) }); clash >= 0 {
					return have, fmt.Errorf("column %q: field %q differs only in case from %q", path, wf.Name, fields[clash].Name)
				}
				if !wf.Nullable {
					return have, fmt.Errorf("column %q: field %q is required, but the table exists without it; declare it without `required`", path, wf.Name)
				}
				fields = append(fields, wf)
				continue
			}
			f, err := mergeDeclared(fields[at], wf, widen, path+"."+wf.Name)
			if err != nil {
				return have, err
			}
			fields[at] = f
		}
		have.Type = arrow.StructOf(fields...)
		return have, nil
	case *arrow.ListType:
		w, ok := want.Type.(*arrow.ListType)
		if !ok {
			break
		}
		e, err := mergeDeclared(h.ElemField(), w.ElemField(), widen, path+"."+elementName)
		if err != nil {
			return have, err
		}
		have.Type = arrow.ListOfField(e)
		return have, nil
	case *arrow.MapType:
		w, ok := want.Type.(*arrow.MapType)
		if !ok {
			break
		}
		k, err := mergeDeclared(h.KeyField(), w.KeyField(), false, path+"."+keyName)
		if err != nil {
			return have, err
		}
		v, err := mergeDeclared(h.ItemField(), w.ItemField(), widen, path+"."+valueName)
		if err != nil {
			return have, err
		}
		have.Type = arrow.MapOfFields(k, v)
		return have, nil
	default:
		if kindOf(h) == kindOf(want.Type) && kindOf(h) != kindUnsupported && typeName(h) == typeName(want.Type) {
			return have, nil
		}
		if wider(h, want.Type) {
			if widen {
				have.Type = want.Type
				return have, nil
			}
			return have, fmt.Errorf("column %q: declared %s, but the table has %s, and widening it is off because not every format can", path, typeName(want.Type), typeName(h))
		}
	}
	return have, fmt.Errorf("column %q: declared %s, but the table has %s", path, typeName(want.Type), typeName(have.Type))
}

// wider tells whether Iceberg may widen one scalar to the other.
func wider(from, to arrow.DataType) bool {
	switch kindOf(from) {
	case kindInt:
		return kindOf(to) == kindLong
	case kindFloat:
		return kindOf(to) == kindDouble
	case kindDecimal:
		f := from.(*arrow.Decimal128Type)
		t, ok := to.(*arrow.Decimal128Type)
		return ok && t.Scale == f.Scale && t.Precision > f.Precision
	}
	return false
}
