package deltalog

import (
	"context"
	"encoding/json"
	"fmt"
)

// Contents is a log as a reader finds it, for comparing the formats and for
// deciding what may be deleted.
type Contents struct {
	Version              int64 // -1: there is no log
	SnapshotID, Sequence int64 // of the Iceberg snapshot shown; zero: unknown
	Files                []LiveFile
	Tombstones           []Tombstone
}

// LiveFile is a live data file of the log.
type LiveFile struct {
	Path    string // raw, relative to the Delta root
	Size    int64  // bytes
	Records int64  // -1: not in its statistics
}

// Tombstone is a file that is not live any more, but that older versions refer to.
type Tombstone struct {
	Path    string // raw, relative to the Delta root
	Deleted int64  // ms since the epoch; zero: unknown
}

// Read reads the newest version of the log anew. Checkpoints forget tombstones
// that are older than seven days.
func (m *Mirror) Read(ctx context.Context) (Contents, error) {
	st, err := m.log.load(ctx)
	if err != nil {
		return Contents{}, fmt.Errorf("reading the Delta log %s: %w", m.log.store.Location(m.log.root+"/"+logFolder), err)
	}
	out := Contents{Version: st.version, Sequence: st.sequence}
	if st.hasSnapshot && st.snapshotID != noSnapshot {
		out.SnapshotID = st.snapshotID
	}
	if st.version < 0 {
		return out, nil
	}
	r, err := m.log.replay(ctx, st.checkpoint, st.version)
	if err != nil {
		return Contents{}, err
	}
	for _, f := range r.files() {
		out.Files = append(out.Files, LiveFile{Path: f.rel, Size: f.add.Size, Records: recordsOf(f.add.Stats)})
	}
	for _, rm := range r.tombstones() {
		t := Tombstone{Path: decodePath(r.root, rm.Path)}
		if rm.DeletionTimestamp != nil {
			t.Deleted = *rm.DeletionTimestamp
		}
		out.Tombstones = append(out.Tombstones, t)
	}
	return out, nil
}

func recordsOf(stats string) int64 {
	var s struct {
		NumRecords *int64 `json:"numRecords"`
	}
	if json.Unmarshal([]byte(stats), &s) != nil || s.NumRecords == nil {
		return -1
	}
	return *s.NumRecords
}
