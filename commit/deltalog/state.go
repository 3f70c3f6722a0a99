package deltalog

import (
	"fmt"
	"maps"
	"strings"

	"github.com/google/uuid"
)

// state is what the log says at one version, without its files: what the next
// version is decided from. It is a value: apply returns a new one.
type state struct {
	version  int64 // -1: there is no log
	protocol *Protocol
	metaData *MetaData
	txns     map[string]Txn

	// The snapshot that the version shows.
	table       uuid.UUID // zero: none
	sequence    int64
	snapshotID  int64
	hasSnapshot bool // snapshotID is known; else only sequence is

	// foreign says that data or metadata were changed by another writer since
	// the mirror's last version; "" otherwise.
	foreign string
	// view is the one that a version named last.
	view IcebergView

	checkpoint int64 // newest checkpoint known; -1: none
	liveFiles  int64 // count of live files; approximate after foreign versions
}

func emptyState() state { return state{version: -1, checkpoint: -1} }

// apply is the state after one more version.
func (s state) apply(v int64, actions []Action) state {
	s.version = v
	s.txns = maps.Clone(s.txns)
	var info *CommitInfo
	changes := false
	for _, a := range actions {
		switch {
		case a.CommitInfo != nil:
			info = a.CommitInfo
		case a.Protocol != nil:
			s.protocol, changes = a.Protocol, true
		case a.MetaData != nil:
			s.metaData, changes = a.MetaData, true
		case a.Txn != nil:
			s.applyTxn(*a.Txn)
		case a.Add != nil:
			s.liveFiles++
			changes = true
		case a.Remove != nil:
			s.liveFiles = max(0, s.liveFiles-1)
			changes = true
		}
	}
	if info == nil || info.IcebergSnapshotID == nil {
		if changes {
			writer := "an unknown writer"
			if info != nil && info.EngineInfo != "" {
				writer = info.EngineInfo
			}
			s.foreign = fmt.Sprintf("version %d was written by %s", v, writer)
		}
		return s
	}
	s.snapshotID, s.hasSnapshot = *info.IcebergSnapshotID, true
	for _, a := range actions {
		if a.Txn != nil && strings.HasPrefix(a.Txn.AppID, appIDPrefix) {
			if id, err := uuid.Parse(strings.TrimPrefix(a.Txn.AppID, appIDPrefix)); err == nil {
				s.table, s.sequence = id, a.Txn.Version
			}
		}
	}
	if v := info.IcebergView; v != nil {
		// It was made from the live files themselves, and only ever from a newer
		// view than the last, or from another table's.
		s.foreign, s.view = "", *v
	}
	return s
}

func (s *state) applyTxn(t Txn) {
	if s.txns == nil {
		s.txns = map[string]Txn{}
	}
	s.txns[t.AppID] = t
}

// fromCheckpoint is the state that a checkpoint holds. Which snapshot it shows
// is known by sequence number only; the commit of the same version tells the id.
func fromCheckpoint(version int64, header []Action, liveFiles int64) state {
	s := emptyState()
	s.version, s.checkpoint, s.liveFiles = version, version, liveFiles
	for _, a := range header {
		switch {
		case a.Protocol != nil:
			s.protocol = a.Protocol
		case a.MetaData != nil:
			s.metaData = a.MetaData
		case a.Txn != nil:
			s.applyTxn(*a.Txn)
			if id, err := uuid.Parse(strings.TrimPrefix(a.Txn.AppID, appIDPrefix)); err == nil && strings.HasPrefix(a.Txn.AppID, appIDPrefix) {
				// Of several tables that were mirrored here in turn, the last to
				// be written is the one shown.
				if s.table == uuid.Nil || later(*a.Txn, s.txns[appID(s.table)]) {
					s.table, s.sequence = id, a.Txn.Version
				}
			}
		}
	}
	return s
}

func later(a, b Txn) bool {
	return a.LastUpdated != nil && (b.LastUpdated == nil || *a.LastUpdated > *b.LastUpdated)
}

// confirm takes from the commit of a checkpoint's own version what a checkpoint
// does not hold.
func (s state) confirm(actions []Action) state {
	after := state{table: s.table, sequence: s.sequence}.apply(s.version, actions)
	s.foreign, s.view = after.foreign, after.view
	s.snapshotID, s.hasSnapshot = after.snapshotID, after.hasSnapshot
	s.table, s.sequence = after.table, after.sequence
	return s
}
