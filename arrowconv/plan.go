package arrowconv

import (
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
	dotted  bool      // a name holds a dot
	renames *renames  // shared with the plans that extend this one
	pool    sync.Pool // of *converter
}

// field is one node of the plan: a column, a struct's field, a list's element,
// a map's key or value.
type field struct {
	arrow.Field // as in the schema: stored name, full type, nullability, metadata
	kind        kind
	declared    bool // by the user, in this configuration
	must        bool // declared as required, whatever the table says
	unit        unit
	opts        *Options
	renames     *renames

	precision, scale int32 // of a decimal

	children []*field // struct: its fields; list: element; map: key, value
	names    *names   // of a struct's children
	width    int      // leaves at and below

	hint hint // sizes the next record's buffers; of the root, its rows
}

// hint is what the entries of a variable length took in the last record, in
// bytes or elements.
type hint struct{ used, entries atomic.Int64 }

func (h *hint) note(used, entries int) {
	h.used.Store(int64(used))
	h.entries.Store(int64(entries))
}

// room is a little more than what n entries take if they are like the last, so
// that an even stream never grows a buffer; never much more than the last took
// in all, so that one large value is not reserved for each row to come.
func (h *hint) room(n int) int {
	used, entries := h.used.Load(), h.entries.Load()
	if entries > int64(n) {
		used = used * int64(n) / entries
	}
	return int(used + used>>4 + 8)
}

// names finds a struct's children.
type names struct {
	exact  map[string]int
	folded map[string]int // by fold(name): the first of that key
}

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
	for _, f := range fields {
		if kindOf(f.Type) == kindUnsupported && !f.Nullable {
			return nil, fmt.Errorf("the table's column %q is required and of type %s, which this output cannot write", f.Name, f.Type)
		}
	}
	p := &Plan{opts: opts, renames: &renames{}}
	p.build(fields, metadata)
	p.applyDeclared()
	if clash := p.dotClash(); clash != "" {
		return nil, fmt.Errorf("schema: two fields have the dotted path %q, by which Iceberg names a struct's field; rename one of them", clash)
	}
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
	p.root = newField(arrow.Field{Type: arrow.StructOf(fields...)}, p)
	p.schema = arrow.NewSchema(fields, &metadata)
	p.leaves = p.root.width
	p.dotted = p.root.dotted()
	p.pool.New = func() any { return newConverter(p) }
}

// newField makes the tree below one Arrow field.
func newField(f arrow.Field, p *Plan) *field {
	n := &field{Field: f, kind: kindOf(f.Type), opts: &p.opts, renames: p.renames}
	switch t := f.Type.(type) {
	case *arrow.Decimal128Type:
		n.precision, n.scale = t.Precision, t.Scale
	case *arrow.StructType:
		for _, c := range t.Fields() {
			n.children = append(n.children, newField(c, p))
		}
		n.names = indexNames(n.children)
	case *arrow.ListType:
		n.children = []*field{newField(t.ElemField(), p)}
	case *arrow.MapType:
		n.children = []*field{newField(t.KeyField(), p), newField(t.ItemField(), p)}
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
	if ok {
		f.renames.note(Rename{From: name, To: stored})
	}
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

// required tells whether NULL is refused here: by the table, or by a
// declaration although the table would take it.
func (f *field) required() bool { return f.must || !f.Nullable }
