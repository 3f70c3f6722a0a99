package output

import (
	"cmp"
	"slices"
	"time"
)

// reason says what sealed an epoch. Its text is the trigger label of metrics
// and of snapshot summaries.
type reason string

const (
	byRows      reason = "rows"
	byInterval  reason = "interval"
	bySaturated reason = "saturated"
	byIdle      reason = "idle"
	byDrain     reason = "drain"
)

// patience is how long a commit may take before a write that waits for it no
// longer counts as one that will soon give its slot back.
const patience = 10 * time.Second

// triggerConfig is what the decisions depend on beside the events.
type triggerConfig struct {
	Streaming bool
	Interval  time.Duration // from the arrival of the oldest pending row to the seal
	RowLimit  int64
	IdleFloor time.Duration // 0: no idle trigger
	Slots     int           // writes that can be under way at once
	Budget    int64         // bytes
}

// fixedCeiling stands for the interval in the idle rule where streaming is off.
const fixedCeiling = 60 * time.Second

// trigger decides when epochs are sealed. It is told events with their time and
// answers with decisions; it does no I/O, keeps no clock, and is not safe for
// concurrent use.
//
// While an epoch of a table is being committed, the table's open epoch cannot be
// committed anyway, so only the row limit seals it: more rows may join it until
// the other one resolves, and every other trigger is asked again then.
type trigger struct {
	cfg      triggerConfig
	rhythm   rhythm
	draining bool

	open        []*pending // epochs that fill, in order of opening
	writes      map[*inflight]struct{}
	phases      [4]int      // number of writes in each phase
	blocked     []*inflight // writes that wait for room in the budget, first come first
	used        int64       // bytes held by admitted writes
	rows        int64       // rows of epochs not resolved
	bytes       int64       // and their bytes
	sealedBytes int64       // bytes of epochs sealed and not resolved
}

// lane is what the trigger knows of one table.
type lane struct {
	open   *pending
	sealed int // epochs sealed and not resolved
}

// pending is what the trigger knows of one epoch.
type pending struct {
	owner    *epoch // whose summary this is; of no meaning to the trigger
	lane     *lane
	rows     int64
	bytes    int64
	oldest   time.Time
	writes   []*inflight
	sealedAt time.Time // zero while open
}

// inflight is what the trigger knows of one write.
type inflight struct {
	phase  phase
	need   int64      // bytes asked of the budget
	open   int        // epochs that it waits for and that are open
	sealed []*pending // and those that are sealed

	arrived  time.Time
	before   rhythm // the rhythm before it arrived
	appended bool
}

type phase int

const (
	working phase = iota // converting, appending: more will come of it soon
	blocked              // waits for room in the memory budget
	stalled              // waits for something that may take long (a table that cannot be opened)
	waiting              // all appended: waits only for its epochs
)

// seal is one decision.
type seal struct {
	epoch *pending
	why   reason
}

func newTrigger(cfg triggerConfig) *trigger {
	ceiling := fixedCeiling
	if cfg.Streaming {
		ceiling = cfg.Interval
	}
	return &trigger{cfg: cfg, rhythm: newRhythm(cfg.IdleFloor, ceiling), writes: map[*inflight]struct{}{}}
}

// arrive: a write has taken a slot.
func (t *trigger) arrive(now time.Time, w *inflight) {
	t.writes[w] = struct{}{}
	w.phase = working
	t.phases[working]++
	w.arrived, w.before = now, t.rhythm
	t.rhythm.arrive(now)
}

// admit asks for room; false means that the write must wait until released
// hands it out. A write larger than the whole budget is admitted alone.
func (t *trigger) admit(w *inflight, need int64) bool {
	w.need = need
	if len(t.blocked) == 0 && t.fits(need) {
		t.used += need
		return true
	}
	t.enter(w, blocked)
	t.blocked = append(t.blocked, w)
	return false
}

func (t *trigger) fits(need int64) bool {
	return t.used == 0 || t.used+need <= t.cfg.Budget
}

// append: a write's rows joined an epoch; arrived is when they were admitted.
func (t *trigger) append(w *inflight, l *lane, p *pending, rows, bytes int64, arrived time.Time) {
	if l.open != p {
		l.open, p.lane, p.oldest = p, l, arrived
		t.open = append(t.open, p)
	}
	if arrived.Before(p.oldest) {
		p.oldest = arrived
	}
	p.rows, t.rows = p.rows+rows, t.rows+rows
	p.bytes, t.bytes = p.bytes+bytes, t.bytes+bytes
	p.writes = append(p.writes, w)
	w.open++
	w.appended = true
}

// enter: a write goes on to another phase.
func (t *trigger) enter(w *inflight, p phase) {
	t.phases[w.phase]--
	t.phases[p]++
	w.phase = p
}

// drop: a cancelled write takes its rows out of an epoch that is not resolved.
func (t *trigger) drop(w *inflight, p *pending, rows, bytes int64) {
	p.rows, t.rows = p.rows-rows, t.rows-rows
	p.bytes, t.bytes = p.bytes-bytes, t.bytes-bytes
	p.writes = slices.DeleteFunc(p.writes, func(x *inflight) bool { return x == w })
	if p.sealedAt.IsZero() {
		w.open--
	} else {
		t.sealedBytes -= bytes
		w.sealed = slices.DeleteFunc(w.sealed, func(x *pending) bool { return x == p })
	}
}

// resolve: an epoch's outcome is known; those who wait for it will leave.
func (t *trigger) resolve(now time.Time, p *pending) {
	for _, w := range p.writes {
		w.sealed = slices.DeleteFunc(w.sealed, func(x *pending) bool { return x == p })
	}
	p.writes = nil
	p.lane.sealed--
	t.sealedBytes -= p.bytes
	t.rows -= p.rows
	t.bytes -= p.bytes
	t.rhythm.ack(now)
}

// leave: a write returns. It gives back its slot and its room; the writes that
// can be admitted now are returned.
func (t *trigger) leave(w *inflight) (admitted []*inflight) {
	delete(t.writes, w)
	t.phases[w.phase]--
	// Rows that are all refused say nothing of the source: an input that sends one
	// again and again, for want of a fallback, must not keep the others from idleness.
	if !w.appended && t.rhythm.last.Equal(w.arrived) {
		ack := t.rhythm.lastAck
		t.rhythm = w.before
		t.rhythm.lastAck = ack
	}
	if w.phase == blocked {
		t.blocked = slices.DeleteFunc(t.blocked, func(x *inflight) bool { return x == w })
	} else {
		t.used -= w.need
	}
	for len(t.blocked) > 0 && t.fits(t.blocked[0].need) {
		next := t.blocked[0]
		t.blocked = t.blocked[1:]
		t.used += next.need
		t.enter(next, working)
		admitted = append(admitted, next)
	}
	return admitted
}

// drain: the process was asked to stop. From now on whatever is pending is sealed
// as soon as its table is free.
func (t *trigger) drain() { t.draining = true }

// decide seals what is due. The epochs returned are no longer open.
func (t *trigger) decide(now time.Time) (out []seal) {
	take := func(p *pending, why reason) {
		t.seal(now, p)
		out = append(out, seal{p, why})
	}
	for i := 0; i < len(t.open); {
		p := t.open[i]
		switch {
		case t.cfg.Streaming && p.rows >= t.cfg.RowLimit:
			take(p, byRows) // which removes it from t.open
		case p.lane.sealed > 0 || len(p.writes) == 0:
			i++
		case t.draining:
			take(p, byDrain)
		case t.cfg.Streaming && !now.Before(p.oldest.Add(t.cfg.Interval)):
			take(p, byInterval)
		default:
			i++
		}
	}
	if len(t.open) == 0 {
		return out
	}
	if at, ok := t.rhythm.quietAt(); ok && !now.Before(at) && !t.busy() {
		for _, p := range slices.Clone(t.open) {
			if p.lane.sealed == 0 && len(p.writes) > 0 {
				take(p, byIdle)
			}
		}
	}
	for _, p := range t.slotsFull(now) {
		take(p, bySaturated)
	}
	for _, p := range t.budgetFull() {
		take(p, bySaturated)
	}
	return out
}

// seal moves p from the open to the sealed ones.
func (t *trigger) seal(now time.Time, p *pending) {
	t.open = slices.DeleteFunc(t.open, func(x *pending) bool { return x == p })
	p.lane.open = nil
	p.lane.sealed++
	p.sealedAt = now
	t.sealedBytes += p.bytes
	for _, w := range p.writes {
		w.open--
		w.sealed = append(w.sealed, p)
	}
}

// busy tells whether a write is about to append: its rows are worth waiting for.
func (t *trigger) busy() bool { return t.phases[working] > 0 }

// slotsFull picks the epochs to seal when no slot is free and every write waits
// only for open epochs (or for something that will not come soon): the largest
// first, until half of the writes that wait would be released. Sealing all would
// make more and smaller commits; sealing one would let a fan-out crawl, one slot
// a commit.
func (t *trigger) slotsFull(now time.Time) (out []*pending) {
	if len(t.writes) < t.cfg.Slots || t.busy() || t.phases[blocked] > 0 {
		return nil
	}
	left := map[*inflight]int{}
	for w := range t.writes {
		switch {
		case w.phase == stalled || (w.phase == waiting && stuck(now, w)):
		case w.phase == waiting && len(w.sealed) == 0 && w.open > 0:
			left[w] = w.open
		default:
			return nil
		}
	}
	goal, released := (len(left)+1)/2, 0
	for _, p := range t.sealable(func(p *pending) int64 { return p.rows }) {
		if released >= goal {
			break
		}
		helps := false
		for _, w := range p.writes {
			if n, ok := left[w]; ok {
				helps = true
				if left[w] = n - 1; n == 1 {
					released++
				}
			}
		}
		if helps {
			out = append(out, p)
		}
	}
	return out
}

func stuck(now time.Time, w *inflight) bool {
	for _, p := range w.sealed {
		if now.Sub(p.sealedAt) >= patience {
			return true
		}
	}
	return false
}

// budgetFull picks the epochs to seal when a write waits for room and no admitted
// one is still at work: the largest first, until the commits under way will give
// back half of the budget, and as much as the first in line needs.
func (t *trigger) budgetFull() (out []*pending) {
	if len(t.blocked) == 0 || t.busy() {
		return nil
	}
	for w := range t.writes {
		if w.phase == waiting && w.open == 0 && len(w.sealed) == 0 {
			return nil // it is about to leave: the room that it gives back may do
		}
	}
	need := min(t.blocked[0].need, t.cfg.Budget)
	goal := max(t.cfg.Budget/2, t.used+need-t.cfg.Budget)
	freed := t.sealedBytes
	for _, p := range t.sealable(func(p *pending) int64 { return p.bytes }) {
		if freed >= goal {
			break
		}
		freed += p.bytes
		out = append(out, p)
	}
	return out
}

// sealable are the open epochs of tables that are free, the largest first.
func (t *trigger) sealable(size func(*pending) int64) []*pending {
	var out []*pending
	for _, p := range t.open {
		if p.lane.sealed == 0 && len(p.writes) > 0 {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b *pending) int { return cmp.Compare(size(b), size(a)) })
	return out
}

// next is when decide should be asked again if no event comes before; false
// where only an event can change anything.
func (t *trigger) next(now time.Time) (at time.Time, ok bool) {
	earlier := func(x time.Time) {
		if !ok || x.Before(at) {
			at, ok = x, true
		}
	}
	free := false
	for _, p := range t.open {
		if p.lane.sealed > 0 || len(p.writes) == 0 {
			continue
		}
		free = true
		if t.cfg.Streaming {
			earlier(p.oldest.Add(t.cfg.Interval))
		}
	}
	if !free {
		return at, ok
	}
	if quiet, may := t.rhythm.quietAt(); may && !t.busy() {
		earlier(quiet)
	}
	if len(t.writes) >= t.cfg.Slots {
		for w := range t.writes {
			for _, p := range w.sealed {
				if x := p.sealedAt.Add(patience); x.After(now) {
					earlier(x)
				}
			}
		}
	}
	return at, ok
}
