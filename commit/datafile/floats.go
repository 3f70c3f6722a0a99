package datafile

import (
	"maps"
	"math"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
)

// fieldIDKey is the Arrow field metadata that carries an Iceberg field id.
const fieldIDKey = "PARQUET:field_id"

// fieldID is the Iceberg field id of f, or 0.
func fieldID(f arrow.Field) int {
	v, ok := f.Metadata.GetValue(fieldIDKey)
	if !ok {
		return 0
	}
	id, err := strconv.Atoi(v)
	if err != nil {
		return 0
	}
	return id
}

// floatStats counts, by field id, what Parquet statistics do not tell: NaNs,
// which they leave out of the bounds, and infinities, which no JSON can hold.
type floatStats struct {
	nans map[int]int64
	infs map[int]bool
}

func newFloatStats() floatStats {
	return floatStats{nans: map[int]int64{}, infs: map[int]bool{}}
}

func (s floatStats) observe(fields []arrow.Field, cols []arrow.Array) {
	for i, f := range fields {
		s.observeArray(f, cols[i])
	}
}

func (s floatStats) observeArray(f arrow.Field, a arrow.Array) {
	switch a := a.(type) {
	case *array.Float64:
		countFloats(s, fieldID(f), a.Float64Values(), a)
	case *array.Float32:
		countFloats(s, fieldID(f), a.Float32Values(), a)
	case *array.Struct:
		st := f.Type.(*arrow.StructType)
		for i, child := range st.Fields() {
			s.observeArray(child, a.Field(i))
		}
	}
	// Elements of lists and maps have no bounds in either format.
}

func countFloats[F float32 | float64](s floatStats, id int, values []F, a arrow.Array) {
	var nans int64
	inf := false
	for i, v := range values {
		x := float64(v)
		if x-x == 0 { // finite
			continue
		}
		if a.IsNull(i) {
			continue
		}
		if math.IsNaN(x) {
			nans++
		} else {
			inf = true
		}
	}
	s.nans[id] += nans
	if inf {
		s.infs[id] = true
	}
}

// apply returns df with the NaN counts, and without the bounds of columns that
// hold NaNs or infinities.
func (s floatStats) apply(df iceberg.DataFile, spec iceberg.PartitionSpec, logical map[int]string) (iceberg.DataFile, error) {
	if len(s.nans) == 0 {
		return df, nil
	}
	lower, upper := maps.Clone(df.LowerBoundValues()), maps.Clone(df.UpperBoundValues())
	for id, n := range s.nans {
		if n > 0 || s.infs[id] {
			delete(lower, id)
			delete(upper, id)
		}
	}
	b, err := iceberg.NewDataFileBuilder(spec, df.ContentType(), df.FilePath(), df.FileFormat(),
		df.Partition(), logical, nil, df.Count(), df.FileSizeBytes())
	if err != nil {
		return nil, err
	}
	b.ColumnSizes(df.ColumnSizes()).ValueCounts(df.ValueCounts()).NullValueCounts(df.NullValueCounts()).
		NaNValueCounts(s.nans).SplitOffsets(df.SplitOffsets())
	if len(lower) > 0 {
		b.LowerBoundValues(lower)
	}
	if len(upper) > 0 {
		b.UpperBoundValues(upper)
	}
	if id := df.SortOrderID(); id != nil {
		b.SortOrderID(*id)
	}
	return b.Build(), nil
}
