package output

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/managed-lakehouse/managed-lakehouse/backpressure"
	"github.com/managed-lakehouse/managed-lakehouse/commit"
)

func TestSummaryHasItsKeys(t *testing.T) {
	s := summaryOf(true, totals{commits: 42, rows: 4_200_000, refused: 3}, 15_000, 1, backpressure.For(850_300*time.Microsecond))
	var m map[string]any
	require.NoError(t, json.Unmarshal([]byte(s.String()), &m))
	require.Equal(t, map[string]any{
		"streamingMode": true, "totalCommits": 42.0, "totalRows": 4_200_000.0, "pendingRows": 15_000.0, "avgCommitLatency": "850.3ms",
		"refusedRows": 3.0, "tables": 1.0,
	}, m)
	require.Equal(t, "0.0ms", summaryOf(false, totals{}, 0, 0, backpressure.For(0)).AvgCommitLatency)
	require.Equal(t, "61000.0ms", millis(61*time.Second))
}

func TestReportNamesPlacesAndReaders(t *testing.T) {
	r := Report{
		Summary: Summary{TotalCommits: 1},
		Tables: tableReports(map[string]commit.Places{
			"web.events": {Iceberg: "file:///data/it%27s/web/events/iceberg", Delta: "file:///data/it%27s/web/events/delta"},
		}),
	}
	require.Equal(t, `{"streamingMode":false,"totalCommits":1,"totalRows":0,"pendingRows":0,"avgCommitLatency":"","refusedRows":0,"tables":0}

web.events
  iceberg    /data/it's/web/events/iceberg
  delta      /data/it's/web/events/delta
  DuckDB     INSTALL iceberg; LOAD iceberg; SELECT count(*) FROM iceberg_scan('/data/it''s/web/events/iceberg');
  pyiceberg  from pyiceberg.table import StaticTable; StaticTable.from_metadata("/data/it's/web/events/iceberg").scan().to_arrow()
  deltalake  from deltalake import DeltaTable; DeltaTable("/data/it's/web/events/delta").to_pyarrow_table()
  Spark      spark.read.format("delta").load("/data/it's/web/events/delta")
`, r.Format())
}

func TestReportOfIcebergAlone(t *testing.T) {
	r := Report{Tables: []TableReport{{Name: "a.b", Iceberg: "file:///w/a/b/iceberg"}}}
	require.NotContains(t, r.Format(), "deltalake")
	require.Contains(t, r.Format(), `spark.read.format("iceberg").load("file:///w/a/b/iceberg")`)
}

func TestReportOfManyTablesIsCutShort(t *testing.T) {
	r := Report{Tables: make([]TableReport, 200)}
	require.Contains(t, r.Format(), "... and 195 more tables")
}
