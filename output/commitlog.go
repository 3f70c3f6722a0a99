package output

import (
	"time"

	"github.com/managed-lakehouse/managed-lakehouse/arrowconv"
	"github.com/managed-lakehouse/managed-lakehouse/backpressure"
	"github.com/managed-lakehouse/managed-lakehouse/commit"
)

// logCommit tells of one commit.
func (g *group) logCommit(e *epoch, res commit.Result, latency time.Duration) {
	args := []any{
		"table", e.table.name, "trigger", string(e.why), "rows", res.Rows, "files", res.Files, "bytes", res.Bytes,
		"snapshot", res.SnapshotID, "took", latency.Round(100 * time.Microsecond).String(),
	}
	if res.DeltaVersion >= 0 {
		args = append(args, "delta_version", res.DeltaVersion)
	}
	if res.DeltaLag > 0 {
		args = append(args, "delta_lag", res.DeltaLag)
	}
	g.cfg.Log.Info("committed", args...)
}

// logLevel tells of a backpressure level that was entered or left.
func (g *group) logLevel(before backpressure.Level, now backpressure.Profile) {
	if before == now.Level {
		return
	}
	args := []any{"from", before.String(), "to", now.Level.String(), "batch_size", now.BatchSize, "average_commit_latency", millis(now.AvgCommitLatency)}
	if now.Level == backpressure.Heavy {
		g.cfg.Log.Warn("backpressure: commits are slow; records are made smaller", args...)
		return
	}
	g.cfg.Log.Info("backpressure: level changed", args...)
}

// logRenames tells of fields that are stored under another name, each once.
func (g *group) logRenames(t *tableState, renamed []arrowconv.Rename) {
	for _, r := range renamed {
		g.cfg.Log.Info("a field has a name that a Delta table cannot hold; it is stored under another", "table", t.name, "field", r.From, "column", r.To)
	}
}
