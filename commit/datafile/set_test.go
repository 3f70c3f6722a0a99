package datafile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore"
)

func newStore(t *testing.T) *objstore.Store {
	t.Helper()
	s, err := objstore.Open(t.Context(), objstore.Config{URL: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// wide has a column of every type that the project writes.
var wide = iceberg.NewSchema(0,
	iceberg.NestedField{ID: 1, Name: "i", Type: iceberg.PrimitiveTypes.Int32},
	iceberg.NestedField{ID: 2, Name: "l", Type: iceberg.PrimitiveTypes.Int64},
	iceberg.NestedField{ID: 3, Name: "f", Type: iceberg.PrimitiveTypes.Float32},
	iceberg.NestedField{ID: 4, Name: "d", Type: iceberg.PrimitiveTypes.Float64},
	iceberg.NestedField{ID: 5, Name: "s", Type: iceberg.PrimitiveTypes.String},
	iceberg.NestedField{ID: 6, Name: "b", Type: iceberg.PrimitiveTypes.Binary},
	iceberg.NestedField{ID: 7, Name: "t", Type: iceberg.PrimitiveTypes.Bool},
	iceberg.NestedField{ID: 8, Name: "day", Type: iceberg.PrimitiveTypes.Date},
	iceberg.NestedField{ID: 9, Name: "ts", Type: iceberg.PrimitiveTypes.Timestamp},
	iceberg.NestedField{ID: 10, Name: "tz", Type: iceberg.PrimitiveTypes.TimestampTz},
	iceberg.NestedField{ID: 11, Name: "small", Type: iceberg.DecimalTypeOf(9, 2)},
	iceberg.NestedField{ID: 12, Name: "big", Type: iceberg.DecimalTypeOf(38, 10)},
	iceberg.NestedField{ID: 13, Name: "o", Type: &iceberg.StructType{FieldList: []iceberg.NestedField{
		{ID: 14, Name: "x", Type: iceberg.PrimitiveTypes.Int64}, {ID: 15, Name: "nan", Type: iceberg.PrimitiveTypes.Float64}}}},
	iceberg.NestedField{ID: 16, Name: "list", Type: &iceberg.ListType{ElementID: 17, Element: iceberg.PrimitiveTypes.Int64}},
	iceberg.NestedField{ID: 18, Name: "map", Type: &iceberg.MapType{KeyID: 19, KeyType: iceberg.PrimitiveTypes.String,
		ValueID: 20, ValueType: iceberg.PrimitiveTypes.Float64}},
)

const wideRows = `{"i":-1,"l":9007199254740993,"f":1.5,"d":-2.25,"s":"é","b":"AAE=","t":true,"day":"1969-12-31","ts":"1969-12-31 23:59:59.999999","tz":"2024-02-29 12:00:00.000001Z","small":"-8.05","big":"1234567890123456789012345678.0123456789","o":{"x":7,"nan":1},"list":[1,null,3],"map":[{"key":"a","value":1.5}]}
{"i":null,"l":null,"f":null,"d":null,"s":"","b":"","t":null,"day":null,"ts":null,"tz":null,"small":null,"big":null,"o":null,"list":[],"map":[]}
{"i":3,"l":3,"f":3,"d":3,"s":null,"b":null,"t":false,"day":"9999-12-31","ts":"9999-12-31 23:59:59.999999","tz":"0001-01-01 00:00:00Z","small":"-5.00","big":"-0.0000000001","o":{"x":null,"nan":2},"list":null,"map":null}
`

// readBack reads with an allocator of its own: the library's delta decoder does
// not give its buffers back, and only what this package allocates is checked.
func readBack(t *testing.T, s *objstore.Store, key string) arrow.Table {
	t.Helper()
	mem := memory.DefaultAllocator
	in, err := s.OpenReader(t.Context(), key)
	require.NoError(t, err)
	defer in.Close()
	pq, err := file.NewParquetReader(in)
	require.NoError(t, err)
	defer pq.Close()
	r, err := pqarrow.NewFileReader(pq, pqarrow.ArrowReadProperties{}, mem)
	require.NoError(t, err)
	tbl, err := r.ReadTable(t.Context())
	require.NoError(t, err)
	return tbl
}

func TestSetRoundTripsEveryType(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	store := newStore(t)
	schema, err := table.SchemaToArrowSchema(wide, nil, true, false)
	require.NoError(t, err)
	rec := record(t, mem, schema, wideRows)
	defer rec.Release()
	set := NewSet(store, schema, nil, func(n int) string { return fmt.Sprintf("t/delta/f-%d.parquet", n) }, Options{Memory: mem})
	require.NoError(t, set.Write(t.Context(), rec))
	require.NoError(t, set.Write(t.Context(), rec))
	files, encode, err := set.Close(t.Context())
	require.NoError(t, err)
	require.Len(t, files, 1, "writes that follow each other share a file")
	require.Positive(t, encode)
	require.EqualValues(t, 6, files[0].Rows)
	st, err := store.Stat(t.Context(), files[0].Key)
	require.NoError(t, err)
	require.Equal(t, st.Size, files[0].Size)

	got := readBack(t, store, files[0].Key)
	defer got.Release()
	r := array.NewTableReader(got, 3)
	defer r.Release()
	for range 2 {
		require.True(t, r.Next())
		back, err := Conform(r.RecordBatch(), schema, mem)
		require.NoError(t, err)
		require.True(t, array.RecordEqual(rec, back), "want %s\ngot %s", rec, back)
		back.Release()
	}

	df, err := files[0].DataFile("file:///x/t/delta/f-0.parquet", wide, *iceberg.UnpartitionedSpec, nil, 2)
	require.NoError(t, err)
	require.EqualValues(t, 6, df.Count())
	require.EqualValues(t, 2, df.NullValueCounts()[1])
	require.Equal(t, int32(-1), int32(binary.LittleEndian.Uint32(df.LowerBoundValues()[1])))
	require.Equal(t, -2.25, math.Float64frombits(binary.LittleEndian.Uint64(df.LowerBoundValues()[4])))
	lower, err := iceberg.LiteralFromBytes(iceberg.DecimalTypeOf(9, 2), df.LowerBoundValues()[11])
	require.NoError(t, err)
	require.Equal(t, "-8.05", lower.String(), "a negative decimal is the lower one")
	require.EqualValues(t, 4, df.NullValueCounts()[14], "a NULL struct's fields are NULL")
}

func TestFloatsThatHaveNoBounds(t *testing.T) {
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "nan", Type: iceberg.PrimitiveTypes.Float64},
		iceberg.NestedField{ID: 2, Name: "inf", Type: iceberg.PrimitiveTypes.Float32},
		iceberg.NestedField{ID: 3, Name: "plain", Type: iceberg.PrimitiveTypes.Float64})
	as, err := table.SchemaToArrowSchema(schema, nil, true, false)
	require.NoError(t, err)
	b := array.NewRecordBuilder(memory.DefaultAllocator, as)
	defer b.Release()
	b.Field(0).(*array.Float64Builder).AppendValues([]float64{1, math.NaN(), math.NaN()}, []bool{true, true, false})
	b.Field(1).(*array.Float32Builder).AppendValues([]float32{1, float32(math.Inf(-1)), 2}, nil)
	b.Field(2).(*array.Float64Builder).AppendValues([]float64{1, 2, 3}, nil)
	rec := b.NewRecordBatch()
	set := NewSet(newStore(t), as, nil, func(int) string { return "t/delta/f.parquet" }, Options{})
	require.NoError(t, set.Write(t.Context(), rec))
	files, _, err := set.Close(t.Context())
	require.NoError(t, err)
	df, err := files[0].DataFile("f", schema, *iceberg.UnpartitionedSpec, nil, 2)
	require.NoError(t, err)
	require.Equal(t, map[int]int64{1: 1, 2: 0, 3: 0}, df.NaNValueCounts())
	require.Len(t, df.LowerBoundValues(), 1)
	require.Len(t, df.UpperBoundValues(), 1)
	require.Contains(t, df.UpperBoundValues(), 3)
	require.EqualValues(t, 1, df.NullValueCounts()[1])
}

func TestSetLanes(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{withID("1", "id", arrow.PrimitiveTypes.Int64, true)}, nil)
	rec := record(t, memory.DefaultAllocator, schema, strings.Repeat("{\"id\":1}\n", 500))
	store := newStore(t)
	set := NewSet(store, schema, nil, func(n int) string { return fmt.Sprintf("t/delta/f-%d.parquet", n) }, Options{Lanes: 3})
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() { require.NoError(t, set.Write(t.Context(), rec)) })
	}
	wg.Wait()
	files, _, err := set.Close(t.Context())
	require.NoError(t, err)
	require.LessOrEqual(t, len(files), 3)
	var rows int64
	for _, f := range files {
		rows += f.Rows
	}
	require.EqualValues(t, 40*500, rows)
}

func TestSetAbortAndFailureLeaveNothing(t *testing.T) {
	store := newStore(t)
	schema := arrow.NewSchema([]arrow.Field{withID("1", "id", arrow.PrimitiveTypes.Int64, true)}, nil)
	rec := record(t, memory.DefaultAllocator, schema, `{"id":1}`)
	other := record(t, memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "z", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil), `{"z":1}`)
	empty := func() {
		for o, err := range store.List(t.Context(), "", "") {
			require.NoError(t, err)
			t.Errorf("left behind: %s", o.Key)
		}
	}
	name := func(n int) string { return fmt.Sprintf("t/delta/f-%d.parquet", n) }
	set := NewSet(store, schema, nil, name, Options{})
	require.NoError(t, set.Write(t.Context(), rec))
	set.Abort(t.Context())
	empty()

	set = NewSet(store, schema, nil, name, Options{})
	require.NoError(t, set.Write(t.Context(), rec))
	require.ErrorContains(t, set.Write(t.Context(), other), `a column "z"`)
	_, _, err := set.Close(t.Context())
	require.ErrorContains(t, err, `a column "z"`)
	empty()

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("stop"))
	spec := iceberg.NewPartitionSpec(iceberg.PartitionField{SourceIDs: []int{1}, FieldID: 1000, Name: "id", Transform: iceberg.IdentityTransform{}})
	parts, err := NewPartitioner(spec, iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64}))
	require.NoError(t, err)
	set = NewSet(store, schema, parts, name, Options{})
	require.NoError(t, set.Write(t.Context(), rec))
	_, _, err = set.Close(ctx)
	require.Error(t, err)
	empty()
}

func TestPartitionsKeepOddValuesApart(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	ice := iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "k", Type: iceberg.PrimitiveTypes.String},
		iceberg.NestedField{ID: 2, Name: "o", Type: &iceberg.StructType{FieldList: []iceberg.NestedField{
			{ID: 3, Name: "ts", Type: iceberg.PrimitiveTypes.TimestampTz}}}},
		iceberg.NestedField{ID: 4, Name: "n", Type: iceberg.PrimitiveTypes.Int64},
	)
	schema, err := table.SchemaToArrowSchema(ice, nil, true, false)
	require.NoError(t, err)
	spec := iceberg.NewPartitionSpec(
		iceberg.PartitionField{SourceIDs: []int{1}, FieldID: 1000, Name: "k", Transform: iceberg.IdentityTransform{}},
		iceberg.PartitionField{SourceIDs: []int{3}, FieldID: 1001, Name: "day", Transform: iceberg.DayTransform{}})
	parts, err := NewPartitioner(spec, ice)
	require.NoError(t, err)
	keys := []string{`"a/b"`, `"50%"`, `" lead"`, `"é"`, `"k=v"`, `""`, `null`, `"<nil>"`, `"null"`}
	var lines strings.Builder
	for round := range 3 { // not clustered
		for i, k := range keys {
			fmt.Fprintf(&lines, `{"k":%s,"o":{"ts":"1969-12-31 23:00:0%dZ"},"n":%d}`+"\n", k, round, i)
		}
		lines.WriteString(`{"k":"a/b","o":null,"n":100}` + "\n")
	}
	rec := record(t, mem, schema, lines.String())
	defer rec.Release()
	store := newStore(t)
	set := NewSet(store, schema, parts, func(n int) string { return fmt.Sprintf("t/delta/p-%d.parquet", n) }, Options{Memory: mem, Lanes: 2})
	half := rec.NewSlice(0, 11)
	require.NoError(t, set.Write(t.Context(), half))
	half.Release()
	half = rec.NewSlice(11, rec.NumRows())
	require.NoError(t, set.Write(t.Context(), half))
	half.Release()
	files, _, err := set.Close(t.Context())
	require.NoError(t, err)
	require.Len(t, files, len(keys)+1)
	seen := map[string]bool{}
	for _, f := range files {
		require.EqualValues(t, 3, f.Rows)
		df, err := f.DataFile("file:///w/"+f.Key, ice, spec, nil, 2)
		require.NoError(t, err)
		p := df.Partition()
		seen[fmt.Sprintf("%#v/%v", p[1000], p[1001])] = true
		got := readBack(t, store, f.Key)
		names := got.Column(0).Data().Chunk(0)
		for i := range names.Len() {
			if p[1000] == nil {
				require.True(t, names.IsNull(i))
			} else {
				require.Equal(t, p[1000], names.(*array.String).Value(i))
			}
		}
		got.Release()
	}
	require.Len(t, seen, len(keys)+1)
	require.True(t, seen[`"a/b"/<nil>`], "a NULL struct is a NULL partition: %v", seen)
	require.True(t, seen[`"a/b"/-1`], "the day before 1970: %v", seen)
}

// Records of a set that is held for its partitions count with their own share of
// what they are slices of.
func TestSizeOfSlices(t *testing.T) {
	schema, err := table.SchemaToArrowSchema(wide, nil, true, false)
	require.NoError(t, err)
	rec := record(t, memory.DefaultAllocator, schema, strings.Repeat(wideRows+"\n", 100))
	whole := size(rec.Columns())
	require.Positive(t, whole)
	n := rec.NumRows()
	var parts int64
	for i := range n {
		parts += size(rec.NewSlice(i, i+1).Columns())
	}
	require.InEpsilon(t, whole, parts, 0.1)
	require.Zero(t, size(rec.NewSlice(n, n).Columns()))
}

func TestWideRowsAreNotHeldForLong(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{withID("1", "k", arrow.BinaryTypes.String, true)}, nil)
	ice := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "k", Type: iceberg.PrimitiveTypes.String})
	spec := iceberg.NewPartitionSpec(iceberg.PartitionField{SourceIDs: []int{1}, FieldID: 1000, Name: "k", Transform: iceberg.TruncateTransform{Width: 1}})
	parts, err := NewPartitioner(spec, ice)
	require.NoError(t, err)
	rec := record(t, memory.DefaultAllocator, schema, `{"k":"`+strings.Repeat("x", 9<<20)+`"}`)
	set := NewSet(newStore(t), schema, parts, func(n int) string { return fmt.Sprintf("t/delta/p-%d.parquet", n) }, Options{Lanes: 2})
	for range 9 {
		require.NoError(t, set.Write(t.Context(), rec))
		require.Less(t, set.bytes, int64(partitionBytes))
	}
	files, _, err := set.Close(t.Context())
	require.NoError(t, err)
	require.Len(t, files, 2, "those that were written when 64 MiB had come, and the rest")
}

func TestDecimalPartition(t *testing.T) {
	ice := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "d", Type: iceberg.DecimalTypeOf(9, 2)})
	spec := iceberg.NewPartitionSpec(iceberg.PartitionField{SourceIDs: []int{1}, FieldID: 1000, Name: "d", Transform: iceberg.TruncateTransform{Width: 100}})
	parts, err := NewPartitioner(spec, ice)
	require.NoError(t, err)
	b := array.NewDecimal128Builder(memory.DefaultAllocator, &arrow.Decimal128Type{Precision: 9, Scale: 2})
	b.Append(decimal128.FromI64(1065))
	b.Append(decimal128.FromI64(-1))
	b.Append(decimal128.FromI64(1099))
	rec := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "d", Type: b.Type(), Nullable: true}}, nil), []arrow.Array{b.NewArray()}, 3)
	got, err := parts.Split(rec)
	require.NoError(t, err)
	require.Len(t, got, 2)
	rows := map[string][]int32{}
	for _, g := range got {
		rows[fmt.Sprint(g.Values[1000])] = g.Rows
	}
	require.Equal(t, map[string][]int32{"10.00": {0, 2}, "-1.00": {1}}, rows)
}
