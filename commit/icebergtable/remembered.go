package icebergtable

import "sync"

// remembered is what a catalog remembers of tables, by their keys. It is only a
// shortcut: the swap of a commit finds out whether it is old. The zero value is
// empty; it is safe for concurrent use.
type remembered[T any] struct {
	mu     sync.Mutex
	tables map[string]T
}

func (m *remembered[T]) remember(ident []string, v T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tables == nil {
		m.tables = map[string]T{}
	}
	m.tables[TableKey(ident)] = v
}

func (m *remembered[T]) forget(ident []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.tables, TableKey(ident))
}

func (m *remembered[T]) recall(ident []string) (T, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.tables[TableKey(ident)]
	return v, ok
}
