package icebergtable

import (
	"context"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore"
)

const hintFile = "version-hint.text"

// hintFor is the version hint that names a metadata file: N for vN.metadata.json,
// as the Hadoop layout has it, else the file's stem. order grows with the table's
// versions; it is 0 where the name tells none.
func hintFor(location string) (text string, order int) {
	base := path.Base(location)
	if n := parseVersion(base); n > 0 {
		return strconv.Itoa(n), n
	}
	stem := strings.TrimSuffix(base, ".metadata.json")
	return stem, hintOrder(stem)
}

// hintOrder is the number that a version hint begins with, or 0.
func hintOrder(text string) int {
	digits := strings.TrimSpace(text)
	if i := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		digits = digits[:i]
	}
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

// parseVersion is N of the file name vN.metadata.json, or 0.
func parseVersion(base string) int {
	digits, ok := strings.CutPrefix(base, "v")
	if digits, ok2 := strings.CutSuffix(digits, ".metadata.json"); ok && ok2 && digits != "" && digits[0] != '0' {
		if n, err := strconv.Atoi(digits); err == nil && n > 0 {
			return n
		}
	}
	return 0
}

// hints keeps version-hint.text of the tables of this process. Writing one is best
// effort: readers probe forward, or name the metadata file. A hint never goes back
// knowingly; two processes that write at the same moment can leave the older one,
// until the next commit.
type hints struct {
	ctx   context.Context // bounds writes in the background
	store *objstore.Store
	// look says whether the stored hint is read before it is written, which costs a
	// request and only local disk gives for nothing.
	look bool

	mu     sync.Mutex
	tables map[string]*tableHint // by key of the hint
}

type tableHint struct {
	want, wrote string
	order       int
	force       bool          // the table was just made: whatever the hint says is of another one
	running     chan struct{} // closed when the writer that is running is done; nil if none is
}

func newHints(ctx context.Context, store *objstore.Store, look bool) *hints {
	return &hints{ctx: ctx, store: store, look: look, tables: map[string]*tableHint{}}
}

// set has the hint in metadataDir name the metadata file at location, unless it is
// known to name a later one. It does not wait.
func (h *hints) set(metadataDir, location string, made bool) {
	key := metadataDir + "/" + hintFile
	text, order := hintFor(location)
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.tables[key]
	if t == nil {
		t = &tableHint{}
		h.tables[key] = t
	}
	if order < t.order && !made {
		return
	}
	t.want, t.order, t.force = text, order, t.force || made
	if t.running == nil {
		t.running = make(chan struct{})
		go h.write(key, t)
	}
}

func (h *hints) write(key string, t *tableHint) {
	for {
		h.mu.Lock()
		text, order, force := t.want, t.order, t.force
		t.force = false
		if text == t.wrote && !force {
			close(t.running)
			t.running = nil
			h.mu.Unlock()
			return
		}
		h.mu.Unlock()
		if !force && h.look {
			if there, err := h.store.Get(h.ctx, key); err == nil && hintOrder(string(there)) > order {
				h.wrote(t, text)
				continue
			}
		}
		// An error leaves the hint behind; the next commit writes it anew.
		_ = h.store.Put(h.ctx, key, []byte(text))
		h.wrote(t, text)
	}
}

func (h *hints) wrote(t *tableHint, text string) {
	h.mu.Lock()
	t.wrote = text
	h.mu.Unlock()
}

// wait returns when the hints in metadataDir ("" for all tables') are written, or ctx ends.
func (h *hints) wait(ctx context.Context, metadataDir string) {
	for {
		h.mu.Lock()
		var running chan struct{}
		for key, t := range h.tables {
			if t.running != nil && (metadataDir == "" || key == metadataDir+"/"+hintFile) {
				running = t.running
				break
			}
		}
		h.mu.Unlock()
		if running == nil {
			return
		}
		select {
		case <-running:
		case <-ctx.Done():
			return
		}
	}
}

// forget drops what is known of a table's hint.
func (h *hints) forget(metadataDir string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := metadataDir + "/" + hintFile
	if t := h.tables[key]; t != nil && t.running == nil {
		delete(h.tables, key)
	}
}
