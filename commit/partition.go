package commit

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
)

// PartitionField is one element of a partition specification: a transform of a
// column (Iceberg specification, Partition Transforms).
type PartitionField struct {
	Source    string // column, dotted through structs
	Transform iceberg.Transform
}

var partitionCall = regexp.MustCompile(`^\s*([a-z]+)\s*\(\s*(.*?)\s*\)\s*$`)

// ParsePartition reads `country`, `day(ts)`, `bucket(16, user_id)` or
// `truncate(4, name)`.
func ParsePartition(expr string) (PartitionField, error) {
	m := partitionCall.FindStringSubmatch(expr)
	if m == nil {
		source := strings.TrimSpace(expr)
		if source == "" || strings.ContainsAny(source, "(),") {
			return PartitionField{}, fmt.Errorf("partition field %q: write a column, or one of identity, year, month, day, hour, bucket(n, …), truncate(w, …) of one", expr)
		}
		return PartitionField{Source: source, Transform: iceberg.IdentityTransform{}}, nil
	}
	name, args := m[1], strings.Split(m[2], ",")
	for i := range args {
		args[i] = strings.TrimSpace(args[i])
	}
	simple := map[string]iceberg.Transform{
		"identity": iceberg.IdentityTransform{}, "year": iceberg.YearTransform{}, "month": iceberg.MonthTransform{},
		"day": iceberg.DayTransform{}, "hour": iceberg.HourTransform{},
	}
	if t, ok := simple[name]; ok {
		if len(args) != 1 || args[0] == "" {
			return PartitionField{}, fmt.Errorf("partition field %q: %s takes one column", expr, name)
		}
		return PartitionField{Source: args[0], Transform: t}, nil
	}
	if name != "bucket" && name != "truncate" {
		return PartitionField{}, fmt.Errorf("partition field %q: unknown transform %q (identity, year, month, day, hour, bucket, truncate)", expr, name)
	}
	n := 0
	if len(args) == 2 {
		n, _ = strconv.Atoi(args[0])
	}
	if n < 1 || args[len(args)-1] == "" {
		return PartitionField{}, fmt.Errorf("partition field %q: write %s(n, column) with a whole number n of at least 1", expr, name)
	}
	f := PartitionField{Source: args[1], Transform: iceberg.BucketTransform{NumBuckets: n}}
	if name == "truncate" {
		f.Transform = iceberg.TruncateTransform{Width: n}
	}
	return f, nil
}

// name is the partition field's name, as Spark would choose it.
func (f PartitionField) name() string {
	source := strings.ReplaceAll(f.Source, ".", "_")
	switch f.Transform.(type) {
	case iceberg.IdentityTransform:
		return source
	case iceberg.BucketTransform:
		return source + "_bucket"
	case iceberg.TruncateTransform:
		return source + "_trunc"
	default:
		return source + "_" + f.Transform.String()
	}
}

// String is the field as the setting has it.
func (f PartitionField) String() string {
	switch t := f.Transform.(type) {
	case iceberg.IdentityTransform:
		return f.Source
	case iceberg.BucketTransform:
		return fmt.Sprintf("bucket(%d, %s)", t.NumBuckets, f.Source)
	case iceberg.TruncateTransform:
		return fmt.Sprintf("truncate(%d, %s)", t.Width, f.Source)
	default:
		return fmt.Sprintf("%s(%s)", t, f.Source)
	}
}

// CheckPartition finds what is wrong with a partition specification before there is
// a table: by itself, and by those of its columns that schema, which may be a part
// of the table's, has.
func CheckPartition(fields []PartitionField, schema *arrow.Schema) error {
	known, err := icebergSchema(schema)
	if err != nil {
		return err
	}
	names := map[string]PartitionField{}
	for _, f := range fields {
		if other, taken := names[f.name()]; taken {
			return twice(other, f)
		}
		names[f.name()] = f
		if _, _, err := f.find(known); err != nil {
			return err
		}
	}
	return nil
}

func twice(a, b PartitionField) error {
	return fmt.Errorf("partition_by: %q and %q would both be called %q; take one of them out", a, b, b.name())
}

// find gives the field's source; ok is false where the schema lacks it.
func (f PartitionField) find(schema *iceberg.Schema) (source iceberg.NestedField, ok bool, err error) {
	source, ok, err = findSource(schema.Fields(), f.Source)
	if err != nil || !ok {
		return source, ok, err
	}
	switch source.Type.(type) {
	case *iceberg.StructType:
		return source, true, fmt.Errorf("partition_by: column %q is a struct; name one of its fields, as in %s.field", f.Source, f.Source)
	case *iceberg.ListType, *iceberg.MapType:
		return source, true, fmt.Errorf("partition_by: column %q is a list or map, which has no one value for a row; name another column", f.Source)
	}
	if !f.Transform.CanTransform(source.Type) {
		name, _, _ := strings.Cut(f.Transform.String(), "[")
		return source, true, fmt.Errorf("partition_by: %s cannot be applied to column %q of type %s; it may be %s",
			name, f.Source, source.Type, strings.Join(transformsOf(source.Type), ", "))
	}
	return source, true, nil
}

// findSource follows a dotted name through structs. A column whose own name holds a
// dot comes before a struct's field.
func findSource(fields []iceberg.NestedField, name string) (iceberg.NestedField, bool, error) {
	for _, f := range fields {
		if f.Name == name {
			return f, true, nil
		}
	}
	for _, f := range fields {
		rest, within := strings.CutPrefix(name, f.Name+".")
		if !within {
			continue
		}
		switch t := f.Type.(type) {
		case *iceberg.StructType:
			if found, ok, err := findSource(t.FieldList, rest); ok || err != nil {
				return found, ok, err
			}
		case *iceberg.ListType, *iceberg.MapType:
			return f, false, fmt.Errorf("partition_by: column %q is a list or map, which has no one value for a row; name another column than %q in it", f.Name, rest)
		}
	}
	return iceberg.NestedField{}, false, nil
}

// transformsOf names the transforms that a type can have.
func transformsOf(t iceberg.Type) (out []string) {
	for _, f := range []iceberg.Transform{iceberg.IdentityTransform{}, iceberg.YearTransform{}, iceberg.MonthTransform{},
		iceberg.DayTransform{}, iceberg.HourTransform{}, iceberg.BucketTransform{NumBuckets: 1}, iceberg.TruncateTransform{Width: 1}} {
		if f.CanTransform(t) {
			name, _, _ := strings.Cut(f.String(), "[")
			out = append(out, name)
		}
	}
	return out
}

// partitionSpec binds fields to a new table's schema.
func partitionSpec(fields []PartitionField, schema *iceberg.Schema) (*iceberg.PartitionSpec, error) {
	if len(fields) == 0 {
		return iceberg.UnpartitionedSpec, nil
	}
	bound := make([]iceberg.PartitionField, len(fields))
	names := map[string]PartitionField{}
	for i, f := range fields {
		source, ok, err := f.find(schema)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, fmt.Errorf("partition_by: no row and no declaration has a column %q; declare it in `schema`", f.Source)
		}
		name := f.name()
		if _, taken := schema.FindFieldByName(name); taken && name != f.Source {
			name += "_part"
		}
		if other, taken := names[name]; taken {
			return nil, twice(other, f)
		}
		names[name] = f
		bound[i] = iceberg.PartitionField{SourceIDs: []int{source.ID}, FieldID: 1000 + i, Name: name, Transform: f.Transform}
	}
	spec := iceberg.NewPartitionSpec(bound...)
	return &spec, nil
}

// checkPartition compares what is configured with what an existing table has.
func checkPartition(fields []PartitionField, schema *iceberg.Schema, spec iceberg.PartitionSpec) error {
	if len(fields) == 0 {
		return nil
	}
	var have []string
	for _, f := range spec.Fields() {
		name, _ := schema.FindColumnName(f.SourceID())
		have = append(have, PartitionField{Source: name, Transform: f.Transform}.String())
	}
	var want []string
	for _, f := range fields {
		want = append(want, f.String())
	}
	if strings.Join(have, ", ") == strings.Join(want, ", ") {
		return nil
	}
	if len(have) == 0 {
		return errors.New("partition_by: the table exists and is not partitioned; take the setting out, or write to another table")
	}
	return fmt.Errorf("partition_by: the table is partitioned by [%s], the setting says [%s]; make them equal, or take the setting out",
		strings.Join(have, ", "), strings.Join(want, ", "))
}
