package backpressure

import (
	"sync/atomic"
	"time"
)

// Weight is the share of a new commit in the average once warm: after a change
// of latency, four commits move the average three quarters of the way.
const Weight = 0.3

// Tracker averages commit latencies. The zero value is ready. Observe and Profile
// may be called concurrently; Profile is one atomic read, cheap enough for each append.
type Tracker struct {
	state atomic.Pointer[average]
}

type average struct {
	commits int64
	mean    float64 // nanoseconds
	profile Profile
}

// next is the average after one more commit.
func (a average) next(latency time.Duration) average {
	a.commits++
	w := max(1/float64(a.commits), Weight)
	a.mean += w * (float64(max(latency, 0)) - a.mean)
	a.profile = For(time.Duration(a.mean + 0.5))
	return a
}

// Observe adds one commit's latency and returns the profile before and after it,
// so that the caller can log a level that was entered or left.
func (t *Tracker) Observe(latency time.Duration) (before, after Profile) {
	for {
		old := t.state.Load()
		cur := average{profile: For(0)}
		if old != nil {
			cur = *old
		}
		nxt := cur.next(latency)
		if t.state.CompareAndSwap(old, &nxt) {
			return cur.profile, nxt.profile
		}
	}
}

// Profile is the present profile: normal before any commit.
func (t *Tracker) Profile() Profile {
	if a := t.state.Load(); a != nil {
		return a.profile
	}
	return For(0)
}
