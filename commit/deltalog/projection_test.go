package deltalog

import (
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func text(t *testing.T, actions []Action) string {
	t.Helper()
	data, err := encode(actions)
	require.NoError(t, err)
	back, err := decode(data)
	require.NoError(t, err)
	again, err := encode(back)
	require.NoError(t, err)
	require.Equal(t, string(data), string(again), "what is written reads back")
	return string(data)
}

func testView(t *testing.T, op string) snapshot {
	t.Helper()
	schema, err := convertSchema(iceberg.NewSchema(0, field(1, "id", prim.Int64)), false)
	require.NoError(t, err)
	return snapshot{TableUUID: uuid.MustParse(testUUID), ID: 9007199254740993, Sequence: 3, Timestamp: 1714564800123, Operation: op, Schema: schema}
}

var testOpts = projectOptions{EngineInfo: "test/1"}

// shown is a state whose table is already described.
func shown(t *testing.T) state {
	t.Helper()
	return emptyState().apply(0, project(emptyState(), testView(t, "append"), testOpts))
}

func TestFirstVersionGolden(t *testing.T) {
	v := testView(t, "append")
	v.Added = []file{{"b.parquet", 20, 2, `{"numRecords":2}`}, {"a b.parquet", 10, 1, `{"numRecords":1}`}}
	require.Equal(t, strings.Join([]string{
		`{"commitInfo":{"timestamp":1714564800123,"operation":"WRITE","operationParameters":{"mode":"Append","partitionBy":"[]"},"isBlindAppend":true,"operationMetrics":{"numFiles":"2","numOutputBytes":"30","numOutputRows":"3"},"engineInfo":"test/1","icebergSnapshotId":9007199254740993,"icebergSequenceNumber":3}}`,
		`{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}`,
		`{"metaData":{"id":"b01b3b20-2c76-5abf-9330-bd74c0344cb0","description":"Mirror of an Iceberg table. Do not write to it: changes belong into the Iceberg table.","format":{"provider":"parquet","options":{}},"schemaString":"{\"type\":\"struct\",\"fields\":[{\"name\":\"id\",\"type\":\"long\",\"nullable\":true,\"metadata\":{\"iceberg.fieldId\":1}}]}","partitionColumns":[],"configuration":{},"createdTime":1714564800123}}`,
		`{"txn":{"appId":"iceberg-6f1b0a52-9f5e-4f1c-8d3b-0f2f7f6f0a11","version":3,"lastUpdated":1714564800123}}`,
		`{"add":{"path":"a%20b.parquet","partitionValues":{},"size":10,"modificationTime":1714564800123,"dataChange":true,"stats":"{\"numRecords\":1}"}}`,
		`{"add":{"path":"b.parquet","partitionValues":{},"size":20,"modificationTime":1714564800123,"dataChange":true,"stats":"{\"numRecords\":2}"}}`,
		"",
	}, "\n"), text(t, project(emptyState(), v, testOpts)))
}

func TestVersionGoldens(t *testing.T) {
	a, b, c := file{"a.parquet", 10, 1, ""}, file{"b.parquet", 20, 2, ""}, file{"c.parquet", 30, 3, ""}
	for op, c := range map[string]struct {
		added, removed []file
		want           []string
	}{
		"append": {nil, nil, []string{
			`{"commitInfo":{"timestamp":1714564800123,"operation":"WRITE","operationParameters":{"mode":"Append","partitionBy":"[]"},"isBlindAppend":true,"operationMetrics":{"numFiles":"0","numOutputBytes":"0","numOutputRows":"0"},"engineInfo":"test/1","icebergSnapshotId":9007199254740993,"icebergSequenceNumber":3}}`,
			`TXN`}},
		"replace": {[]file{c}, []file{b, a}, []string{
			`{"commitInfo":{"timestamp":1714564800123,"operation":"OPTIMIZE","operationParameters":{"predicate":"[]"},"isBlindAppend":false,"operationMetrics":{"numAddedBytes":"30","numAddedFiles":"1","numRemovedBytes":"30","numRemovedFiles":"2"},"engineInfo":"test/1","icebergSnapshotId":9007199254740993,"icebergSequenceNumber":3}}`,
			`TXN`,
			`{"remove":{"path":"a.parquet","deletionTimestamp":1714564800123,"dataChange":false,"extendedFileMetadata":true,"partitionValues":{},"size":10}}`,
			`{"remove":{"path":"b.parquet","deletionTimestamp":1714564800123,"dataChange":false,"extendedFileMetadata":true,"partitionValues":{},"size":20}}`,
			`{"add":{"path":"c.parquet","partitionValues":{},"size":30,"modificationTime":1714564800123,"dataChange":false}}`}},
		"overwrite": {[]file{c, b}, []file{b, a}, []string{
			`{"commitInfo":{"timestamp":1714564800123,"operation":"WRITE","operationParameters":{"mode":"Overwrite","partitionBy":"[]"},"isBlindAppend":false,"operationMetrics":{"numFiles":"1","numOutputBytes":"30","numOutputRows":"3","numRemovedBytes":"10","numRemovedFiles":"1"},"engineInfo":"test/1","icebergSnapshotId":9007199254740993,"icebergSequenceNumber":3}}`,
			`TXN`,
			`{"remove":{"path":"a.parquet","deletionTimestamp":1714564800123,"dataChange":true,"extendedFileMetadata":true,"partitionValues":{},"size":10}}`,
			`{"add":{"path":"c.parquet","partitionValues":{},"size":30,"modificationTime":1714564800123,"dataChange":true}}`}},
		"delete": {nil, []file{a}, []string{
			`{"commitInfo":{"timestamp":1714564800123,"operation":"DELETE","operationParameters":{"predicate":"[]"},"isBlindAppend":false,"operationMetrics":{"numFiles":"0","numOutputBytes":"0","numOutputRows":"0","numRemovedBytes":"10","numRemovedFiles":"1"},"engineInfo":"test/1","icebergSnapshotId":9007199254740993,"icebergSequenceNumber":3}}`,
			`TXN`,
			`{"remove":{"path":"a.parquet","deletionTimestamp":1714564800123,"dataChange":true,"extendedFileMetadata":true,"partitionValues":{},"size":10}}`}},
	} {
		t.Run(op, func(t *testing.T) {
			v := testView(t, op)
			v.Added, v.Removed = c.added, c.removed
			want := strings.Join(c.want, "\n") + "\n"
			want = strings.ReplaceAll(want, "TXN", `{"txn":{"appId":"iceberg-6f1b0a52-9f5e-4f1c-8d3b-0f2f7f6f0a11","version":3,"lastUpdated":1714564800123}}`)
			require.Equal(t, want, text(t, project(shown(t), v, testOpts)))
		})
	}
}

func TestDifferenceGolden(t *testing.T) {
	have := []liveFile{
		{"a.parquet", &Add{Path: "a.parquet", PartitionValues: map[string]*string{}, Size: 10}},
		{"b.parquet", &Add{Path: "b.parquet", PartitionValues: map[string]*string{}, Size: 20}},
		{"c.parquet", &Add{Path: "c.parquet", PartitionValues: map[string]*string{}, Size: 30, DeletionVector: &DeletionVector{StorageType: "u", PathOrInlineDv: "x", SizeInBytes: 1, Cardinality: 1}}},
	}
	live := []file{{"d.parquet", 40, 4, ""}, {"b.parquet", 20, 2, ""}, {"c.parquet", 30, 3, ""}}
	require.Equal(t, strings.Join([]string{
		`{"commitInfo":{"timestamp":1714564800123,"operation":"WRITE","operationParameters":{"description":"difference of live file sets","mode":"Overwrite","partitionBy":"[]"},"isBlindAppend":false,"operationMetrics":{"numFiles":"2","numOutputBytes":"70","numOutputRows":"7","numRemovedFiles":"2"},"engineInfo":"test/1","icebergSnapshotId":9007199254740993,"icebergSequenceNumber":3,"icebergView":{"lastSequenceNumber":7,"lastUpdated":99}}}`,
		`{"txn":{"appId":"iceberg-6f1b0a52-9f5e-4f1c-8d3b-0f2f7f6f0a11","version":3,"lastUpdated":1714564800123}}`,
		`{"remove":{"path":"a.parquet","deletionTimestamp":1714564800123,"dataChange":true,"extendedFileMetadata":true,"partitionValues":{},"size":10}}`,
		`{"remove":{"path":"c.parquet","deletionTimestamp":1714564800123,"dataChange":true,"extendedFileMetadata":true,"partitionValues":{},"size":30,"deletionVector":{"storageType":"u","pathOrInlineDv":"x","sizeInBytes":1,"cardinality":1}}}`,
		`{"add":{"path":"c.parquet","partitionValues":{},"size":30,"modificationTime":1714564800123,"dataChange":true}}`,
		`{"add":{"path":"d.parquet","partitionValues":{},"size":40,"modificationTime":1714564800123,"dataChange":true}}`,
		"",
	}, "\n"), text(t, projectDifference(shown(t), have, testView(t, "append"), live, IcebergView{7, 99}, testOpts)))
}

func TestGuard(t *testing.T) {
	actions := project(emptyState(), testView(t, "append"), projectOptions{Guard: true})
	require.Equal(t, &Protocol{MinReaderVersion: 1, MinWriterVersion: 7, WriterFeatures: []string{"appendOnly", "invariants", "managedLakehouseMirror"}}, actions[1].Protocol)
	// An existing table gets it with its next version, and never loses it.
	actions = project(shown(t), testView(t, "append"), projectOptions{Guard: true})
	require.NotNil(t, actions[1].Protocol)
	st := shown(t).apply(1, actions)
	for _, a := range project(st, testView(t, "append"), projectOptions{}) {
		require.Nil(t, a.Protocol)
	}
}

func TestDecodeTakesWhatItDoesNotKnow(t *testing.T) {
	got, err := decode([]byte(`{"commitInfo":{"timestamp":1,"operationParameters":{"a":[1]},"operationMetrics":{"b":2},"icebergless":true}}` + "\r\n\n" + `{"cdc":{"path":"x"}}` + "\n" + `{"add":{"path":"p","partitionValues":{"a":null,"b":"c"},"size":1,"modificationTime":2,"dataChange":true,"baseRowId":3}}`))
	require.NoError(t, err)
	require.Len(t, got, 3)
	require.Equal(t, Action{}, got[1])
	require.Equal(t, map[string]*string{"a": nil, "b": ptr("c")}, got[2].Add.PartitionValues)
}
