package main

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// boundGarbage keeps the process at about base bytes by a soft limit for the garbage
// collector, as long as what is alive leaves room below it. Where it does not (an
// input that hands over messages one by one costs several kilobytes for each that is
// not acknowledged, most of it stacks), collecting ever more often would free nothing
// and take half of the processor; the limit then follows what is alive.
// GOMEMLIMIT goes before all of this.
func boundGarbage(base int64) {
	if base <= 0 || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetMemoryLimit(base)
	go func() {
		alive := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
		for range time.Tick(250 * time.Millisecond) {
			metrics.Read(alive)
			debug.SetMemoryLimit(softLimit(base, int64(alive[0].Value.Uint64()), int64(alive[1].Value.Uint64())))
		}
	}()
}

// softLimit leaves half of what is alive for garbage.
func softLimit(base, heap, stacks int64) int64 {
	return max(base, (heap+stacks)*3/2)
}
