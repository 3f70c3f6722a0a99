package output

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// source plays arrivals and acks against a rhythm: commits happen when it counts as
// quiet, and take a while.
type source struct {
	r      rhythm
	now    time.Time
	commit time.Duration
	unack  int
	acks   int // commits made
	idle   time.Duration
}

func newSource(floor, ceiling, commit time.Duration) *source {
	return &source{r: newRhythm(floor, ceiling), now: time.Unix(0, 0), commit: commit}
}

// pass lets time go by without arrivals; whatever is unacknowledged is committed
// once the source counts as quiet.
func (s *source) pass(d time.Duration) {
	end := s.now.Add(d)
	for s.unack > 0 {
		at, ok := s.r.quietAt()
		if !ok || at.After(end) {
			break
		}
		s.idle = at.Sub(s.r.last)
		s.acks++
		s.unack = 0
		s.now = at.Add(s.commit)
		s.r.ack(s.now)
	}
	if end.After(s.now) {
		s.now = end
	}
}

func (s *source) arrive() {
	s.r.arrive(s.now)
	s.unack++
}

// untilAck waits until everything is acknowledged.
func (s *source) untilAck() {
	for n := s.acks; s.acks == n; {
		s.pass(10 * time.Millisecond)
	}
}

func TestRhythmOfABoundedSourceIsTheFloor(t *testing.T) {
	s := newSource(time.Second, time.Minute, 50*time.Millisecond)
	for range 1000 {
		s.arrive()
		s.pass(time.Millisecond)
	}
	s.pass(2 * time.Second)
	require.Equal(t, 1, s.acks)
	require.Equal(t, time.Second, s.idle)
}

func TestRhythmOfATrickleIsNotQuiet(t *testing.T) {
	// The periods cover the blind spot: just above the floor, each message follows
	// the ack of the one before by chance.
	for _, period := range []time.Duration{
		900 * time.Millisecond, time.Second, 1100 * time.Millisecond, 1200 * time.Millisecond, 1290 * time.Millisecond, 3 * time.Second, 10 * time.Second,
	} {
		t.Run(period.String(), func(t *testing.T) {
			s := newSource(time.Second, time.Minute, 50*time.Millisecond)
			for range 300 {
				s.arrive()
				s.pass(period)
			}
			require.LessOrEqual(t, s.acks, firstProbe+1, "commits made by idleness")
		})
	}
}

func TestRhythmOfASourceThatWaitsForAcks(t *testing.T) {
	// 1,024 rows, then nothing until they are acknowledged: each round must cost
	// about the floor and a commit, not three times what was waited before.
	s := newSource(time.Second, time.Minute, 100*time.Millisecond)
	start := s.now
	const rounds = 500
	for range rounds {
		for range 1024 {
			s.arrive()
			s.pass(10 * time.Microsecond)
		}
		s.untilAck()
		s.pass(20 * time.Millisecond) // its reaction
	}
	require.Equal(t, rounds, s.acks)
	mean := s.now.Sub(start) / rounds
	require.Less(t, mean, 1150*time.Millisecond, "the probes are rare and short")
}

func TestRhythmOfBursts(t *testing.T) {
	// After the first one it is known that bursts come every five seconds; the rows
	// of later ones wait for the next instead of each making a commit.
	s := newSource(time.Second, time.Minute, 50*time.Millisecond)
	for range 20 {
		for range 100 {
			s.arrive()
			s.pass(time.Millisecond)
		}
		s.pass(5 * time.Second)
	}
	require.Equal(t, 1, s.acks)
}

func TestRhythmForgetsALongPause(t *testing.T) {
	s := newSource(time.Second, 10*time.Second, 50*time.Millisecond)
	s.arrive()
	s.now = s.now.Add(3 * time.Second) // one pause, with nothing to commit meanwhile
	s.arrive()
	at, ok := s.r.quietAt()
	require.True(t, ok)
	require.Equal(t, 9*time.Second, at.Sub(s.now), "three times the pause")
	for range 30_000 {
		s.now = s.now.Add(time.Millisecond)
		s.arrive()
	}
	at, _ = s.r.quietAt()
	require.Equal(t, time.Second, at.Sub(s.now), "three ceilings later it is forgotten")
}

func TestRhythmIsBoundedByTheCeiling(t *testing.T) {
	s := newSource(time.Second, 10*time.Second, 0)
	s.arrive()
	s.now = s.now.Add(8 * time.Second)
	s.arrive()
	at, _ := s.r.quietAt()
	require.Equal(t, 10*time.Second, at.Sub(s.now))
}

func TestRhythmGivesTimeToReactAfterAnAck(t *testing.T) {
	s := newSource(time.Second, time.Minute, 0)
	s.arrive()
	s.now = s.now.Add(1500 * time.Millisecond) // another epoch was committed meanwhile
	s.r.ack(s.now)
	at, _ := s.r.quietAt()
	require.Equal(t, 250*time.Millisecond, at.Sub(s.now))
}

func TestRhythmCanBeOff(t *testing.T) {
	s := newSource(0, time.Minute, 0)
	s.arrive()
	_, ok := s.r.quietAt()
	require.False(t, ok)
}
