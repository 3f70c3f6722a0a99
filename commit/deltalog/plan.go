package deltalog

import (
	"fmt"
	"slices"

	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
)

// step is what a plan does next.
type step int

const (
	// stepNone: the log shows the table's current state, as far as this view of
	// the table reaches.
	stepNone step = iota
	// stepWalk: one version for each snapshot of the plan, in order.
	stepWalk
	// stepDifference: one version with the difference of the live file sets.
	stepDifference
	// stepSchema: the current snapshot is shown; only the schema went on.
	stepSchema
)

// plan says how the log gets from its state to the table's.
type plan struct {
	step step
	// walk are the snapshots to project, oldest first. With stepDifference it
	// holds the current one alone, or nothing where the table has none.
	walk []table.Snapshot
	// lag is the number of snapshots that the log lacks, at least as far as the
	// table's history tells.
	lag int
	// ahead: the log was written from a newer view of the table than this one.
	ahead bool
	// why tells the reason of a difference.
	why string
	// held says why nothing may be written at all; "" otherwise.
	held string
}

// firstWalk bounds how long a history is replayed into a log that does not exist
// yet: a table with a longer one (adopted from another engine) starts with its
// current state.
const firstWalk = 100

// decide plans how a log in state st is brought up to the table. It is a pure
// function.
func decide(st state, meta table.Metadata) plan {
	head := meta.CurrentSnapshot()
	id := meta.TableUUID()
	switch {
	case st.version >= 0 && st.table == uuid.Nil:
		return plan{lag: 1, held: "the folder holds a Delta table that is not the mirror of an Iceberg table; move its _delta_log away, or give the Iceberg table another data path"}
	case st.version >= 0 && st.protocol.unsupported() != "":
		return plan{lag: 1, held: fmt.Sprintf("another writer changed the protocol of the Delta table (%s); move its _delta_log away and let it be made anew", st.protocol.unsupported())}
	case head == nil && (st.version < 0 || st.table == id && st.foreign == ""):
		return plan{} // nothing was ever committed
	case head == nil:
		return plan{step: stepDifference, lag: 1, why: "the table was made anew"}
	}
	lookup := meta.SnapshotByID
	if st.version < 0 {
		chain, whole := table.AncestorsOfChecked(head.SnapshotID, lookup)
		if whole && len(chain) <= firstWalk {
			slices.Reverse(chain)
			return plan{step: stepWalk, walk: chain, lag: len(chain)}
		}
		return plan{step: stepDifference, walk: []table.Snapshot{*head}, lag: len(chain), why: "the log is new and the table is not"}
	}
	if st.table != id {
		return plan{step: stepDifference, walk: []table.Snapshot{*head}, lag: max(1, len(table.AncestorsOf(head.SnapshotID, lookup))), why: "the log shows another table: this one was made anew"}
	}
	if logIsAhead(st, meta) {
		return plan{ahead: true}
	}
	if st.foreign != "" {
		return plan{step: stepDifference, walk: []table.Snapshot{*head}, lag: 1, why: st.foreign}
	}
	at, known := st.snapshotID, st.hasSnapshot
	if !known {
		at, known = bySequence(head, st.sequence, lookup)
	}
	if known && at == head.SnapshotID {
		return plan{step: stepSchema}
	}
	chain, found := table.AncestorsBetween(head.SnapshotID, at, lookup)
	if !known || !found {
		return plan{step: stepDifference, walk: []table.Snapshot{*head}, lag: max(1, len(chain)), why: "the snapshot that was projected last is not in the table's history any more"}
	}
	slices.Reverse(chain)
	return plan{step: stepWalk, walk: chain, lag: len(chain)}
}

// noSnapshot is the id of the state before a table's first snapshot.
const noSnapshot = -1

// logIsAhead tells whether the log was written from a newer view of the table
// than this one: it names one, or its snapshot is not known here and younger than
// all that are.
func logIsAhead(st state, meta table.Metadata) bool {
	if st.view.newerThan(viewOf(meta)) {
		return true
	}
	if st.hasSnapshot && meta.SnapshotByID(st.snapshotID) != nil {
		return false
	}
	last := meta.LastSequenceNumber()
	if st.sequence >= firstTimeSequence { // see sequenceOf
		last = meta.LastUpdatedMillis()
	}
	return st.sequence > last
}

// viewOf tells how new a table's metadata is.
func viewOf(meta table.Metadata) IcebergView {
	return IcebergView{LastSequenceNumber: meta.LastSequenceNumber(), LastUpdated: meta.LastUpdatedMillis()}
}

// bySequence finds the snapshot with a sequence number in the history of head.
func bySequence(head *table.Snapshot, sequence int64, lookup table.SnapshotLookup) (int64, bool) {
	if sequence <= 0 {
		return 0, false
	}
	for _, s := range table.AncestorsOf(head.SnapshotID, lookup) {
		if sequenceOf(s) == sequence {
			return s.SnapshotID, true
		}
	}
	return 0, false
}
