package datafile

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Conform returns rec with exactly the given schema: fields are matched by
// name at every level, those that rec lacks are filled with NULL, and the
// schema's metadata (field ids) replaces that of the record. Buffers are shared,
// never copied. It fails where rec holds a field the schema lacks, where types
// differ, or where a missing field may not be NULL.
//
// The caller owns the result and must release it.
func Conform(rec arrow.RecordBatch, schema *arrow.Schema, mem memory.Allocator) (arrow.RecordBatch, error) {
	cols, err := conformFields("", rec.Schema().Fields(), rec.Columns(), schema.Fields(), int(rec.NumRows()), mem)
	defer release(cols)
	if err != nil {
		return nil, err
	}
	return array.NewRecordBatch(schema, cols, rec.NumRows()), nil
}

func release(cols []arrow.Array) {
	for _, c := range cols {
		if c != nil {
			c.Release()
		}
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func conformFields(path string, have []arrow.Field, arrays []arrow.Array, want []arrow.Field, n int, mem memory.Allocator) ([]arrow.Array, error) {
	index := make(map[string]int, len(have))
	for i, f := range have {
		index[f.Name] = i
	}
	out := make([]arrow.Array, 0, len(want))
	for _, f := range want {
		i, ok := index[f.Name]
		if !ok {
			if !f.Nullable {
				return out, fmt.Errorf("column %q is required and the record does not have it", join(path, f.Name))
			}
			out = append(out, array.MakeArrayOfNull(mem, f.Type, n))
			continue
		}
		delete(index, f.Name)
		a, err := conformArray(join(path, f.Name), arrays[i], f.Type, mem)
		if err != nil {
			return out, err
		}
		out = append(out, a)
	}
	for name := range index {
		return out, fmt.Errorf("the record has a column %q that the table's schema lacks", join(path, name))
	}
	return out, nil
}

func conformArray(path string, a arrow.Array, want arrow.DataType, mem memory.Allocator) (arrow.Array, error) {
	have := a.DataType()
	if !nested(want) {
		if !arrow.TypeEqual(have, want) {
			return nil, fmt.Errorf("column %q: the record holds %s, the table's schema %s", path, have, want)
		}
		a.Retain()
		return a, nil
	}
	if have.ID() != want.ID() {
		return nil, fmt.Errorf("column %q: the record holds %s, the table's schema %s", path, have, want)
	}
	if arrow.TypeEqual(have, want, arrow.CheckMetadata()) {
		a.Retain()
		return a, nil
	}
	switch w := want.(type) {
	case *arrow.StructType:
		return conformStruct(path, a.(*array.Struct), w, mem)
	case *arrow.ListType:
		l := a.(*array.List)
		child, err := conformArray(path+".element", l.ListValues(), w.Elem(), mem)
		if err != nil {
			return nil, err
		}
		defer child.Release()
		return rebuild(a, w, child.Data()), nil
	case *arrow.MapType:
		m := a.(*array.Map)
		entries, err := conformArray(path, m.ListValues(), w.Elem(), mem)
		if err != nil {
			return nil, err
		}
		defer entries.Release()
		return rebuild(a, w, entries.Data()), nil
	default:
		return nil, fmt.Errorf("column %q: nested type %s is not supported", path, want)
	}
}

// conformStruct works on the unsliced children: a struct array's own offset
// applies to them, so they are rebuilt at full length and the offset is kept.
func conformStruct(path string, s *array.Struct, want *arrow.StructType, mem memory.Allocator) (arrow.Array, error) {
	data := s.Data()
	have := s.DataType().(*arrow.StructType).Fields()
	full := make([]arrow.Array, len(have))
	for i := range have {
		full[i] = array.MakeFromData(data.Children()[i])
	}
	defer release(full)
	n := data.Offset() + data.Len()
	for _, f := range full {
		n = max(n, f.Len())
	}
	cols, err := conformFields(path, have, full, want.Fields(), n, mem)
	defer release(cols)
	if err != nil {
		return nil, err
	}
	children := make([]arrow.ArrayData, len(cols))
	for i, c := range cols {
		children[i] = c.Data()
	}
	return rebuild(s, want, children...), nil
}

// rebuild is a with another type and other children: same buffers, same window.
func rebuild(a arrow.Array, dt arrow.DataType, children ...arrow.ArrayData) arrow.Array {
	d := a.Data()
	nd := array.NewData(dt, d.Len(), d.Buffers(), children, d.NullN(), d.Offset())
	defer nd.Release()
	return array.MakeFromData(nd)
}

func nested(dt arrow.DataType) bool {
	switch dt.ID() {
	case arrow.STRUCT, arrow.LIST, arrow.MAP:
		return true
	default:
		return false
	}
}
