package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPrometheusExporter(t *testing.T) {
	p := newPromExporter(false)
	p.NewCounterCtor("lakehouse_commits", "label", "path", "table", "trigger")("", "root.output", "web.events", "rows").Incr(3)
	p.NewCounterCtor("lakehouse_commits", "label", "path", "table", "trigger")("", "root.output", "web.events", "rows").Incr(2)
	// One name with other labels is usual in Benthos.
	p.NewCounterCtor("lakehouse_commits", "label", "path", "stream", "table", "trigger")("", "root.output", "s", "web.events", "idle").Incr(1)
	p.NewTimerCtor("lakehouse_commit_latency_ns", "phase")("iceberg").Timing(1_500_000_000)
	p.NewGaugeCtor("odd-name.here")().Set(7)

	rec := httptest.NewRecorder()
	p.HandlerFunc()(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	body := rec.Body.String()
	require.Equal(t, http.StatusOK, rec.Code, body)
	require.Contains(t, body, `lakehouse_commits{label="",path="root.output",table="web.events",trigger="rows"} 5`)
	require.Contains(t, body, `lakehouse_commits{label="",path="root.output",stream="s",table="web.events",trigger="idle"} 1`)
	require.Contains(t, body, `lakehouse_commit_latency_seconds_bucket{phase="iceberg",le="1"} 0`)
	require.Contains(t, body, `lakehouse_commit_latency_seconds_bucket{phase="iceberg",le="2"} 1`)
	require.Contains(t, body, `lakehouse_commit_latency_seconds_sum{phase="iceberg"} 1.5`)
	require.Contains(t, body, "odd_name_here 7")
}
