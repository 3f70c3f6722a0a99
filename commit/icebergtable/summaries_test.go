package icebergtable

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"
)

// Without bounds a manifest counts as holding nothing but NULLs: the empty string
// must be among them, in the summary of every manifest that has one, and in no other.
func TestSummariesHaveTheEmptyBounds(t *testing.T) {
	schema := iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "k", Type: iceberg.PrimitiveTypes.String},
		iceberg.NestedField{ID: 2, Name: "n", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 3, Name: "b", Type: iceberg.PrimitiveTypes.Binary})
	field := func(id int, name string) iceberg.PartitionField {
		return iceberg.PartitionField{SourceIDs: []int{id}, FieldID: 999 + id, Name: name, Transform: iceberg.IdentityTransform{}}
	}
	spec := iceberg.NewPartitionSpec(field(1, "k"), field(2, "n"), field(3, "b"))

	const snapshot, sequence = 7, int64(3)
	manifests := map[string][]byte{}
	var files []iceberg.ManifestFile
	manifest := func(by int64, partitions ...map[int]any) {
		var entries []iceberg.ManifestEntry
		for i, p := range partitions {
			df, err := iceberg.NewDataFileBuilder(spec, iceberg.EntryContentData, fmt.Sprintf("f%d.parquet", i), iceberg.ParquetFile, p, nil, nil, 1, 1)
			require.NoError(t, err)
			seq := sequence
			entries = append(entries, iceberg.NewManifestEntry(iceberg.EntryStatusADDED, &by, &seq, &seq, df.Build()))
		}
		var buf bytes.Buffer
		name := fmt.Sprintf("m%d.avro", len(files))
		f, err := iceberg.WriteManifest(name, &buf, 2, spec, schema, by, entries)
		require.NoError(t, err)
		manifests[name] = buf.Bytes()
		if by != snapshot {
			f = iceberg.NewManifestFile(2, name, int64(buf.Len()), 0, by).SequenceNum(1, 1).AddedFiles(1).AddedRows(1).Partitions(f.Partitions()).Build()
		}
		files = append(files, f)
	}
	all := func(k, n, b any) map[int]any { return map[int]any{1000: k, 1001: n, 1002: b} }
	manifest(snapshot, all("", int64(1), []byte{}), all("z", int64(2), []byte("z")))
	manifest(snapshot, all("", int64(1), []byte{}))
	manifest(snapshot, all("", nil, nil), all(nil, nil, nil))
	manifest(snapshot, all(nil, nil, nil))
	manifest(snapshot, all("a", int64(1), []byte("a")))
	manifest(5, all("", int64(1), []byte("a")), all("z", int64(1), []byte("a")))
	manifest(5, all(nil, nil, nil), all("", nil, nil))

	var list bytes.Buffer
	parent, seq := int64(6), sequence
	require.NoError(t, iceberg.WriteManifestList(2, &list, snapshot, &parent, &seq, 0, files))
	read := map[string]int{}
	data, err := wholeSummaries(list.Bytes(), func(location string) ([]byte, error) {
		read[location]++
		return manifests[location], nil
	})
	require.NoError(t, err)
	got, err := iceberg.ReadManifestList(bytes.NewReader(data))
	require.NoError(t, err)
	var texts [][]string
	for _, m := range got {
		var fields []string
		for _, p := range m.Partitions() {
			show := func(b *[]byte) string {
				if b == nil {
					return "-"
				}
				return fmt.Sprintf("%q", *b)
			}
			fields = append(fields, fmt.Sprintf("%t %s %s", p.ContainsNull, show(p.LowerBound), show(p.UpperBound)))
		}
		texts = append(texts, fields)
	}
	const one, two = `"\x01\x00\x00\x00\x00\x00\x00\x00"`, `"\x02\x00\x00\x00\x00\x00\x00\x00"`
	require.Equal(t, [][]string{
		{`false "" "z"`, "false " + one + " " + two, `false "" "z"`},
		{`false "" ""`, "false " + one + " " + one, `false "" ""`},
		{`true "" ""`, "true - -", "true - -"},
		{"true - -", "true - -", "true - -"},
		{`false "a" "a"`, "false " + one + " " + one, `false "a" "a"`},
		{`false "" "z"`, "false " + one + " " + one, `false "a" "a"`},
		{"true - -", "true - -", "true - -"}, // an old one was looked at when it was new
	}, texts)
	require.Zero(t, read["m0.avro"]+read["m1.avro"]+read["m4.avro"]+read["m6.avro"], "manifests are read in case of doubt only: %v", read)

	before, err := iceberg.ReadManifestList(bytes.NewReader(list.Bytes()))
	require.NoError(t, err)
	for i := range before {
		require.Equal(t, before[i].FilePath(), got[i].FilePath())
		require.Equal(t, before[i].SequenceNum(), got[i].SequenceNum())
		require.Equal(t, before[i].SnapshotID(), got[i].SnapshotID())
		require.Equal(t, before[i].AddedRows(), got[i].AddedRows())
	}
	_, a, err := decodeList(list.Bytes())
	require.NoError(t, err)
	_, b, err := decodeList(data)
	require.NoError(t, err)
	for _, key := range []string{"avro.schema", "format-version", "snapshot-id", "parent-snapshot-id", "sequence-number"} {
		require.Equal(t, string(a.Metadata()[key]), string(b.Metadata()[key]), key)
	}

	again, err := wholeSummaries(data, func(location string) ([]byte, error) { return manifests[location], nil })
	require.NoError(t, err)
	require.Equal(t, data, again, "nothing is left to do")
	broken := errors.New("broken")
	_, err = wholeSummaries(list.Bytes(), func(string) ([]byte, error) { return nil, broken })
	require.ErrorIs(t, err, broken)
}
