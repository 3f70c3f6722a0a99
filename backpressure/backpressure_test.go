package backpressure

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestForIsExactAtTheBoundaries(t *testing.T) {
	for _, c := range []struct {
		avg   time.Duration
		level Level
		size  int
	}{
		{0, Normal, 10_000},
		{2*time.Second - 1, Normal, 10_000},
		{2 * time.Second, Moderate, 5_000},
		{3 * time.Second, Moderate, 5_000},
		{5 * time.Second, Moderate, 5_000},
		{5*time.Second + 1, Heavy, 2_000},
		{time.Hour, Heavy, 2_000},
	} {
		t.Run(c.avg.String(), func(t *testing.T) {
			require.Equal(t, Profile{Level: c.level, BatchSize: c.size, AvgCommitLatency: c.avg}, For(c.avg))
		})
	}
}

func TestLevelNames(t *testing.T) {
	require.Equal(t, []string{"normal", "moderate", "heavy"},
		[]string{Normal.String(), Moderate.String(), Heavy.String()})
}

func TestTrackerStartsNormal(t *testing.T) {
	var tr Tracker
	require.Equal(t, Profile{Level: Normal, BatchSize: 10_000}, tr.Profile())
}

func TestTrackerWarmsUpByThePlainMean(t *testing.T) {
	var tr Tracker
	_, after := tr.Observe(4 * time.Second)
	require.Equal(t, 4*time.Second, after.AvgCommitLatency, "the first commit is the average")
	_, after = tr.Observe(2 * time.Second)
	require.Equal(t, 3*time.Second, after.AvgCommitLatency)
	_, after = tr.Observe(6 * time.Second)
	require.Equal(t, 4*time.Second, after.AvgCommitLatency)
	// The fourth weighs 0.3, not a quarter.
	_, after = tr.Observe(14 * time.Second)
	require.Equal(t, 7*time.Second, after.AvgCommitLatency)
}

func TestTrackerIsExactWhenEveryCommitTakesTheBoundary(t *testing.T) {
	for latency, level := range map[time.Duration]Level{2 * time.Second: Moderate, 5 * time.Second: Moderate} {
		var tr Tracker
		for range 50 {
			_, p := tr.Observe(latency)
			require.Equal(t, level, p.Level)
			require.Equal(t, latency, p.AvgCommitLatency)
		}
	}
}

func TestTrackerClimbsAndRecovers(t *testing.T) {
	var tr Tracker
	observe := func(latency time.Duration, times int) Profile {
		var p Profile
		for range times {
			_, p = tr.Observe(latency)
		}
		return p
	}
	require.Equal(t, Normal, observe(time.Second, 10).Level)
	require.Equal(t, Moderate, observe(3*time.Second, 10).Level)
	require.Equal(t, Heavy, observe(6*time.Second, 10).Level)
	require.Equal(t, Moderate, observe(3*time.Second, 10).Level)
	require.Equal(t, Normal, observe(50*time.Millisecond, 10).Level)
}

func TestObserveReportsTheChangeOfLevel(t *testing.T) {
	var tr Tracker
	before, after := tr.Observe(9 * time.Second)
	require.Equal(t, Normal, before.Level)
	require.Equal(t, Heavy, after.Level)
	before, after = tr.Observe(9 * time.Second)
	require.Equal(t, Heavy, before.Level)
	require.Equal(t, Heavy, after.Level)
}

func TestTrackerTakesConcurrentCommits(t *testing.T) {
	var tr Tracker
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				tr.Observe(3 * time.Second)
				tr.Profile()
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 4000, tr.state.Load().commits)
	require.Equal(t, 3*time.Second, tr.Profile().AvgCommitLatency)
}
