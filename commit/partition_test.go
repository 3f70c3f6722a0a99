package commit

import (
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"
)

func TestParsePartition(t *testing.T) {
	for in, want := range map[string]PartitionField{
		"country":             {"country", iceberg.IdentityTransform{}},
		" identity(a.b) ":     {"a.b", iceberg.IdentityTransform{}},
		"day(ts)":             {"ts", iceberg.DayTransform{}},
		"hour( ts )":          {"ts", iceberg.HourTransform{}},
		"bucket(16, user_id)": {"user_id", iceberg.BucketTransform{NumBuckets: 16}},
		"truncate(4,name)":    {"name", iceberg.TruncateTransform{Width: 4}},
	} {
		got, err := ParsePartition(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got, in)
	}
	for in, says := range map[string]string{
		"":                  "write a column",
		"day(":              "write a column",
		"week(ts)":          `unknown transform "week"`,
		"day(a, b)":         "takes one column",
		"bucket(user_id)":   "whole number",
		"bucket(0, id)":     "whole number",
		"bucket(-3, id)":    "whole number",
		"truncate(x, name)": "whole number",
		"truncate(4, )":     "whole number",
	} {
		_, err := ParsePartition(in)
		require.ErrorContains(t, err, says, in)
	}
}

func TestPartitionSpec(t *testing.T) {
	schema := iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "ts", Type: iceberg.PrimitiveTypes.TimestampTz},
		iceberg.NestedField{ID: 2, Name: "o", Type: &iceberg.StructType{FieldList: []iceberg.NestedField{
			{ID: 3, Name: "k", Type: iceberg.PrimitiveTypes.String}}}},
		iceberg.NestedField{ID: 4, Name: "ts_day", Type: iceberg.PrimitiveTypes.Int32},
		iceberg.NestedField{ID: 5, Name: "l", Type: &iceberg.ListType{ElementID: 6, Element: &iceberg.StructType{
			FieldList: []iceberg.NestedField{{ID: 7, Name: "k", Type: iceberg.PrimitiveTypes.String}}}}},
		iceberg.NestedField{ID: 8, Name: "o.z", Type: iceberg.PrimitiveTypes.Int64},
	)
	parse := func(exprs ...string) (out []PartitionField) {
		for _, e := range exprs {
			f, err := ParsePartition(e)
			require.NoError(t, err)
			out = append(out, f)
		}
		return out
	}
	spec, err := partitionSpec(parse("day(ts)", "bucket(4, o.k)"), schema)
	require.NoError(t, err)
	require.Equal(t, 2, spec.NumFields())
	require.Equal(t, "ts_day_part", spec.Field(0).Name, "a partition field must not take a column's name")
	require.Equal(t, []int{3}, spec.Field(1).SourceIDs)
	dotted, err := partitionSpec(parse("o.z"), schema)
	require.NoError(t, err)
	require.Equal(t, []int{8}, dotted.Field(0).SourceIDs, "a column whose own name holds a dot")
	require.NoError(t, checkPartition(parse("day(ts)", "bucket(4, o.k)"), schema, *spec))
	require.ErrorContains(t, checkPartition(parse("day(ts)"), schema, *spec), "the table is partitioned by [day(ts), bucket(4, o.k)]")
	require.ErrorContains(t, checkPartition(parse("day(ts)"), schema, *iceberg.UnpartitionedSpec), "is not partitioned")

	for says, exprs := range map[string][]string{
		`has a column "nope"`:                               {"nope"},
		`day cannot be applied to column "o.k"`:             {"day(o.k)"},
		`type string; it may be identity, bucket, truncate`: {"day(o.k)"},
		`column "o" is a struct`:                            {"o"},
		`column "l" is a list or map`:                       {"bucket(2, l)"},
		`another column than "k" in it`:                     {"l.k"},
		`than "element.k" in it`:                            {"l.element.k"},
		"would both be called":                              {"bucket(4, o.k)", "bucket(8, o.k)"},
	} {
		_, err := partitionSpec(parse(exprs...), schema)
		require.ErrorContains(t, err, says)
	}
}
