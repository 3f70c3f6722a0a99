package output

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/managed-lakehouse/managed-lakehouse/backpressure"
)

// Summary is what an output has done so far; the first five keys are fixed.
type Summary struct {
	StreamingMode    bool   `json:"streamingMode"`
	TotalCommits     int64  `json:"totalCommits"` // Iceberg snapshots
	TotalRows        int64  `json:"totalRows"`    // committed
	PendingRows      int64  `json:"pendingRows"`  // accepted and not committed
	AvgCommitLatency string `json:"avgCommitLatency"`

	RefusedRows int64 `json:"refusedRows"`
	Tables      int   `json:"tables"` // that were committed to
}

// String is the summary as one line of JSON.
func (s Summary) String() string {
	b, err := json.Marshal(s)
	if err != nil { // numbers and strings always have a JSON form
		return fmt.Sprintf("%+v", struct{ TotalRows int64 }{s.TotalRows})
	}
	return string(b)
}

// millis is a duration as the summary has it: milliseconds with one decimal.
func millis(d time.Duration) string {
	return fmt.Sprintf("%.1fms", float64(d)/float64(time.Millisecond))
}

func summaryOf(streaming bool, t totals, pending int64, tables int, p backpressure.Profile) Summary {
	return Summary{
		StreamingMode:    streaming,
		TotalCommits:     t.commits,
		TotalRows:        t.rows,
		PendingRows:      pending,
		AvgCommitLatency: millis(p.AvgCommitLatency),
		RefusedRows:      t.refused,
		Tables:           tables,
	}
}

// summary is the group's summary at this moment.
func (g *group) summary() Summary {
	g.mu.Lock()
	defer g.mu.Unlock()
	return summaryOf(g.cfg.Trigger.Streaming, g.totals, g.trigger.rows, len(g.touched), g.tracker.Profile())
}
