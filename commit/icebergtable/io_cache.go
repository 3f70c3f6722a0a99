package icebergtable

import (
	"container/list"
	"sync"
)

const (
	// cacheBytes bounds what an IO keeps of the files it has written or read.
	cacheBytes = 32 << 20
	// cacheEntry is the largest file kept.
	cacheEntry = 8 << 20
)

// cache keeps whole files by key, least recently used out first. It is for files
// that never change: manifests, manifest lists, metadata with a unique name.
type cache struct {
	mu    sync.Mutex
	max   int
	size  int
	order *list.List // of *cached, most recent first
	byKey map[string]*list.Element
}

type cached struct {
	key  string
	data []byte
}

func newCache(maxBytes int) *cache {
	return &cache{max: maxBytes, order: list.New(), byKey: map[string]*list.Element{}}
}

func (c *cache) get(key string) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byKey[key]
	if !ok {
		return nil, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached).data, true
}

// put keeps data, which nobody may change afterwards.
func (c *cache) put(key string, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(key)
	if len(data) > min(c.max, cacheEntry) {
		return
	}
	c.byKey[key] = c.order.PushFront(&cached{key, data})
	c.size += len(data)
	for c.size > c.max {
		c.drop(c.order.Back().Value.(*cached).key)
	}
}

func (c *cache) remove(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(key)
}

func (c *cache) drop(key string) {
	if e, ok := c.byKey[key]; ok {
		c.size -= len(e.Value.(*cached).data)
		c.order.Remove(e)
		delete(c.byKey, key)
	}
}
