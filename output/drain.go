package output

import "sync"

// running are the outputs of this process that are open.
var running = struct {
	mu   sync.Mutex
	outs map[*Output]struct{}
}{outs: map[*Output]struct{}{}}

func register(o *Output) {
	running.mu.Lock()
	defer running.mu.Unlock()
	running.outs[o] = struct{}{}
}

func unregister(o *Output) {
	running.mu.Lock()
	defer running.mu.Unlock()
	delete(running.outs, o)
}

// Drain asks all managed_lakehouse outputs of the process to commit what is pending
// now, and what still comes as it comes. It is for the moment at which the process
// was asked to stop: Benthos then stops its inputs and waits for what is on its way,
// but tells no output, so rows would wait for their trigger while the shutdown
// timeout runs. A build without this call relies on the idle trigger.
//
// Drain returns at once; it is safe to call at any time, from any goroutine.
func Drain() {
	running.mu.Lock()
	outs := make([]*Output, 0, len(running.outs))
	for o := range running.outs {
		outs = append(outs, o)
	}
	running.mu.Unlock()
	for _, o := range outs {
		o.drain()
	}
}
