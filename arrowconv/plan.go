package arrowconv

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
)

// Plan is the target that messages are converted to: the table's columns, those
// declared, and those that an Observation added. It is immutable and safe for
// concurrent use.
type Plan struct {
	opts   Options
	root   *field // a struct of the columns
	schema *arrow.Schema
	leaves int
	// settled marks a plan that an epoch's observation went into: a row
	// without any column is then refused instead of kept for later.
	settled bool
	shared  *shared
	pool    sync.Pool // of *converter
}

// shared outlives a plan's extensions.
type shared struct {
	renames sync.Map // from name and stored name to struct{}: each is reported once
}

// field is one node of the plan: a column, a struct's field, a list's element,
// a map's key or value.
type field struct {
	arrow.Field // as in the schema: stored name, full type, nullability, metadata
	kind        kind
	declared    bool // by the user, in this configuration
	unit        unit
	opts        *Options

	precision, scale int32 // of a decimal

	children []*field // struct: its fields; list: element; map: key, value
	names    *names   // of a struct's children
	width    int      // leaves at and below

	// hint sizes the next record's buffers by the last: sixteenths of a byte or
	// element per entry of a variable length; for the root, its rows.
	hint atomic.Int64
}

// names finds a struct's children.
type names struct {
	exact  map[string]int
	folded map[string]int // by fold(name): the first of that key
}

// errNoChild is the inner error of nested declarations without their parts.
var errNoChild = errors.New("nothing in it")

// NewPlan makes the plan for a table's schema (nil while there is no table) and
// the declared columns. The table's fields keep their types, nullability and
// metadata; declared columns that it lacks follow. It fails when a declaration
// is wrong in itself or contradicts the table, naming the column.
func NewPlan(table *arrow.Schema, opts Options) (*Plan, error) {
	if opts.MaxColumns <= 0 {
		opts.MaxColumns = DefaultMaxColumns
	}
	if opts.MaxDepth <= 0 {
		opts.MaxDepth = DefaultMaxDepth
	}
	var fields []arrow.Field
	var metadata arrow.Metadata
	if table != nil {
		fields = slices.Clone(table.Fields())
		metadata = table.Metadata()
	}
	declared, err := declaredFields(opts.Declared)
	if err != nil {
		return nil, err
	}
	for i, d := range declared {
		if by := reservedBy(d.Name); by != "" {
			return nil, fmt.Errorf("schema: column %q: the name is reserved by %s", d.Name, by)
		}
		if _, problem := storedName(d.Name, RejectNames); problem != "" && opts.ColumnNames != MapNames {
			return nil, fmt.Errorf("schema: column %q: %s", d.Name, problem)
		}
		at := slices.IndexFunc(fields, func(f arrow.Field) bool { return f.Name == d.Name })
		if at < 0 {
			if clash := slices.IndexFunc(fields, func(f arrow.Field) bool { return fold(f.Name) == fold(d.Name) }); clash >= 0 {
				return nil, fmt.Errorf("schema: column %q: differs only in case from column %q", d.Name, fields[clash].Name)
			}
			if table != nil && table.NumFields() > 0 && opts.Declared[i].Required {
				return nil, fmt.Errorf("schema: column %q: required, but the table exists without it and its rows would have no value there; declare it without `required`", d.Name)
			}
			fields = append(fields, d)
			continue
		}
		merged, err := mergeDeclared(fields[at], d, opts.Widen, d.Name)
		if err != nil {
			return nil, fmt.Errorf("schema: %w", err)
		}
		fields[at] = merged
	}
	p := &Plan{opts: opts, shared: &shared{}}
	p.build(fields, metadata)
	p.applyDeclared()
	if p.leaves > opts.MaxColumns && table == nil {
		return nil, fmt.Errorf("schema: %d leaf columns declared, at most %d are allowed (max_columns)", p.leaves, opts.MaxColumns)
	}
	return p, nil
}

// Schema is what the records of this plan have. It has no fields when nothing
// is known yet. Fields of the table keep their metadata (field ids).
func (p *Plan) Schema() *arrow.Schema { return p.schema }

// build makes the tree and schema from the columns.
func (p *Plan) build(fields []arrow.Field, metadata arrow.Metadata) {
	p.root = newField(arrow.Field{Type: arrow.StructOf(fields...)}, &p.opts)
	p.schema = arrow.NewSchema(fields, &metadata)
	p.leaves = p.root.width
	p.pool.New = func() any { return newConverter(p) }
}

// newField makes the tree below one Arrow field.
func newField(f arrow.Field, opts *Options) *field {
	n := &field{Field: f, kind: kindOf(f.Type), opts: opts}
	switch t := f.Type.(type) {
	case *arrow.Decimal128Type:
		n.precision, n.scale = t.Precision, t.Scale
	case *arrow.StructType:
		for _, c := range t.Fields() {
			n.children = append(n.children, newField(c, opts))
		}
		n.names = indexNames(n.children)
	case *arrow.ListType:
		n.children = []*field{newField(t.ElemField(), opts)}
	case *arrow.MapType:
		n.children = []*field{newField(t.KeyField(), opts), newField(t.ItemField(), opts)}
	}
	n.width = n.leaves()
	return n
}

func indexNames(children []*field) *names {
	x := &names{exact: make(map[string]int, len(children)), folded: make(map[string]int, len(children))}
	for i, c := range children {
		if _, ok := x.exact[c.Name]; !ok {
			x.exact[c.Name] = i
		}
		if _, ok := x.folded[fold(c.Name)]; !ok {
			x.folded[fold(c.Name)] = i
		}
	}
	return x
}

// child finds a struct's field by its stored name, -1 if there is none.
func (f *field) child(name string) int {
	if i, ok := f.names.exact[name]; ok {
		return i
	}
	return -1
}

// find gives the place of a struct's field for a name in the data: the field of
// that name, or of the name under which it is stored.
func (f *field) find(name string) (int, bool) {
	if i, ok := f.names.exact[name]; ok {
		return i, true
	}
	stored, problem := storedName(name, f.opts.ColumnNames)
	if problem != "" {
		return 0, false
	}
	i, ok := f.names.exact[stored]
	return i, ok
}

// findBytes is find without a string where the name is found at once.
func (f *field) findBytes(name []byte) (int, bool) {
	if len(f.children) == 0 {
		return 0, false
	}
	if i, ok := f.names.exact[string(name)]; ok {
		return i, true
	}
	return f.find(string(name))
}

// leaves counts the scalar columns at and below f.
func (f *field) leaves() int {
	if len(f.children) == 0 && f.kind != kindStruct {
		return 1
	}
	n := 0
	for _, c := range f.children {
		n += c.width
	}
	return n
}

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
	f.unit = unitOf(c.Unit)
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
			return nil, wrong(fmt.Errorf("a struct needs its fields: %w", errNoChild))
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
			return nil, wrong(fmt.Errorf("a list needs its element: %w", errNoChild))
		}
		e, err := declaredField(*c.Element, path+"."+elementName)
		if err != nil {
			return nil, err
		}
		e.Name = elementName
		return arrow.ListOfField(e), nil
	case c.Type == "map" || c.Type == "" && c.Value != nil:
		if c.Value == nil {
			return nil, wrong(fmt.Errorf("a map needs its value: %w", errNoChild))
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

// required tells whether NULL is refused here: by the table, or by a
// declaration although the table would take it.
func (f *field) required() bool { return !f.Nullable }
