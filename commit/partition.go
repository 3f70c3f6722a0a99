package commit

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

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

// partitionSpec binds fields to a new table's schema.
func partitionSpec(fields []PartitionField, schema *iceberg.Schema) (*iceberg.PartitionSpec, error) {
	if len(fields) == 0 {
		return iceberg.UnpartitionedSpec, nil
	}
	bound := make([]iceberg.PartitionField, len(fields))
	names := map[string]bool{}
	for i, f := range fields {
		source, ok := schema.FindFieldByName(f.Source)
		if !ok {
			return nil, fmt.Errorf("partition_by: no row and no declaration has a column %q; declare it in `schema`", f.Source)
		}
		if !f.Transform.CanTransform(source.Type) {
			return nil, fmt.Errorf("partition_by: %s cannot be applied to column %q of type %s", f.Transform, f.Source, source.Type)
		}
		name := f.name()
		if _, taken := schema.FindFieldByName(name); taken && name != f.Source {
			name += "_part"
		}
		if names[name] {
			return nil, fmt.Errorf("partition_by: two fields would both be called %q", name)
		}
		names[name] = true
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
		have = append(have, fmt.Sprintf("%s(%s)", f.Transform, name))
	}
	var want []string
	for _, f := range fields {
		want = append(want, fmt.Sprintf("%s(%s)", f.Transform, f.Source))
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
