package datafile

import (
	"hash/maphash"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet"
)

// sampleRows is how many values of a column decide its encoding.
const sampleRows = 2048

// encodings chooses each leaf column's encoding from the first record of a
// file. Integers and timestamps are delta-encoded, unless few values repeat;
// other columns get a dictionary where at least half of the sample repeats:
// a dictionary on everything costs a fifth to two fifths of the encoding speed.
func encodings(rec arrow.RecordBatch) []parquet.WriterProperty {
	var out []parquet.WriterProperty
	for i, f := range rec.Schema().Fields() {
		out = columnEncoding(out, f.Name, rec.Column(i))
	}
	return out
}

func columnEncoding(out []parquet.WriterProperty, path string, a arrow.Array) []parquet.WriterProperty {
	switch a := a.(type) {
	case *array.Struct:
		for i, f := range a.DataType().(*arrow.StructType).Fields() {
			out = columnEncoding(out, path+"."+f.Name, a.Field(i))
		}
		return out
	case *array.Map:
		out = columnEncoding(out, path+".key_value.key", a.Keys())
		return columnEncoding(out, path+".key_value.value", a.Items())
	case *array.List:
		return columnEncoding(out, path+".list.element", a.ListValues())
	}
	switch a.DataType().ID() {
	case arrow.INT32, arrow.INT64, arrow.TIMESTAMP, arrow.DATE32:
		out = append(out, parquet.WithDictionaryFor(path, false), parquet.WithEncodingFor(path, parquet.Encodings.DeltaBinaryPacked))
	case arrow.BOOL:
		out = append(out, parquet.WithDictionaryFor(path, false))
	default:
		out = append(out, parquet.WithDictionaryFor(path, repeats(a)))
	}
	return out
}

var seed = maphash.MakeSeed()

// repeats tells whether at least half of a sample of a's values are repeated.
func repeats(a arrow.Array) bool {
	n := min(a.Len(), sampleRows)
	if n == 0 {
		return true
	}
	distinct := make(map[uint64]struct{}, n)
	values := 0
	for i := range n {
		if a.IsNull(i) {
			continue
		}
		values++
		var h uint64
		switch a := a.(type) {
		case *array.String:
			h = maphash.String(seed, a.Value(i))
		case *array.Binary:
			h = maphash.Bytes(seed, a.Value(i))
		case *array.Float64:
			h = maphash.Comparable(seed, a.Value(i))
		case *array.Float32:
			h = maphash.Comparable(seed, a.Value(i))
		case *array.Decimal128:
			h = maphash.Comparable(seed, a.Value(i))
		default:
			return false
		}
		distinct[h] = struct{}{}
	}
	return len(distinct)*2 <= values
}
