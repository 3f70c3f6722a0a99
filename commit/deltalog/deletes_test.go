package deltalog

import (
	"math"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"
)

// A delete applies by sequence number, partition and path (Iceberg spec, "Scan
// Planning"); what is left behind by a compaction must not hold the mirror.
func TestDeleteApplies(t *testing.T) {
	byF := iceberg.NewPartitionSpecID(1, iceberg.PartitionField{SourceIDs: []int{1}, FieldID: 1000, Name: "f", Transform: iceberg.IdentityTransform{}})
	plain := *iceberg.UnpartitionedSpec
	entry := func(spec iceberg.PartitionSpec, content iceberg.ManifestEntryContent, seq int64, partition any, change func(*iceberg.DataFileBuilder)) iceberg.ManifestEntry {
		values := map[int]any{}
		if spec.NumFields() > 0 {
			values[1000] = partition
		}
		b, err := iceberg.NewDataFileBuilder(spec, content, "m.parquet", iceberg.ParquetFile, values, nil, nil, 1, 1)
		require.NoError(t, err)
		if content == iceberg.EntryContentEqDeletes {
			b.EqualityFieldIDs([]int{1})
		}
		if change != nil {
			change(b)
		}
		return iceberg.NewManifestEntry(iceberg.EntryStatusADDED, ptr(int64(1)), &seq, &seq, b.Build())
	}
	pos, eq, data := iceberg.EntryContentPosDeletes, iceberg.EntryContentEqDeletes, iceberg.EntryContentData
	bounds := func(low, up string) func(*iceberg.DataFileBuilder) {
		return func(b *iceberg.DataFileBuilder) {
			b.LowerBoundValues(map[int][]byte{filePathFieldID: []byte(low)}).UpperBoundValues(map[int][]byte{filePathFieldID: []byte(up)})
		}
	}
	refers := func(path string) func(*iceberg.DataFileBuilder) {
		return func(b *iceberg.DataFileBuilder) { b.ReferencedDataFile(path) }
	}
	for name, c := range map[string]struct {
		del, data iceberg.ManifestEntry
		want      bool
	}{
		"position, older file":              {entry(plain, pos, 5, nil, nil), entry(plain, data, 4, nil, nil), true},
		"position, same commit":             {entry(plain, pos, 5, nil, nil), entry(plain, data, 5, nil, nil), true},
		"position, younger file":            {entry(plain, pos, 5, nil, nil), entry(plain, data, 6, nil, nil), false},
		"position, path in bounds":          {entry(plain, pos, 5, nil, bounds("a", "z")), entry(plain, data, 5, nil, nil), true},
		"position, path below":              {entry(plain, pos, 5, nil, bounds("n", "z")), entry(plain, data, 5, nil, nil), false},
		"position, path above":              {entry(plain, pos, 5, nil, bounds("a", "l")), entry(plain, data, 5, nil, nil), false},
		"position, names the file":          {entry(byF, pos, 5, "x", refers("m.parquet")), entry(byF, data, 5, "x", nil), true},
		"position, names another":           {entry(byF, pos, 5, "x", refers("n.parquet")), entry(byF, data, 5, "x", nil), false},
		"position, another partition":       {entry(byF, pos, 5, "x", nil), entry(byF, data, 5, "y", nil), false},
		"position, another spec":            {entry(plain, pos, 5, nil, nil), entry(byF, data, 5, "y", nil), false},
		"equality, older file":              {entry(plain, eq, 5, nil, nil), entry(plain, data, 4, nil, nil), true},
		"equality, same commit":             {entry(plain, eq, 5, nil, nil), entry(plain, data, 5, nil, nil), false},
		"equality, global over a partition": {entry(plain, eq, 5, nil, nil), entry(byF, data, 4, "x", nil), true},
		"equality, same partition":          {entry(byF, eq, 5, "x", nil), entry(byF, data, 4, "x", nil), true},
		"equality, partition of NaN":        {entry(byF, eq, 5, math.NaN(), nil), entry(byF, data, 4, math.NaN(), nil), true},
		"equality, another partition":       {entry(byF, eq, 5, "x", nil), entry(byF, data, 4, "y", nil), false},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, deleteApplies(c.del, c.data)) })
	}
}
