package output

import (
	"math"
	"time"
)

// rhythm learns how a source delivers, and says when it has gone quiet against
// its own habit. It is plain data; the caller serialises calls and gives the time.
//
// The source counts as quiet after min(max(floor, 3 x peak), ceiling), where peak
// is the largest recent gap between two arrivals, decaying over the ceiling. A
// gap that ends within floor/4 after an ack is not the source's habit but the
// source waiting for us, and is ignored.
//
// A trickle whose period is just above the floor looks the same: each message is
// committed by idleness, and the next one follows the ack by chance. So now and
// then (after 2 ignored gaps in a row, then 4, 8, ...) half a floor more than such a
// gap is waited. If the source arrives in that time, without an ack, the rhythm is
// its own, and is learned.
type rhythm struct {
	floor   time.Duration // 0: never quiet
	ceiling time.Duration

	last    time.Time // last arrival
	lastAck time.Time
	peak    time.Duration

	ignored   int           // gaps in a row that followed an ack
	nextProbe int           // so many of them cause a probe
	probe     time.Duration // what is waited instead of the floor this time; 0: no probe
}

const (
	firstProbe  = 2
	rarestProbe = 1 << 16
)

func newRhythm(floor, ceiling time.Duration) rhythm {
	return rhythm{floor: floor, ceiling: ceiling, nextProbe: firstProbe}
}

// reaction is how soon after an ack an arrival still counts as its consequence.
func (r *rhythm) reaction() time.Duration { return r.floor / 4 }

// arrive records an arrival.
func (r *rhythm) arrive(now time.Time) {
	if r.last.IsZero() {
		r.last = now
		return
	}
	gap := now.Sub(r.last)
	r.peak = decayed(r.peak, gap, r.ceiling)
	followsAck := r.lastAck.After(r.last) && now.Sub(r.lastAck) <= r.reaction()
	switch {
	case !followsAck:
		r.peak = max(r.peak, gap)
		if gap > r.reaction() {
			r.ignored, r.nextProbe, r.probe = 0, firstProbe, 0
		}
	case r.probe > 0: // it waited for us once more
		r.ignored, r.nextProbe, r.probe = 0, min(2*r.nextProbe, rarestProbe), 0
	default:
		if r.ignored++; r.ignored >= r.nextProbe {
			r.probe = gap + r.floor/2
		}
	}
	r.last = now
}

// ack records that rows were acknowledged.
func (r *rhythm) ack(now time.Time) { r.lastAck = now }

// quietAt is when the source counts as quiet if nothing arrives until then. After
// an ack the source is given its reaction time first: it may have waited for it.
func (r *rhythm) quietAt() (time.Time, bool) {
	if r.floor <= 0 || r.last.IsZero() {
		return time.Time{}, false
	}
	at := r.last.Add(min(max(r.floor, 3*r.peak, r.probe), r.ceiling))
	if react := r.lastAck.Add(r.reaction()); r.lastAck.After(r.last) && react.After(at) {
		at = react
	}
	return at, true
}

// decayed is peak after some time: by a factor e for each ceiling.
func decayed(peak, elapsed, ceiling time.Duration) time.Duration {
	if ceiling <= 0 || peak <= 0 {
		return peak
	}
	return time.Duration(float64(peak) * math.Exp(-float64(elapsed)/float64(ceiling)))
}
