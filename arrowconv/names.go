package arrowconv

import (
	"strings"
	"sync"
	"unicode/utf8"
)

// reserved are the names of metadata columns of Iceberg and of Delta's change
// feed, in lower case. A top-level column of that name could not be read back.
// Other names with a leading underscore are ordinary.
var reserved = map[string]string{
	"_file":                         "Iceberg",
	"_pos":                          "Iceberg",
	"_deleted":                      "Iceberg",
	"_spec_id":                      "Iceberg",
	"_partition":                    "Iceberg",
	"_row_id":                       "Iceberg",
	"_last_updated_sequence_number": "Iceberg",
	"_change_ordinal":               "Iceberg",
	"_commit_snapshot_id":           "Iceberg",
	"_change_type":                  "Delta and Iceberg",
	"_commit_version":               "Delta",
	"_commit_timestamp":             "Delta",
}

// fold is the key under which names that differ only in case meet.
func fold(name string) string { return strings.ToLower(name) }

// awkward tells whether a character keeps a name out of a Delta table without
// column mapping, or is a control character.
func awkward(r rune) bool {
	switch r {
	case ' ', ',', ';', '{', '}', '(', ')', '=', '`':
		return true
	}
	return control(r)
}

func control(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }

// storedName gives the name under which a field is stored, or the reason why it
// cannot be stored under the policy.
func storedName(name string, policy NamePolicy) (stored, problem string) {
	plain := name != ""
	for i := 0; i < len(name) && plain; i++ {
		c := name[i]
		plain = c < utf8.RuneSelf && !awkward(rune(c))
	}
	if plain {
		return name, ""
	}
	if policy == NormalizeNames {
		if name == "" {
			return "_", ""
		}
		return strings.Map(func(r rune) rune {
			if awkward(r) {
				return '_'
			}
			return r
		}, name), ""
	}
	if name == "" {
		return "", "an empty name cannot be stored"
	}
	if strings.ContainsFunc(name, control) {
		return "", "a name with a control character cannot be stored"
	}
	if policy == RejectNames && strings.ContainsFunc(name, awkward) {
		return "", "a name with a space or one of ,;{}()=` cannot be stored (column_names: normalize would store it with underscores)"
	}
	return name, ""
}

// reservedBy names the format that keeps a top-level name for itself, or "".
func reservedBy(name string) string { return reserved[fold(name)] }

// Rename tells that the field From is stored as To.
type Rename struct{ From, To string }

// renames remembers what was renamed, so that each is reported once. Safe for
// concurrent use.
type renames struct {
	seen  sync.Map // of Rename
	mu    sync.Mutex
	count int
	news  []Rename
}

// maxRenames bounds what is remembered and reported, against names that are data.
const maxRenames = 10_000

func (r *renames) note(n Rename) {
	if _, ok := r.seen.Load(n); ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count >= maxRenames {
		return
	}
	if _, ok := r.seen.LoadOrStore(n, struct{}{}); !ok {
		r.count++
		r.news = append(r.news, n)
	}
}

// take gives the renames that were not reported yet.
func (r *renames) take() []Rename {
	r.mu.Lock()
	defer r.mu.Unlock()
	news := r.news
	r.news = nil
	return news
}
