package output

import (
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/managed-lakehouse/managed-lakehouse/backpressure"
	"github.com/managed-lakehouse/managed-lakehouse/commit"
)

// meter holds the output's metrics. A nil meter counts nothing. Times are in
// nanoseconds, as Benthos has them; the Prometheus exporter of the binary turns a
// name that ends in `_ns` into a histogram of seconds.
type meter struct {
	commits   *service.MetricCounter
	rows      *service.MetricCounter
	rejected  *service.MetricCounter
	files     *service.MetricCounter
	bytes     *service.MetricCounter
	conflicts *service.MetricCounter
	retries   *service.MetricCounter
	latency   *service.MetricTimer
	pendRows  *service.MetricGauge
	pendBytes *service.MetricGauge
	batchSize *service.MetricGauge
	level     *service.MetricGauge
	deltaLag  *service.MetricGauge
}

func newMeter(m *service.Metrics) *meter {
	n := &meter{
		commits:   m.NewCounter("lakehouse_commits", "table", "trigger"),
		rows:      m.NewCounter("lakehouse_rows", "table"),
		rejected:  m.NewCounter("lakehouse_rows_refused", "table", "reason"),
		files:     m.NewCounter("lakehouse_files_written", "table"),
		bytes:     m.NewCounter("lakehouse_bytes_written", "table"),
		conflicts: m.NewCounter("lakehouse_commit_conflicts", "table"),
		retries:   m.NewCounter("lakehouse_commit_retries", "table"),
		latency:   m.NewTimer("lakehouse_commit_latency_ns", "table", "phase"),
		pendRows:  m.NewGauge("lakehouse_pending_rows"),
		pendBytes: m.NewGauge("lakehouse_pending_bytes"),
		batchSize: m.NewGauge("lakehouse_batch_size"),
		level:     m.NewGauge("lakehouse_backpressure_level"),
		deltaLag:  m.NewGauge("lakehouse_delta_lag_versions", "table"),
	}
	n.profile(backpressure.For(0))
	n.pending(0, 0)
	return n
}

// committed counts one commit. Latency is from the seal to the resolution; the
// phases are the parts of it that commit reports (encode: processor time over all
// files, much of it before the seal).
func (m *meter) committed(table string, why reason, res commit.Result, latency time.Duration, p backpressure.Profile) {
	if m == nil {
		return
	}
	m.commits.Incr(1, table, string(why))
	m.rows.Incr(res.Rows, table)
	m.files.Incr(int64(res.Files), table)
	m.bytes.Incr(res.Bytes, table)
	if res.Conflicts > 0 {
		m.conflicts.Incr(int64(res.Conflicts), table)
	}
	if res.Retries > 0 {
		m.retries.Incr(int64(res.Retries), table)
	}
	m.latency.Timing(int64(latency), table, "total")
	m.latency.Timing(int64(res.Timing.Encode), table, "encode")
	m.latency.Timing(int64(res.Timing.Upload), table, "upload")
	m.latency.Timing(int64(res.Timing.Iceberg), table, "iceberg")
	m.latency.Timing(int64(res.Timing.Delta), table, "delta")
	m.deltaLag.Set(int64(res.DeltaLag), table)
	m.profile(p)
}

func (m *meter) profile(p backpressure.Profile) {
	if m == nil {
		return
	}
	m.batchSize.Set(int64(p.BatchSize))
	m.level.Set(int64(p.Level))
}

func (m *meter) refused(table, reason string, rows int64) {
	if m != nil {
		m.rejected.Incr(rows, table, reason)
	}
}

func (m *meter) retry(table string) {
	if m != nil {
		m.retries.Incr(1, table)
	}
}

func (m *meter) pending(rows, bytes int64) {
	if m != nil {
		m.pendRows.Set(rows)
		m.pendBytes.Set(bytes)
	}
}
