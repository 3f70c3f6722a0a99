package deltalog

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
)

// What the projection of one append costs in CPU, beside its one request.
func BenchmarkConvertAndProject(b *testing.B) {
	for _, columns := range []int{20, 1000} {
		b.Run(fmt.Sprintf("columns=%d", columns), func(b *testing.B) {
			var fields []iceberg.NestedField
			for i := range columns {
				fields = append(fields, field(i+1, fmt.Sprintf("column_%d", i), prim.Int64))
			}
			s := iceberg.NewSchema(0, fields...)
			b.ReportAllocs()
			for b.Loop() {
				schema, err := convertSchema(s, false)
				if err != nil {
					b.Fatal(err)
				}
				v := snapshot{ID: 1, Schema: schema, Operation: "append", Added: []file{{"a.parquet", 1, 1, "{}"}}}
				if _, err := encode(project(state{metaData: &MetaData{SchemaString: schema.JSON}, protocol: &Protocol{MinReaderVersion: 1, MinWriterVersion: 2}}, v, testOpts)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What a checkpoint costs; it is off the commit path.
func BenchmarkCheckpoint(b *testing.B) {
	for _, live := range []int{100, 5000} {
		b.Run(fmt.Sprintf("files=%d", live), func(b *testing.B) {
			st := emptyState()
			st.protocol, st.metaData = &Protocol{MinReaderVersion: 1, MinWriterVersion: 2}, &MetaData{SchemaString: "{}"}
			tail := newReplay("file:///w")
			for i := range live {
				tail.apply([]Action{{Add: &Add{Path: fmt.Sprintf("8c2f7c1e-part-%06d.parquet", i), PartitionValues: map[string]*string{}, Size: int64(i), Stats: fmt.Sprintf(`{"numRecords":%d,"minValues":{"id":%d},"maxValues":{"id":%d}}`, i, i, i)}}})
			}
			older := checkpointBytes(b, st, nil, tail)
			b.ReportAllocs()
			for b.Loop() {
				checkpointBytes(b, st, older, newReplay("file:///w"))
			}
			b.ReportMetric(float64(len(older)), "bytes")
		})
	}
}

func checkpointBytes(b *testing.B, st state, older []byte, tail *replay) []byte {
	b.Helper()
	w, err := newCheckpointWriter(memory.DefaultAllocator)
	if err != nil {
		b.Fatal(err)
	}
	defer w.release()
	if err := writeCheckpoint(b.Context(), w, st, older, tail, 0); err != nil {
		b.Fatal(err)
	}
	data, err := w.close()
	if err != nil {
		b.Fatal(err)
	}
	return data
}
