package deltalog

import (
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestDecide(t *testing.T) {
	b := newBench(t, idSchema(), nil)
	for range 4 {
		b.append(1)
	}
	meta := b.table().Metadata()
	snaps := meta.Snapshots()
	view := viewOf(meta)
	at := func(i int) state {
		st := shown(t)
		st.table, st.sequence = meta.TableUUID(), snaps[i].SequenceNumber
		st.snapshotID, st.hasSnapshot = snaps[i].SnapshotID, true
		return st
	}
	with := func(st state, change func(*state)) state { change(&st); return st }
	const hour = 3600_000
	for name, c := range map[string]struct {
		st    state
		step  step
		walk  []int64 // sequence numbers
		lag   int
		ahead bool
		held  bool
	}{
		"no log":                           {st: emptyState(), step: stepWalk, walk: []int64{1, 2, 3, 4}, lag: 4},
		"up to date":                       {st: at(3), step: stepSchema},
		"two behind":                       {st: at(1), step: stepWalk, walk: []int64{3, 4}, lag: 2},
		"by sequence":                      {st: with(at(1), func(s *state) { s.hasSnapshot, s.snapshotID = false, 0 }), step: stepWalk, walk: []int64{3, 4}, lag: 2},
		"not a parent":                     {st: with(at(1), func(s *state) { s.snapshotID = 77 }), step: stepDifference, walk: []int64{4}, lag: 4},
		"neither":                          {st: with(at(1), func(s *state) { s.hasSnapshot, s.sequence = false, 0 }), step: stepDifference, walk: []int64{4}, lag: 4},
		"another table":                    {st: with(at(1), func(s *state) { s.table = uuid.Max }), step: stepDifference, walk: []int64{4}, lag: 4},
		"another table, with a newer view": {st: with(at(1), func(s *state) { s.table, s.view, s.sequence = uuid.Max, IcebergView{99, 99}, 99 }), step: stepDifference, walk: []int64{4}, lag: 4},
		"foreign":                          {st: with(at(3), func(s *state) { s.foreign = "x" }), step: stepDifference, walk: []int64{4}, lag: 1},
		"newer":                            {st: with(at(3), func(s *state) { s.snapshotID, s.sequence = 77, 5 }), ahead: true},
		"newer view":                       {st: with(at(1), func(s *state) { s.view = IcebergView{view.LastSequenceNumber, view.LastUpdated + 1} }), ahead: true},
		"later snapshot in the view":       {st: with(at(1), func(s *state) { s.view = IcebergView{view.LastSequenceNumber + 1, 0} }), ahead: true},
		// Another machine's clock was ahead when it wrote a difference.
		"older view, later clock": {st: with(at(2), func(s *state) { s.view = IcebergView{view.LastSequenceNumber - 1, view.LastUpdated + hour} }), step: stepWalk, walk: []int64{4}, lag: 1},
		"no mirror":               {st: with(at(1), func(s *state) { s.table = uuid.Nil }), lag: 1, held: true},
		"foreign protocol":        {st: with(at(1), func(s *state) { s.protocol = &Protocol{MinReaderVersion: 2, MinWriterVersion: 5} }), lag: 1, held: true},
		"format 1, upgraded":      {st: with(at(0), func(s *state) { s.snapshotID, s.sequence = 77, view.LastUpdated-1 }), step: stepDifference, walk: []int64{4}, lag: 4},
	} {
		t.Run(name, func(t *testing.T) {
			p := decide(c.st, meta)
			require.Equal(t, c.step, p.step)
			require.Equal(t, c.lag, p.lag)
			require.Equal(t, c.ahead, p.ahead)
			require.Equal(t, c.held, p.held != "")
			require.Equal(t, c.step == stepDifference, p.why != "")
			var walk []int64
			for _, s := range p.walk {
				walk = append(walk, s.SequenceNumber)
			}
			require.Equal(t, c.walk, walk)
		})
	}
}

// Format version 1 has no sequence numbers: time stands in for them, and the
// upgrade to 2 changes nothing.
func TestFormatVersion1(t *testing.T) {
	b := newBench(t, idSchema(), iceberg.Properties{table.PropertyFormatVersion: "1"})
	require.Equal(t, 1, b.table().Metadata().Version())
	m := b.mirror()
	b.append(1)
	b.append(2)
	require.Equal(t, 2, b.catchUp(m).Written)
	b.append(3)
	require.Equal(t, 1, b.catchUp(b.mirror()).Written)
	require.Zero(t, b.catchUp(b.mirror()).Written)
	b.requireEqual()
	b.commit(func(txn *table.Transaction) error { return txn.UpgradeFormatVersion(2) })
	b.append(4)
	s := b.catchUp(m)
	require.Equal(t, int64(3), s.Version)
	require.False(t, s.Ahead)
	require.Equal(t, int64(1), s.Sequence)
	b.append(5)
	require.Equal(t, 1, b.catchUp(b.mirror()).Written)
	b.requireEqual()
}

// Format version 3: appended by a row delta, since row ids are assigned there.
func TestFormatVersion3(t *testing.T) {
	b := newBench(t, idSchema(), iceberg.Properties{table.PropertyFormatVersion: "3"})
	m := b.mirror()
	for i := range 3 {
		f := b.dataFile(b.name(), int64(i+1))
		b.commit(func(txn *table.Transaction) error { return txn.NewRowDelta(nil).AddRows(f).Commit(t.Context()) })
		require.Equal(t, 1, b.catchUp(m, Appended{b.table().CurrentSnapshot().SnapshotID, []iceberg.DataFile{f}}).Written)
	}
	b.requireEqual()
}
