package backpressure

import "time"

// Level says how far commits fall behind.
type Level int

// The levels, in rising order of average commit latency.
const (
	Normal Level = iota
	Moderate
	Heavy
)

// String is the level's name in lower case.
func (l Level) String() string {
	switch l {
	case Moderate:
		return "moderate"
	case Heavy:
		return "heavy"
	default:
		return "normal"
	}
}

// The boundaries between levels: both belong to [Moderate].
const (
	ModerateFrom = 2 * time.Second
	HeavyAbove   = 5 * time.Second
)

// Profile is what an output asks of its append path at one moment.
type Profile struct {
	Level            Level
	BatchSize        int           // rows a record at most
	AvgCommitLatency time.Duration // 0 before any commit
}

// For is the profile that an average commit latency calls for.
func For(avg time.Duration) Profile {
	switch {
	case avg > HeavyAbove:
		return Profile{Level: Heavy, BatchSize: 2_000, AvgCommitLatency: avg}
	case avg >= ModerateFrom:
		return Profile{Level: Moderate, BatchSize: 5_000, AvgCommitLatency: avg}
	default:
		return Profile{Level: Normal, BatchSize: 10_000, AvgCommitLatency: avg}
	}
}
