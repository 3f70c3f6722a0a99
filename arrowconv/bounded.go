package arrowconv

import (
	"fmt"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// boundedAllocator panics when more is asked for than a payload can lawfully
// need: its lengths come from the payload, and a damaged one may claim
// terabytes. The converter recovers from the panic and refuses the message.
type boundedAllocator struct {
	memory.Allocator
	left *atomic.Int64 // bytes
}

// payloadMemory is what the records of one payload may take at a time, beside a
// multiple of its own size for compression.
const payloadMemory = 256 << 20

func boundMemory(mem memory.Allocator, payload int) memory.Allocator {
	left := &atomic.Int64{}
	left.Store(payloadMemory + 8*int64(payload))
	return boundedAllocator{mem, left}
}

func (a boundedAllocator) take(n int) {
	if n < 0 || a.left.Add(-int64(n)) < 0 {
		a.left.Add(int64(n))
		panic(fmt.Sprintf("it asks for %d bytes of memory", n))
	}
}

func (a boundedAllocator) Allocate(size int) []byte {
	a.take(size)
	return a.Allocator.Allocate(size)
}

func (a boundedAllocator) Reallocate(size int, b []byte) []byte {
	if more := size - len(b); more > 0 {
		a.take(more)
	} else {
		a.left.Add(-int64(more))
	}
	return a.Allocator.Reallocate(size, b)
}

func (a boundedAllocator) Free(b []byte) {
	a.left.Add(int64(len(b)))
	a.Allocator.Free(b)
}
