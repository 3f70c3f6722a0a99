package output

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/managed-lakehouse/managed-lakehouse/backpressure"
	"github.com/managed-lakehouse/managed-lakehouse/commit"
)

// bubble runs a test of a group on a virtual clock.
func bubble(t *testing.T, w *fakeWarehouse, change func(*groupConfig), f func(t *testing.T, g *group)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := testGroup(t, w, change)
		f(t, g)
		require.NoError(t, g.close(context.Background()))
		require.True(t, w.closed)
		g.mu.Lock()
		defer g.mu.Unlock()
		require.Zero(t, g.trigger.used, "room that was never given back")
		require.Empty(t, g.trigger.writes)
	})
}

func TestAWriteReturnsWhenItsRowsAreCommitted(t *testing.T) {
	w := newFakeWarehouse()
	w.commitTakes = func() time.Duration { return 300 * time.Millisecond }
	bubble(t, w, nil, func(t *testing.T, g *group) {
		begin := time.Now()
		require.Empty(t, g.write(t.Context(), []routed{into("a", idRows(0, 10))}))
		require.Equal(t, 1300*time.Millisecond, time.Since(begin), "idle time and commit")
		c := w.table("ns.a").commits()
		require.Len(t, c, 1)
		require.Equal(t, from(0, 10), c[0].ids)
		require.Equal(t, "idle", c[0].trigger)
		require.Equal(t, Summary{StreamingMode: true, TotalCommits: 1, TotalRows: 10, AvgCommitLatency: "300.0ms", Tables: 1}, g.summary())
	})
}

func TestManyWritesShareCommits(t *testing.T) {
	w := newFakeWarehouse()
	w.commitTakes = func() time.Duration { return 100 * time.Millisecond }
	bubble(t, w, func(c *groupConfig) { c.Trigger.RowLimit = 10_000 }, func(t *testing.T, g *group) {
		var wg sync.WaitGroup
		for i := range 250 {
			wg.Go(func() { require.Empty(t, g.write(t.Context(), []routed{into("a", idRows(i*100, 100))})) })
		}
		wg.Wait()
		require.Equal(t, from(0, 25_000), w.table("ns.a").ids())
		c := w.table("ns.a").commits()
		require.Len(t, c, 3)
		require.Len(t, c[0].ids, 10_000)
		require.Len(t, c[1].ids, 10_000)
		require.Equal(t, "rows", c[1].trigger)
		require.Equal(t, "idle", c[2].trigger)
	})
}

func TestATrickleIsCommittedByTheInterval(t *testing.T) {
	w := newFakeWarehouse()
	bubble(t, w, func(c *groupConfig) { c.Trigger.Interval = 12 * time.Second }, func(t *testing.T, g *group) {
		var wg sync.WaitGroup
		for i := range 120 {
			wg.Go(func() { require.Empty(t, g.write(t.Context(), []routed{into("a", idRows(i, 1))})) })
			time.Sleep(time.Second)
		}
		wg.Wait()
		require.Equal(t, from(0, 120), w.table("ns.a").ids())
		// The first few gaps may be taken for those of a source that waits for acks.
		byReason := map[string]int{}
		commits := w.table("ns.a").commits()
		for i, c := range commits {
			byReason[c.trigger]++
			if c.trigger == "interval" && i < len(commits)-1 {
				require.InDelta(t, 12, len(c.ids), 1)
			}
		}
		require.LessOrEqual(t, byReason["idle"], firstProbe+2)
		require.GreaterOrEqual(t, byReason["interval"], 8)
	})
}

func TestASourceThatAllowsFewUnackedRows(t *testing.T) {
	w := newFakeWarehouse()
	w.commitTakes = func() time.Duration { return 50 * time.Millisecond }
	bubble(t, w, nil, func(t *testing.T, g *group) {
		begin := time.Now()
		const rounds = 20
		for r := range rounds {
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() { require.Empty(t, g.write(t.Context(), []routed{into("a", idRows((r*8+i)*128, 128))})) })
			}
			wg.Wait()
		}
		require.Equal(t, from(0, rounds*1024), w.table("ns.a").ids())
		require.Len(t, w.table("ns.a").commits(), rounds)
		require.Less(t, time.Since(begin)/rounds, 1600*time.Millisecond)
	})
}

func TestTypesFitAllRowsPendingWhenATableIsMade(t *testing.T) {
	w := newFakeWarehouse()
	bubble(t, w, nil, func(t *testing.T, g *group) {
		var wg sync.WaitGroup
		wg.Go(func() { require.Empty(t, g.write(t.Context(), []routed{into("a", jsonRows(`{"id":1,"v":2}`))})) })
		time.Sleep(100 * time.Millisecond)
		wg.Go(func() { require.Empty(t, g.write(t.Context(), []routed{into("a", jsonRows(`{"id":2,"v":1.57}`))})) })
		wg.Wait()
		c := w.table("ns.a").commits()
		require.Len(t, c, 1)
		f, ok := c[0].schema.FieldsByName("v")
		require.True(t, ok)
		require.Equal(t, "float64", f[0].Type.Name())
		require.Equal(t, "2", c[0].values[1]["v"])
		require.Equal(t, "1.57", c[0].values[2]["v"])
	})
}

func TestANewColumnComesWithItsRows(t *testing.T) {
	w := newFakeWarehouse()
	bubble(t, w, nil, func(t *testing.T, g *group) {
		require.Empty(t, g.write(t.Context(), []routed{into("a", idRows(1, 1))}))
		var wg sync.WaitGroup
		wg.Go(func() { require.Empty(t, g.write(t.Context(), []routed{into("a", idRows(2, 20_000))})) })
		time.Sleep(100 * time.Millisecond)
		wg.Go(func() {
			require.Empty(t, g.write(t.Context(), []routed{into("a", jsonRows(`{"id":30000,"name":"x"}`, `{"id":30001}`))}))
		})
		wg.Wait()
		c := w.table("ns.a").commits()
		require.Len(t, c, 2)
		require.Len(t, c[1].ids, 20_002)
		require.Equal(t, map[string]string{"id": "30000", "name": "x"}, c[1].values[30000])
		require.Equal(t, map[string]string{"id": "30001"}, c[1].values[30001])
		require.Equal(t, map[string]string{"id": "2"}, c[1].values[2])
		require.Contains(t, c[1].records, int64(10_000), "rows streamed before the column was known were not written anew")
	})
}

func TestARowThatDoesNotFitIsRefusedAlone(t *testing.T) {
	w := newFakeWarehouse()
	bubble(t, w, nil, func(t *testing.T, g *group) {
		require.Empty(t, g.write(t.Context(), []routed{into("a", idRows(0, 1))}))
		failures := g.write(t.Context(), []routed{into("a", jsonRows(`{"id":1}`, `{"id":"x"}`, `{"id":2}`, `no json`))})
		require.Len(t, failures, 2)
		require.Equal(t, 1, failures[0].message)
		require.Equal(t, 3, failures[1].message)
		require.ErrorContains(t, failures[0].err, "id: expected long")
		require.Equal(t, []int64{0, 1, 2}, w.table("ns.a").ids())
		require.EqualValues(t, 2, g.summary().RefusedRows)
	})
}

func TestRowsThatAreAllRefusedMakeNoCommit(t *testing.T) {
	w := newFakeWarehouse()
	bubble(t, w, nil, func(t *testing.T, g *group) {
		begin := time.Now()
		require.Len(t, g.write(t.Context(), []routed{into("a", jsonRows(`[]`, `5`))}), 2)
		require.Zero(t, time.Since(begin), "they wait for nothing")
		time.Sleep(time.Hour)
		require.Empty(t, w.table("ns.a").commits())
		require.Zero(t, w.table("ns.a").begun)
	})
}

// Without a fallback most inputs send a refused row again about once a second. That
// is not the source's rhythm: the rows that wait are committed when it is quiet.
func TestARowThatComesAgainAndAgainDoesNotHoldUpTheOthers(t *testing.T) {
	for _, streaming := range []bool{true, false} {
		w := newFakeWarehouse()
		bubble(t, w, func(cfg *groupConfig) { cfg.Trigger.Streaming = streaming }, func(t *testing.T, g *group) {
			require.Empty(t, g.write(t.Context(), []routed{into("a", idRows(0, 1))}))
			begin := time.Now()
			done := make(chan []failure)
			go func() { done <- g.write(t.Context(), []routed{into("a", jsonRows(`{"id":1}`, `{"id":2}`))}) }()
			for range 100 {
				time.Sleep(700 * time.Millisecond)
				require.Len(t, g.write(t.Context(), []routed{into("a", jsonRows(`{"id":"x"}`))}), 1)
			}
			require.Empty(t, <-done)
			c := w.table("ns.a").commits()
			require.Len(t, c, 2)
			require.Equal(t, "idle", c[1].trigger)
			require.Less(t, c[1].at.Sub(begin), 10*time.Second)
		})
	}
}

func TestTheFirstTypeStandsWhereNoneFitsAll(t *testing.T) {
	w := newFakeWarehouse()
	bubble(t, w, nil, func(t *testing.T, g *group) {
		failures := g.write(t.Context(), []routed{into("a", jsonRows(`{"id":1,"f":1}`, `{"id":2,"f":"x"}`, `{"id":3,"f":[1]}`, `{"id":4,"f":4}`))})
		require.Len(t, failures, 2)
		require.Equal(t, []int{1, 2}, []int{failures[0].message, failures[1].message})
		require.Equal(t, []int64{1, 4}, w.table("ns.a").ids())
	})
}

func TestASchemaThatAnotherWriterChangedConvertsAnew(t *testing.T) {
	w := newFakeWarehouse()
	a := w.table("ns.a")
	bubble(t, w, nil, func(t *testing.T, g *group) {
		require.Empty(t, g.write(t.Context(), []routed{into("a", idRows(0, 1))}))
		a.fail = []error{commit.ErrSchemaChanged, commit.ErrSchemaChanged}
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() { require.Empty(t, g.write(t.Context(), []routed{into("a", idRows(1+i*12_000, 12_000))})) })
		}
		wg.Wait()
		require.Equal(t, from(0, 36_001), a.ids(), "each row once")
		require.Len(t, a.commits(), 2)
	})
}

func TestAPassingFailureIsRetriedAndNeverReturned(t *testing.T) {
	w := newFakeWarehouse()
	a := w.table("ns.a")
	for range 20 {
		a.fail = append(a.fail, errors.New("connection reset"))
	}
	bubble(t, w, nil, func(t *testing.T, g *group) {
		begin := time.Now()
		require.Empty(t, g.write(t.Context(), []routed{into("a", idRows(0, 100))}))
		require.Greater(t, time.Since(begin), time.Minute, "with growing pauses")
		require.Equal(t, from(0, 100), a.ids())
		require.Len(t, a.commits(), 1)
	})
}

func TestFilesThatWereLostAreWrittenAnew(t *testing.T) {
	w := newFakeWarehouse()
	var writes atomic.Int64
	bubble(t, w, nil, func(t *testing.T, g *group) {
		require.Empty(t, g.write(t.Context(), []routed{into("a", idRows(0, 1))}))
		w.writeFails = func(string) error {
			if n := writes.Add(1); n == 2 || n == 4 {
				return errors.New("disk full")
			}
			return nil
		}
		require.Empty(t, g.write(t.Context(), []routed{into("a", idRows(1, 40_000))}))
		require.Equal(t, from(0, 40_001), w.table("ns.a").ids())
	})
}

func TestADefiniteRefusalFailsTheRowsOfItsTableOnly(t *testing.T) {
	w := newFakeWarehouse()
	w.table("ns.bad").fail = []error{&commit.RefusedError{Table: []string{"ns", "bad"}, Err: errors.New("no")}}
	bubble(t, w, nil, func(t *testing.T, g *group) {
		good, bad := idRows(0, 2), idRows(2, 2)
		bad.index = []int{2, 3}
		failures := g.write(t.Context(), []routed{into("good", good), into("bad", bad)})
		require.Len(t, failures, 2)
		require.Equal(t, []int{2, 3}, []int{failures[0].message, failures[1].message})
		var refused *commit.RefusedError
		require.ErrorAs(t, failures[0].err, &refused)
		require.Equal(t, []int64{0, 1}, w.table("ns.good").ids())
		require.Empty(t, w.table("ns.bad").ids())

		require.Empty(t, g.write(t.Context(), []routed{into("bad", idRows(2, 2))}), "the next commit is another matter")
	})
}

func TestACancelledWriteIsLeftOut(t *testing.T) {
	for _, n := range []int{10, 15_000} { // joined only, and streamed already
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			w := newFakeWarehouse()
			bubble(t, w, nil, func(t *testing.T, g *group) {
				require.Empty(t, g.write(t.Context(), []routed{into("a", idRows(0, 1))}))
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				wg.Go(func() { require.Empty(t, g.write(t.Context(), []routed{into("a", idRows(1, 10))})) })
				wg.Go(func() {
					failures := g.write(ctx, []routed{into("a", idRows(1000, n))})
					require.Len(t, failures, n)
					require.ErrorIs(t, failures[0].err, errStopped)
				})
				time.Sleep(100 * time.Millisecond)
				cancel()
				wg.Wait()
				require.Equal(t, from(0, 11), w.table("ns.a").ids())
			})
		})
	}
}

func TestAnEpochWhoseWritesAreAllCancelledMakesNoCommit(t *testing.T) {
	w := newFakeWarehouse()
	bubble(t, w, nil, func(t *testing.T, g *group) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		require.Len(t, g.write(ctx, []routed{into("a", idRows(0, 10))}), 10)
		time.Sleep(time.Hour)
		require.Empty(t, w.table("ns.a").commits())
		require.Zero(t, g.summary().PendingRows)
		require.Empty(t, g.write(t.Context(), []routed{into("a", idRows(0, 10))}), "the table goes on")
	})
}

func TestACommitThatHasBegunIsWaitedFor(t *testing.T) {
	w := newFakeWarehouse()
	w.commitTakes = func() time.Duration { return 5 * time.Second }
	bubble(t, w, nil, func(t *testing.T, g *group) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // in the midst of it
		defer cancel()
		require.Empty(t, g.write(ctx, []routed{into("a", idRows(0, 10))}), "its rows are in the table")
		require.Equal(t, from(0, 10), w.table("ns.a").ids())
	})
}

func TestACommitWhoseOutcomeIsNotKnownIsNotWaitedForForEver(t *testing.T) {
	w := newFakeWarehouse()
	bubble(t, w, func(c *groupConfig) { c.Grace = 7 * time.Second }, func(t *testing.T, g *group) {
		w.table("ns.a").hang = make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		begin := time.Now()
		failures := g.write(ctx, []routed{into("a", idRows(0, 1))})
		require.Len(t, failures, 1)
		require.Equal(t, 10*time.Second, time.Since(begin))
		require.ErrorContains(t, failures[0].err, "outcome was not known")
	})
}

func TestStalledStorageLeavesMemoryFlat(t *testing.T) {
	w := newFakeWarehouse()
	a := w.table("ns.a")
	const budget = 1 << 20
	bubble(t, w, func(c *groupConfig) {
		c.Trigger.Budget, c.Trigger.RowLimit = budget, 500
	}, func(t *testing.T, g *group) {
		a.hang = make(chan struct{})
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() { require.Empty(t, g.write(t.Context(), []routed{into("a", idRows(i*100, 100))})) })
		}
		time.Sleep(2 * time.Minute)
		g.mu.Lock()
		used, waiting := g.trigger.used, len(g.trigger.blocked)
		g.mu.Unlock()
		require.LessOrEqual(t, used, int64(budget))
		require.Greater(t, used, int64(budget*9/10))
		require.Greater(t, waiting, 100)
		close(a.hang)
		wg.Wait()
		require.Equal(t, from(0, 20_000), a.ids())
	})
}

func TestAFanOutOverAllSlotsDoesNotStall(t *testing.T) {
	w := newFakeWarehouse()
	w.commitTakes = func() time.Duration { return 50 * time.Millisecond }
	bubble(t, w, func(c *groupConfig) { c.Trigger.Slots = 32; c.Trigger.IdleFloor = 0; c.Trigger.Streaming = false }, func(t *testing.T, g *group) {
		slots := make(chan struct{}, 32)
		var wg sync.WaitGroup
		begin := time.Now()
		for i := range 320 {
			slots <- struct{}{}
			wg.Go(func() {
				require.Empty(t, g.write(t.Context(), []routed{into(fmt.Sprintf("t%d", i%64), idRows(i, 1))}))
				<-slots
			})
		}
		g.drain()
		wg.Wait()
		require.Less(t, time.Since(begin), 5*time.Second)
	})
}

func TestOneTableNeverHoldsUpAnother(t *testing.T) {
	w := newFakeWarehouse()
	bubble(t, w, nil, func(t *testing.T, g *group) {
		w.table("ns.slow").hang = make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { g.write(t.Context(), []routed{into("slow", idRows(0, 10))}) })
		time.Sleep(2 * time.Second)
		begin := time.Now()
		require.Empty(t, g.write(t.Context(), []routed{into("fast", idRows(0, 10))}))
		require.LessOrEqual(t, time.Since(begin), 6*time.Second, "its own idle rule, and no more")
		close(w.table("ns.slow").hang)
		wg.Wait()
	})
}

func TestATableThatCannotBeOpenedWaitsAndHoldsUpNobody(t *testing.T) {
	w := newFakeWarehouse()
	var opens atomic.Bool
	w.openFails = func(name string) error {
		if name == "ns.down" && !opens.Load() {
			return errors.New("connection refused")
		}
		return nil
	}
	bubble(t, w, nil, func(t *testing.T, g *group) {
		var wg sync.WaitGroup
		wg.Go(func() {
			require.Empty(t, g.write(t.Context(), []routed{into("down", idRows(0, 1)), into("up", idRows(100, 1))}))
		})
		time.Sleep(10 * time.Second)
		require.Equal(t, []int64{100}, w.table("ns.up").ids(), "the rows of the other table were committed meanwhile")
		opens.Store(true)
		wg.Wait()
		require.Equal(t, []int64{0}, w.table("ns.down").ids())
	})
}

func TestRecordsFollowTheBackpressureProfile(t *testing.T) {
	w := newFakeWarehouse()
	var takes atomic.Int64
	w.commitTakes = func() time.Duration { return time.Duration(takes.Load()) }
	bubble(t, w, nil, func(t *testing.T, g *group) {
		next := 0
		run := func(latency time.Duration, want int64, level backpressure.Level) {
			takes.Store(int64(latency))
			for range 8 {
				var wg sync.WaitGroup
				for range 20 {
					first := next
					next += 1000
					wg.Go(func() { require.Empty(t, g.write(t.Context(), []routed{into("a", idRows(first, 1000))})) })
				}
				wg.Wait()
			}
			require.Equal(t, level, g.profile().Level)
			c := w.table("ns.a").commits()
			records := c[len(c)-1].records
			for _, n := range records {
				require.Equal(t, want, n, "records of the last commit: %v", records)
			}
		}
		run(time.Second, 10_000, backpressure.Normal)
		run(3*time.Second, 5_000, backpressure.Moderate)
		run(6*time.Second, 2_000, backpressure.Heavy)
		run(3*time.Second, 5_000, backpressure.Moderate)
		run(time.Second, 10_000, backpressure.Normal)
		require.Equal(t, from(0, next), w.table("ns.a").ids())
	})
}

func TestACommitWaitsForTheRecordsThatAreBeingWritten(t *testing.T) {
	w := newFakeWarehouse()
	bubble(t, w, func(c *groupConfig) { c.Trigger.RowLimit = 20_000 }, func(t *testing.T, g *group) {
		require.Empty(t, g.write(t.Context(), []routed{into("a", idRows(0, 1))}))
		w.writeTakes = func() time.Duration { return 5 * time.Second }
		require.Empty(t, g.write(t.Context(), []routed{into("a", idRows(1, 20_000))}))
		require.Equal(t, from(0, 20_001), w.table("ns.a").ids())
	})
}

func TestAWriteCancelledWhileItsCommitIsPreparedIsLeftOut(t *testing.T) {
	w := newFakeWarehouse()
	bubble(t, w, nil, func(t *testing.T, g *group) {
		require.Empty(t, g.write(t.Context(), []routed{into("a", idRows(0, 1))}))
		w.writeTakes = func() time.Duration { return 5 * time.Second }
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() { require.Len(t, g.write(ctx, []routed{into("a", idRows(100, 10))}), 10) })
		wg.Go(func() { require.Empty(t, g.write(t.Context(), []routed{into("a", idRows(1, 10))})) })
		wg.Wait()
		require.Equal(t, from(0, 11), w.table("ns.a").ids())
	})
}

func TestAtMostOneBatchSizeIsUnencodedAtTheSeal(t *testing.T) {
	w := newFakeWarehouse()
	bubble(t, w, nil, func(t *testing.T, g *group) {
		require.Empty(t, g.write(t.Context(), []routed{into("a", idRows(0, 1))}))
		var wg sync.WaitGroup
		for i := range 95 {
			wg.Go(func() { require.Empty(t, g.write(t.Context(), []routed{into("a", idRows(1+i*1000, 1000))})) })
		}
		synctest.Wait()
		g.mu.Lock()
		var left int64
		for _, t := range g.tables {
			left += t.open.join.rows()
		}
		g.mu.Unlock()
		require.EqualValues(t, 5_000, left)
		wg.Wait()
	})
}

func TestOneEpochFillsWhileOneCommits(t *testing.T) {
	w := newFakeWarehouse()
	w.commitTakes = func() time.Duration { return 10 * time.Second }
	bubble(t, w, func(c *groupConfig) { c.Trigger.RowLimit = 1000 }, func(t *testing.T, g *group) {
		var wg sync.WaitGroup
		begin := time.Now()
		for i := range 3 {
			wg.Go(func() { require.Empty(t, g.write(t.Context(), []routed{into("a", idRows(i*1000, 1000))})) })
			time.Sleep(time.Second)
		}
		wg.Wait()
		c := w.table("ns.a").commits()
		require.Len(t, c, 3)
		require.Equal(t, 10*time.Second, c[0].at.Sub(begin))
		require.Equal(t, 20*time.Second, c[1].at.Sub(begin))
		require.Equal(t, 30*time.Second, c[2].at.Sub(begin))
	})
}

func TestDrainCommitsWhatIsPending(t *testing.T) {
	w := newFakeWarehouse()
	w.commitTakes = func() time.Duration { return 100 * time.Millisecond }
	bubble(t, w, func(c *groupConfig) { c.Trigger.IdleFloor = 0 }, func(t *testing.T, g *group) {
		var wg sync.WaitGroup
		begin := time.Now()
		wg.Go(func() { require.Empty(t, g.write(t.Context(), []routed{into("a", idRows(0, 10))})) })
		time.Sleep(time.Second)
		g.drain()
		wg.Wait()
		require.Equal(t, 1100*time.Millisecond, time.Since(begin))
		require.Equal(t, "drain", w.table("ns.a").commits()[0].trigger)
		require.Empty(t, g.write(t.Context(), []routed{into("a", idRows(10, 10))}), "what comes later goes at once")
		require.Equal(t, 1200*time.Millisecond, time.Since(begin))
	})
}

func TestQuietTablesAreForgotten(t *testing.T) {
	w := newFakeWarehouse()
	bubble(t, w, nil, func(t *testing.T, g *group) {
		for i := range 20 {
			require.Empty(t, g.write(t.Context(), []routed{into(fmt.Sprintf("t%d", i), idRows(i, 1))}))
		}
		time.Sleep(time.Hour)
		require.Empty(t, g.write(t.Context(), []routed{into("last", idRows(0, 1))}))
		synctest.Wait()
		g.mu.Lock()
		require.Len(t, g.tables, 1)
		g.mu.Unlock()
		require.Len(t, w.released, 20)
		require.Empty(t, g.write(t.Context(), []routed{into("t0", idRows(100, 1))}), "and come back")
		require.Equal(t, []int64{0, 100}, w.table("ns.t0").ids())
		require.Equal(t, 21, g.summary().Tables)
	})
}

func TestATableOneTooManyIsRefused(t *testing.T) {
	w := newFakeWarehouse()
	r := newTableRegistry()
	pro, err := tierNamed("professional")
	require.NoError(t, err)
	bubble(t, w, func(c *groupConfig) { c.Count = func(name string) error { return r.count(pro, name) } }, func(t *testing.T, g *group) {
		third := idRows(2, 1)
		third.index = []int{2}
		second := idRows(1, 1)
		second.index = []int{1}
		failures := g.write(t.Context(), []routed{into("a", idRows(0, 1)), into("b", second), into("c", third)})
		require.Len(t, failures, 1)
		require.Equal(t, 2, failures[0].message)
		require.ErrorContains(t, failures[0].err, "professional allows 2 streaming tables")
		require.Equal(t, []int64{0}, w.table("ns.a").ids())
		require.Equal(t, []int64{1}, w.table("ns.b").ids())
	})
}
