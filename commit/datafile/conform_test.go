package datafile

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

func withID(id, name string, dt arrow.DataType, nullable bool) arrow.Field {
	return arrow.Field{Name: name, Type: dt, Nullable: nullable,
		Metadata: arrow.NewMetadata([]string{fieldIDKey}, []string{id})}
}

func record(t *testing.T, mem memory.Allocator, schema *arrow.Schema, json string) arrow.RecordBatch {
	t.Helper()
	rec, _, err := array.RecordFromJSON(mem, schema, strings.NewReader(json), array.WithMultipleDocs())
	require.NoError(t, err)
	return rec
}

func TestConformFillsAndOrdersByName(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	point := arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int64, Nullable: true})
	have := arrow.NewSchema([]arrow.Field{
		{Name: "b", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "p", Type: point, Nullable: true},
		{Name: "l", Type: arrow.ListOf(point), Nullable: true},
		{Name: "m", Type: arrow.MapOf(arrow.BinaryTypes.String, point), Nullable: true},
	}, nil)
	rec := record(t, mem, have, `{"b":"one","p":{"x":1},"l":[{"x":2},null],"m":[{"key":"k","value":{"x":5}}]}
{"b":null,"p":null,"l":[],"m":[]}
{"b":"three","p":{"x":3},"l":null,"m":null}`)
	defer rec.Release()
	sliced := rec.NewSlice(1, 3) // offsets must survive
	defer sliced.Release()

	wide := arrow.StructOf(withID("5", "y", arrow.PrimitiveTypes.Float64, true), withID("4", "x", arrow.PrimitiveTypes.Int64, true))
	want := arrow.NewSchema([]arrow.Field{
		withID("1", "a", arrow.PrimitiveTypes.Int32, true),
		withID("2", "b", arrow.BinaryTypes.String, true),
		withID("3", "p", wide, true),
		withID("6", "l", arrow.ListOfField(withID("7", "element", wide, true)), true),
		withID("8", "m", arrow.MapOfFields(withID("9", "key", arrow.BinaryTypes.String, false), withID("10", "value", wide, true)), true),
	}, nil)

	for name, in := range map[string]arrow.RecordBatch{"whole": rec, "sliced": sliced} {
		t.Run(name, func(t *testing.T) {
			out, err := Conform(in, want, mem)
			require.NoError(t, err)
			defer out.Release()
			require.True(t, out.Schema().Equal(want))
			got, err := out.MarshalJSON()
			require.NoError(t, err)
			rows := `{"a":null,"b":null,"p":null,"l":[],"m":[]},
				{"a":null,"b":"three","p":{"x":3,"y":null},"l":null,"m":null}]`
			if name == "whole" {
				rows = `{"a":null,"b":"one","p":{"x":1,"y":null},"l":[{"x":2,"y":null},null],"m":[{"key":"k","value":{"x":5,"y":null}}]},` + rows
			}
			require.JSONEq(t, "["+rows, string(got))
		})
	}
}

func TestConformRefuses(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	schema := arrow.NewSchema([]arrow.Field{{Name: "s", Nullable: true, Type: arrow.StructOf(
		arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int64, Nullable: true})}}, nil)
	rec := record(t, mem, schema, `{"s":{"x":1}}`)
	defer rec.Release()
	for name, c := range map[string]struct {
		want arrow.Field
		says string
	}{
		"a column the table lacks": {arrow.Field{Name: "s", Nullable: true, Type: arrow.StructOf(
			arrow.Field{Name: "y", Type: arrow.PrimitiveTypes.Int64, Nullable: true})}, `"s.x" that the table's schema lacks`},
		"another type": {arrow.Field{Name: "s", Nullable: true, Type: arrow.StructOf(
			arrow.Field{Name: "x", Type: arrow.BinaryTypes.String, Nullable: true})}, `"s.x": the record holds int64, the table's schema utf8`},
		"a required column": {arrow.Field{Name: "r", Type: arrow.PrimitiveTypes.Int64}, `"r" is required`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Conform(rec, arrow.NewSchema([]arrow.Field{c.want}, nil), mem)
			require.ErrorContains(t, err, c.says)
		})
	}
}
