package output

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// play drives a trigger by hand. Run it in a synctest bubble: the clock is virtual.
type play struct {
	*trigger
	t     *testing.T
	lanes map[string]*lane
}

func newPlay(t *testing.T, cfg triggerConfig) *play {
	return &play{trigger: newTrigger(cfg), t: t, lanes: map[string]*lane{}}
}

func streamingConfig() triggerConfig {
	return triggerConfig{Streaming: true, Interval: time.Minute, RowLimit: 100_000, IdleFloor: 0, Slots: 256, Budget: 1 << 40}
}

func (p *play) lane(table string) *lane {
	l := p.lanes[table]
	if l == nil {
		l = &lane{}
		p.lanes[table] = l
	}
	return l
}

// start lets a write arrive and be admitted.
func (p *play) start(need int64) *inflight {
	w := &inflight{}
	p.arrive(time.Now(), w)
	p.admit(w, need)
	return w
}

// put adds rows of a write to a table's open epoch.
func (p *play) put(w *inflight, table string, rows int64) *pending {
	l := p.lane(table)
	e := l.open
	if e == nil {
		e = &pending{}
	}
	p.append(w, l, e, rows, rows, time.Now())
	return e
}

// write is a whole write to one table, which then waits.
func (p *play) write(table string, rows int64) *inflight {
	w := p.start(rows)
	p.put(w, table, rows)
	p.enter(w, waiting)
	return w
}

// sealed asks for decisions and gives them as "table reason", in order.
func (p *play) sealed() (out []string) {
	for _, s := range p.decide(time.Now()) {
		out = append(out, p.name(s.epoch)+" "+string(s.why))
	}
	return out
}

func (p *play) name(e *pending) string {
	for n, l := range p.lanes {
		if l == e.lane {
			return n
		}
	}
	return "?"
}

// untilDecision sleeps to the times that the trigger asks for until it decides
// something, and tells how long that took.
func (p *play) untilDecision() (time.Duration, []string) {
	begin := time.Now()
	for {
		if out := p.sealed(); out != nil {
			return time.Since(begin), out
		}
		at, ok := p.next(time.Now())
		require.True(p.t, ok, "the trigger waits for an event that will not come")
		require.True(p.t, at.After(time.Now()), "the trigger asks to be asked at once, again and again")
		time.Sleep(time.Until(at))
	}
}

func TestRowLimitIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t, streamingConfig())
		p.write("a", 99_999)
		require.Empty(t, p.sealed(), "99,999 rows wait")
		p.write("a", 1)
		require.Equal(t, []string{"a rows"}, p.sealed(), "the 100,000th commits")
		require.Nil(t, p.lane("a").open)
	})
}

func TestRowLimitCountsEachTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t, streamingConfig())
		p.write("a", 60_000)
		p.write("b", 60_000)
		require.Empty(t, p.sealed())
		p.write("b", 50_000)
		require.Equal(t, []string{"b rows"}, p.sealed(), "the write that reaches it may overshoot")
	})
}

func TestRowLimitSealsWhileTheTableCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t, streamingConfig())
		p.write("a", 100_000)
		require.Equal(t, []string{"a rows"}, p.sealed())
		p.write("a", 100_000)
		require.Equal(t, []string{"a rows"}, p.sealed())
		require.Equal(t, 2, p.lane("a").sealed)
	})
}

func TestIntervalCountsFromTheOldestPendingRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t, streamingConfig())
		time.Sleep(5 * time.Second)
		p.write("a", 1)
		time.Sleep(59 * time.Second)
		p.write("a", 1)
		require.Empty(t, p.sealed())
		took, what := p.untilDecision()
		require.Equal(t, time.Second, took)
		require.Equal(t, []string{"a interval"}, what)

		// The next one begins with its own first row.
		p.resolve(time.Now(), p.lastSealed("a"))
		time.Sleep(time.Hour)
		require.Empty(t, p.sealed(), "no empty commits")
		_, ok := p.next(time.Now())
		require.False(t, ok)
		p.write("a", 1)
		took, what = p.untilDecision()
		require.Equal(t, time.Minute, took)
		require.Equal(t, []string{"a interval"}, what)
	})
}

func TestARowThatWasAdmittedEarlierCountsFromThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t, streamingConfig())
		slow := p.start(1)
		admitted := time.Now()
		time.Sleep(20 * time.Second) // its conversion takes that long
		p.write("a", 1)
		time.Sleep(time.Second)
		p.append(slow, p.lane("a"), p.lane("a").open, 1, 1, admitted)
		p.enter(slow, waiting)
		took, what := p.untilDecision()
		require.Equal(t, 39*time.Second, took)
		require.Equal(t, []string{"a interval"}, what)
	})
}

// lastSealed finds the epoch of a table that is being committed.
func (p *play) lastSealed(table string) *pending {
	for w := range p.writes {
		for _, e := range w.sealed {
			if e.lane == p.lane(table) {
				return e
			}
		}
	}
	p.t.Fatalf("table %s has no sealed epoch", table)
	return nil
}

func TestIntervalWaitsForTheCommitUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t, streamingConfig())
		p.write("a", 100_000)
		p.sealed()
		first := p.lastSealed("a")
		p.write("a", 1)
		time.Sleep(2 * time.Minute)
		require.Empty(t, p.sealed(), "it could not be committed anyway")
		_, ok := p.next(time.Now())
		require.False(t, ok, "only the resolution can change anything")
		p.resolve(time.Now(), first)
		require.Equal(t, []string{"a interval"}, p.sealed())
	})
}

func TestSaturatedWhenEverySlotWaitsOnOpenEpochs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := streamingConfig()
		cfg.Slots = 4
		p := newPlay(t, cfg)
		for range 3 {
			p.write("a", 10)
		}
		last := p.start(10)
		p.put(last, "a", 10)
		require.Empty(t, p.sealed(), "one write is still at work: more rows may come")
		p.enter(last, waiting)
		require.Equal(t, []string{"a saturated"}, p.sealed())
		require.EqualValues(t, 40, p.lastSealed("a").rows)
		require.Empty(t, p.sealed(), "those that wait for a commit are not counted")
	})
}

func TestSaturatedIsAskedAgainAtEachResolution(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := streamingConfig()
		cfg.Slots = 3
		p := newPlay(t, cfg)
		a := []*inflight{p.write("a", 10), p.write("a", 10)}
		b := p.write("b", 1)
		require.Equal(t, []string{"a saturated"}, p.sealed(), "the larger one gives back half of the slots")
		e := p.lastSealed("a")
		p.resolve(time.Now(), e)
		require.Empty(t, p.sealed(), "slots come free now")
		for _, w := range a {
			p.leave(w)
		}
		p.write("b", 1)
		p.write("b", 1)
		require.Equal(t, []string{"b saturated"}, p.sealed())
		require.Contains(t, p.lastSealed("b").writes, b)
	})
}

func TestSaturatedFanOutDoesNotCrawl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := streamingConfig()
		cfg.Slots = 64
		p := newPlay(t, cfg)
		for i := range 64 {
			p.write(fmt.Sprintf("t%02d", i), int64(i+1))
		}
		out := p.sealed()
		require.Len(t, out, 32, "half of the slots come back")
		require.Equal(t, "t63 saturated", out[0], "the largest first")
	})
}

func TestSaturatedSealsAllThatAWriteWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := streamingConfig()
		cfg.Slots = 2
		p := newPlay(t, cfg)
		for range 2 {
			w := p.start(3)
			for _, table := range []string{"a", "b", "c"} {
				p.put(w, table, 1)
			}
			p.enter(w, waiting)
		}
		require.ElementsMatch(t, []string{"a saturated", "b saturated", "c saturated"}, p.sealed())
	})
}

func TestSaturatedSparesEpochsThatReleaseNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := streamingConfig()
		cfg.Slots = 2
		p := newPlay(t, cfg)
		p.write("a", 1)
		w := p.start(2)
		p.put(w, "big", 1000)
		p.enter(w, stalled) // waits for a table that cannot be opened
		require.Equal(t, []string{"a saturated"}, p.sealed())
	})
}

func TestAFailingTableDoesNotHoldUpAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := streamingConfig()
		cfg.Streaming = false
		cfg.Slots = 2
		p := newPlay(t, cfg)
		p.write("broken", 1)
		p.write("broken", 1)
		require.Equal(t, []string{"broken saturated"}, p.sealed())
		// One of the two is cancelled, and its slot taken by a write to another table.
		for w := range p.writes {
			p.drop(w, p.lastSealed("broken"), 1, 1)
			p.leave(w)
			break
		}
		p.write("fine", 1)
		require.Empty(t, p.sealed(), "the commit under way may yet give its slot back")
		took, what := p.untilDecision()
		require.Equal(t, patience, took)
		require.Equal(t, []string{"fine saturated"}, what)
	})
}

func TestBudgetSealsTheLargestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := streamingConfig()
		cfg.Budget = 100
		p := newPlay(t, cfg)
		p.write("small", 10)
		p.write("large", 60)
		p.write("medium", 30)
		require.Empty(t, p.sealed(), "full, but nobody waits")
		w := p.start(20)
		require.Equal(t, blocked, w.phase)
		require.Equal(t, []string{"large saturated"}, p.sealed(), "half of the budget will come back")
		require.Empty(t, p.sealed())
		e := p.lastSealed("large")
		writer := e.writes[0]
		p.resolve(time.Now(), e)
		require.Empty(t, p.sealed(), "its writes are about to give back their room")
		require.Equal(t, []*inflight{w}, p.leave(writer), "the room goes to the one that waited")
		require.Equal(t, working, w.phase)
		require.EqualValues(t, 60, p.used)
	})
}

func TestBudgetWaitsForWritesAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := streamingConfig()
		cfg.Budget = 100
		p := newPlay(t, cfg)
		p.write("a", 60)
		busy := p.start(40)
		p.start(10)
		require.Empty(t, p.sealed())
		p.put(busy, "a", 40)
		p.enter(busy, waiting)
		require.Equal(t, []string{"a saturated"}, p.sealed())
		require.EqualValues(t, 100, p.lastSealed("a").rows)
	})
}

func TestABatchLargerThanTheBudgetIsAdmittedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := streamingConfig()
		cfg.Budget = 100
		p := newPlay(t, cfg)
		a, b := p.write("a", 30), p.write("b", 5)
		huge := p.start(1000)
		require.Equal(t, blocked, huge.phase)
		small := p.start(1)
		require.Equal(t, blocked, small.phase, "first come, first served")
		require.ElementsMatch(t, []string{"a saturated", "b saturated"}, p.sealed(), "all must go before it fits")
		p.resolve(time.Now(), p.lastSealed("a"))
		require.Empty(t, p.leave(a))
		p.resolve(time.Now(), p.lastSealed("b"))
		require.Equal(t, []*inflight{huge}, p.leave(b))
		p.put(huge, "a", 1000)
		p.enter(huge, waiting)
		require.Equal(t, []string{"a saturated"}, p.sealed(), "the next in line waits for its room")
	})
}

func TestACancelledWaiterLeavesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := streamingConfig()
		cfg.Budget = 100
		p := newPlay(t, cfg)
		a := p.write("a", 100)
		gone, next := p.start(50), p.start(50)
		require.Empty(t, p.leave(gone))
		require.EqualValues(t, 100, p.used, "it held no room")
		p.sealed()
		p.resolve(time.Now(), p.lastSealed("a"))
		require.Equal(t, []*inflight{next}, p.leave(a))
	})
}

func TestIdleSealsAllTables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := streamingConfig()
		cfg.IdleFloor = time.Second
		p := newPlay(t, cfg)
		p.write("a", 1)
		p.write("b", 1)
		took, what := p.untilDecision()
		require.Equal(t, time.Second, took)
		require.ElementsMatch(t, []string{"a idle", "b idle"}, what)
	})
}

func TestIdleWaitsForWritesAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := streamingConfig()
		cfg.IdleFloor = time.Second
		p := newPlay(t, cfg)
		p.write("a", 1)
		slow := p.start(1)
		time.Sleep(5 * time.Second)
		require.Empty(t, p.sealed(), "its rows are about to come")
		p.put(slow, "a", 1)
		p.enter(slow, waiting)
		require.Equal(t, []string{"a idle"}, p.sealed())
	})
}

func TestIdleIsOffByZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t, streamingConfig())
		p.write("a", 1)
		took, what := p.untilDecision()
		require.Equal(t, time.Minute, took)
		require.Equal(t, []string{"a interval"}, what)
	})
}

func TestDrainSealsNowAndFromThenOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t, streamingConfig())
		p.write("a", 1)
		require.Empty(t, p.sealed())
		p.drain()
		require.Equal(t, []string{"a drain"}, p.sealed())
		p.write("a", 1)
		p.write("a", 1)
		require.Empty(t, p.sealed(), "they share the next commit")
		p.resolve(time.Now(), p.lastSealed("a"))
		require.Equal(t, []string{"a drain"}, p.sealed())
		require.EqualValues(t, 2, p.lastSealed("a").rows)
	})
}

func TestStreamingOffKnowsNoRowsAndNoInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := streamingConfig()
		cfg.Streaming = false
		cfg.IdleFloor = 10 * time.Second
		p := newPlay(t, cfg)
		for range 100 { // busy for more than an hour
			p.write("a", 50_000)
			require.Empty(t, p.sealed())
			time.Sleep(9 * time.Second)
			require.Empty(t, p.sealed())
		}
		took, what := p.untilDecision()
		require.Equal(t, []string{"a idle"}, what)
		require.InDelta(t, 18*time.Second, took, float64(time.Millisecond), "three times its longest pause after the last row")
	})
}

func TestDropTakesRowsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t, streamingConfig())
		w := p.write("a", 60_000)
		p.write("a", 10)
		e := p.lane("a").open
		p.drop(w, e, 60_000, 60_000)
		p.leave(w)
		require.EqualValues(t, 10, p.rows)
		p.write("a", 60_000)
		require.Empty(t, p.sealed(), "the dropped rows do not count")
	})
}

func TestTotalsComeBackToZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := streamingConfig()
		cfg.RowLimit = 10
		p := newPlay(t, cfg)
		a, b := p.write("a", 10), p.write("a", 5)
		p.sealed()
		e := p.lastSealed("a")
		p.drop(b, e, 5, 5)
		p.leave(b)
		p.resolve(time.Now(), e)
		p.leave(a)
		require.Zero(t, p.rows)
		require.Zero(t, p.bytes)
		require.Zero(t, p.used)
		require.Zero(t, p.sealedBytes)
		require.Empty(t, p.writes)
	})
}
