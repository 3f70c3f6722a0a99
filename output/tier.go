package output

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// tier bounds what streaming outputs may be set to.
type tier struct {
	Name        string
	MinInterval time.Duration // shortest commit_interval
	MaxTables   int           // streaming tables of the process; 0: any number
}

// tiers in rising order.
var tiers = []tier{
	{"professional", 5 * time.Minute, 2},
	{"premium", time.Minute, 10},
	{"enterprise", 10 * time.Second, 0},
	{"unlimited", 0, 0},
}

const defaultTier = "enterprise"

func tierNames() (names []string) {
	for _, t := range tiers {
		names = append(names, t.Name)
	}
	return names
}

func tierNamed(name string) (tier, error) {
	for _, t := range tiers {
		if t.Name == name {
			return t, nil
		}
	}
	return tier{}, fmt.Errorf("field tier: %q is no tier; it may be %s", name, strings.Join(tierNames(), ", "))
}

// defaultInterval is the commit_interval of a tier where none is set.
func (t tier) defaultInterval() time.Duration { return max(60*time.Second, t.MinInterval) }

// tableRegistry counts the streaming tables of a process, over all of its outputs. A
// table counts from its first row until the process ends, whether or not its output
// still runs. Safe for concurrent use.
type tableRegistry struct {
	mu      sync.Mutex
	counted map[string]struct{}
	claimed map[string]int // by outputs whose config names one table, while they live
}

// streamingTables is the registry of this process.
var streamingTables = newTableRegistry()

func newTableRegistry() *tableRegistry {
	return &tableRegistry{counted: map[string]struct{}{}, claimed: map[string]int{}}
}

// count admits a table at its first row, or says why the tier does not.
func (r *tableRegistry) count(t tier, table string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.counted[table]; ok {
		return nil
	}
	if t.MaxTables > 0 && len(r.counted) >= t.MaxTables {
		return tooMany(t, table, r.names())
	}
	r.counted[table] = struct{}{}
	return nil
}

// claim announces the only table of an output that is being built, so that one too
// many is found before any row is read.
func (r *tableRegistry) claim(t tier, table string) (release func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := r.names()
	if t.MaxTables > 0 && len(names) >= t.MaxTables && !slices.Contains(names, table) {
		return nil, tooMany(t, table, names)
	}
	r.claimed[table]++
	return sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.claimed[table]--; r.claimed[table] <= 0 {
			delete(r.claimed, table)
		}
	}), nil
}

func (r *tableRegistry) names() (names []string) {
	for n := range r.counted {
		names = append(names, n)
	}
	for n := range r.claimed {
		if _, ok := r.counted[n]; !ok {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names
}

func tooMany(t tier, table string, have []string) error {
	return fmt.Errorf("tier: %s allows %d streaming tables in a process, and %s would be one more beside %s; use a higher tier, or write it with streaming off",
		t.Name, t.MaxTables, table, strings.Join(have, ", "))
}
