package datafile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
)

// Partitioner computes the partition of each row (Iceberg specification,
// Partition Transforms). It is immutable and safe for concurrent use.
type Partitioner struct {
	fields []partitionField
}

type partitionField struct {
	id        int // partition field id
	path      []string
	transform iceberg.Transform
}

// NewPartitioner binds spec to schema. It returns nil for an unpartitioned spec.
func NewPartitioner(spec iceberg.PartitionSpec, schema *iceberg.Schema) (*Partitioner, error) {
	if spec.IsUnpartitioned() {
		return nil, nil
	}
	p := &Partitioner{}
	for _, f := range spec.Fields() {
		name, ok := schema.FindColumnName(f.SourceID())
		if !ok {
			if f.Transform.String() == "void" {
				continue
			}
			return nil, fmt.Errorf("partition field %q: its source column (field id %d) is not in the schema", f.Name, f.SourceID())
		}
		path, err := columnPath(schema, f.SourceID())
		if err != nil {
			return nil, fmt.Errorf("partition field %q on %s: %w", f.Name, name, err)
		}
		p.fields = append(p.fields, partitionField{id: f.FieldID, path: path, transform: f.Transform})
	}
	return p, nil
}

// columnPath finds the names that lead to a field through structs.
func columnPath(schema *iceberg.Schema, id int) ([]string, error) {
	var find func(fields []iceberg.NestedField, path []string) []string
	find = func(fields []iceberg.NestedField, path []string) []string {
		for _, f := range fields {
			p := append(path[:len(path):len(path)], f.Name)
			if f.ID == id {
				return p
			}
			if st, ok := f.Type.(*iceberg.StructType); ok {
				if found := find(st.FieldList, p); found != nil {
					return found
				}
			}
		}
		return nil
	}
	if p := find(schema.Fields(), nil); p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("the source of a partition field must be a column or a field of a struct")
}

// Partition is the rows of one partition.
type Partition struct {
	Values map[int]any // partition field id -> value, nil for NULL
	Rows   []int32     // rows of the record, in order
}

// Split groups the rows of rec by partition, in a fixed order.
func (p *Partitioner) Split(rec arrow.RecordBatch) ([]Partition, error) {
	n := int(rec.NumRows())
	columns := make([][]any, len(p.fields))
	for i, f := range p.fields {
		values, err := f.values(rec, n)
		if err != nil {
			return nil, err
		}
		columns[i] = values
	}
	groups := map[string]*Partition{}
	keys := []string{}
	var b strings.Builder
	for row := range n {
		b.Reset()
		for i := range columns {
			// The type keeps NULL from the string "<nil>"; the length keeps
			// neighbours apart.
			s := fmt.Sprintf("%T=%v", columns[i][row], columns[i][row])
			fmt.Fprintf(&b, "%d:%s", len(s), s)
		}
		g, ok := groups[b.String()]
		if !ok {
			g = &Partition{Values: make(map[int]any, len(p.fields))}
			for i, f := range p.fields {
				g.Values[f.id] = columns[i][row]
			}
			key := strings.Clone(b.String())
			groups[key] = g
			keys = append(keys, key)
		}
		g.Rows = append(g.Rows, int32(row))
	}
	slices.SortFunc(keys, cmp.Compare[string])
	out := make([]Partition, len(keys))
	for i, k := range keys {
		out[i] = *groups[k]
	}
	return out, nil
}

// values are the transformed values of every row, nil for NULL.
func (f partitionField) values(rec arrow.RecordBatch, n int) ([]any, error) {
	a, valid, err := lookup(rec, f.path)
	if err != nil {
		return nil, err
	}
	out := make([]any, n)
	for row := range n {
		if !valid(row) {
			continue
		}
		lit, err := literal(a, row)
		if err != nil {
			return nil, fmt.Errorf("partition column %s: %w", strings.Join(f.path, "."), err)
		}
		if v := f.transform.Apply(iceberg.Optional[iceberg.Literal]{Valid: true, Val: lit}); v.Valid {
			out[row] = v.Val.Any()
		}
	}
	return out, nil
}

// lookup follows path through structs; valid is false where a value or a struct
// around it is NULL.
func lookup(rec arrow.RecordBatch, path []string) (arrow.Array, func(int) bool, error) {
	i := rec.Schema().FieldIndices(path[0])
	if len(i) != 1 {
		return nil, nil, fmt.Errorf("partition column %s is not in the record", strings.Join(path, "."))
	}
	a := rec.Column(i[0])
	chain := []arrow.Array{a}
	for _, name := range path[1:] {
		st, ok := a.(*array.Struct)
		if !ok {
			return nil, nil, fmt.Errorf("partition column %s is not in a struct", strings.Join(path, "."))
		}
		j, ok := st.DataType().(*arrow.StructType).FieldIdx(name)
		if !ok {
			return nil, nil, fmt.Errorf("partition column %s is not in the record", strings.Join(path, "."))
		}
		a = st.Field(j)
		chain = append(chain, a)
	}
	return a, func(row int) bool {
		for _, c := range chain {
			if c.IsNull(row) {
				return false
			}
		}
		return true
	}, nil
}

// literal is a value as Iceberg's transforms take it.
func literal(a arrow.Array, row int) (iceberg.Literal, error) {
	switch a := a.(type) {
	case *array.Boolean:
		return iceberg.NewLiteral(a.Value(row)), nil
	case *array.Int32:
		return iceberg.NewLiteral(a.Value(row)), nil
	case *array.Int64:
		return iceberg.NewLiteral(a.Value(row)), nil
	case *array.Float32:
		return iceberg.NewLiteral(a.Value(row)), nil
	case *array.Float64:
		return iceberg.NewLiteral(a.Value(row)), nil
	case *array.String:
		return iceberg.NewLiteral(strings.Clone(a.Value(row))), nil
	case *array.Binary:
		return iceberg.NewLiteral(slices.Clone(a.Value(row))), nil
	case *array.Date32:
		return iceberg.NewLiteral(iceberg.Date(a.Value(row))), nil
	case *array.Timestamp:
		return iceberg.NewLiteral(iceberg.Timestamp(a.Value(row))), nil
	case *array.Decimal128:
		return iceberg.NewLiteral(decimalValue(a.Value(row), a.DataType())), nil
	default:
		return nil, fmt.Errorf("a column of type %s cannot be a partition source", a.DataType())
	}
}

func decimalValue(v decimal128.Num, dt arrow.DataType) iceberg.Decimal {
	return iceberg.Decimal{Val: v, Scale: int(dt.(*arrow.Decimal128Type).Scale)}
}

// logicalTypes names the Avro logical types of partition values, by partition
// field id, as a manifest needs them.
func logicalTypes(spec iceberg.PartitionSpec, schema *iceberg.Schema) map[int]string {
	out := map[int]string{}
	for _, f := range spec.Fields() {
		source, ok := schema.FindFieldByID(f.SourceID())
		if !ok {
			continue
		}
		switch f.Transform.ResultType(source.Type).(type) {
		case iceberg.DateType:
			out[f.FieldID] = "date"
		case iceberg.TimestampType, iceberg.TimestampTzType:
			out[f.FieldID] = "timestamp-micros"
		case iceberg.DecimalType:
			out[f.FieldID] = "decimal"
		}
	}
	return out
}
