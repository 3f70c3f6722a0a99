package icebergtable

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore"
)

const (
	// inFlight bounds the uploads and removals that run at once.
	inFlight = 16
	// admitted bounds the uploads that run or wait to; a further one holds its caller
	// up, so that files waiting to be stored stay few.
	admitted = 32
)

// uploads writes files behind the back of those who hand them over, and says when
// they are durable. Operations on one key happen in the order in which they were
// asked for.
//
// An upload that failed is kept with its data until it succeeds or its key is
// removed: every barrier over it tries it once more. So a commit can never pass by
// a missing file, whoever asked for it and whoever waited first.
type uploads struct {
	ctx    context.Context // bounds all uploads: they outlive the calls that began them
	cancel context.CancelFunc
	store  *objstore.Store
	admit  chan struct{}
	slots  chan struct{}

	mu   sync.Mutex
	last map[string]*operation // by key: the newest one asked for, until it is done well
}

// operation is one upload or removal.
type operation struct {
	key    string
	data   []byte // nil for a removal
	remove bool
	done   chan struct{}
	err    error // valid after done
}

func newUploads(store *objstore.Store) *uploads {
	ctx, cancel := context.WithCancel(context.Background())
	return &uploads{ctx: ctx, cancel: cancel, store: store,
		admit: make(chan struct{}, admitted), slots: make(chan struct{}, inFlight), last: map[string]*operation{}}
}

// put begins the upload of data, which nobody may change afterwards. It waits while
// too many are under way.
func (u *uploads) put(key string, data []byte) {
	u.admit <- struct{}{}
	u.begin(&operation{key: key, data: data})
}

// remove begins the removal of key, after whatever is under way for it.
func (u *uploads) remove(key string) { u.begin(&operation{key: key, remove: true}) }

func (u *uploads) begin(op *operation) {
	op.done = make(chan struct{})
	u.mu.Lock()
	before := u.last[op.key]
	u.last[op.key] = op
	u.mu.Unlock()
	go func() {
		if before != nil {
			<-before.done // without a slot: before may be waiting for one
		}
		u.slots <- struct{}{}
		if op.remove {
			op.err = u.store.Delete(u.ctx, op.key)
		} else {
			op.err = u.store.Put(u.ctx, op.key, op.data)
		}
		<-u.slots
		if !op.remove {
			<-u.admit
		}
		u.mu.Lock()
		// A removal that failed leaves an orphan, which orphan cleanup finds.
		if u.last[op.key] == op && (op.err == nil || op.remove) {
			delete(u.last, op.key)
		}
		u.mu.Unlock()
		close(op.done)
	}()
}

// pending is the content of a file whose upload is not known to be done.
func (u *uploads) pending(key string) ([]byte, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	op, ok := u.last[key]
	if !ok || op.remove {
		return nil, false
	}
	return op.data, true
}

// barrier returns nil when every upload asked for so far whose key begins with
// prefix is durable. One that has failed is tried once more first.
func (u *uploads) barrier(ctx context.Context, prefix string) error {
	u.mu.Lock()
	var waiting []*operation
	for key, op := range u.last {
		if !op.remove && strings.HasPrefix(key, prefix) {
			waiting = append(waiting, op)
		}
	}
	u.mu.Unlock()
	var errs []error
	for _, op := range waiting {
		if err := u.settle(ctx, op); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// settle waits for op, and begins it again if it failed.
func (u *uploads) settle(ctx context.Context, op *operation) error {
	for try := 0; ; try++ {
		select {
		case <-op.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if op.err == nil || try > 0 {
			return op.err
		}
		u.mu.Lock()
		newest := u.last[op.key]
		u.mu.Unlock()
		if newest != op {
			if newest == nil || newest.remove {
				return nil // done well, or given up, since
			}
			op = newest
			continue
		}
		again := &operation{key: op.key, data: op.data}
		u.admit <- struct{}{}
		u.begin(again)
		op = again
	}
}

// close waits for everything under way, as long as ctx allows, then cancels it. A
// file that could not be stored was never waited for by a commit that succeeded.
func (u *uploads) close(ctx context.Context) {
	defer u.cancel()
	for {
		u.mu.Lock()
		var next *operation
		for _, op := range u.last {
			select {
			case <-op.done:
			default:
				next = op
			}
		}
		u.mu.Unlock()
		if next == nil {
			return
		}
		select {
		case <-next.done:
		case <-ctx.Done():
			return
		}
	}
}
