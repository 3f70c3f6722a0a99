package deltalog

import (
	"cmp"
	"slices"
)

// liveFile is a live file of the log, with its raw path below the root.
type liveFile struct {
	rel string
	add *Add
}

// replay folds versions into a set of live files and tombstones.
type replay struct {
	root    string // location of the Delta root
	live    map[fileKey]liveFile
	removed map[fileKey]*Remove
}

// fileKey is what identifies a file in the log: its path, and the deletes that
// it carries.
type fileKey struct{ rel, dv string }

func newReplay(root string) *replay {
	return &replay{root: root, live: map[fileKey]liveFile{}, removed: map[fileKey]*Remove{}}
}

func (r *replay) apply(actions []Action) {
	for _, a := range actions {
		if a.Remove != nil {
			k := r.key(a.Remove.Path, a.Remove.DeletionVector)
			delete(r.live, k)
			r.removed[k] = a.Remove
		}
	}
	for _, a := range actions {
		if a.Add != nil {
			k := r.key(a.Add.Path, a.Add.DeletionVector)
			delete(r.removed, k)
			r.live[k] = liveFile{rel: k.rel, add: a.Add}
		}
	}
}

func (r *replay) key(path string, dv *DeletionVector) fileKey {
	k := fileKey{rel: decodePath(r.root, path)}
	if dv != nil {
		k.dv = dv.StorageType + dv.PathOrInlineDv
	}
	return k
}

// files are the live files in order of their paths.
func (r *replay) files() []liveFile {
	out := make([]liveFile, 0, len(r.live))
	for _, f := range r.live {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b liveFile) int { return cmp.Compare(a.add.Path, b.add.Path) })
	return out
}

// touches tells whether the versions folded so far say something of an action's
// file.
func (r *replay) touches(a Action) bool {
	var k fileKey
	switch {
	case a.Add != nil:
		k = r.key(a.Add.Path, a.Add.DeletionVector)
	case a.Remove != nil:
		k = r.key(a.Remove.Path, a.Remove.DeletionVector)
	}
	_, live := r.live[k]
	_, removed := r.removed[k]
	return live || removed
}

// tombstones are the removes in order of their paths.
func (r *replay) tombstones() []*Remove {
	out := make([]*Remove, 0, len(r.removed))
	for _, rm := range r.removed {
		out = append(out, rm)
	}
	slices.SortFunc(out, func(a, b *Remove) int { return cmp.Compare(a.Path, b.Path) })
	return out
}
