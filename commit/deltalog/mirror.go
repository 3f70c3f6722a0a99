package deltalog

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// ColumnNamesProperty is the property of an Iceberg table that says, from its creation
// on, whether names that Delta cannot hold by itself are kept by column mapping
// ([ColumnNamesMapped]).
const (
	ColumnNamesProperty = "managed-lakehouse.column-names"
	ColumnNamesMapped   = "map"
)

// Options are a mirror's settings; the zero value is good.
type Options struct {
	// EngineInfo names the writer in commitInfo. All projectors of one table
	// should give the same, so that their bytes are the same.
	EngineInfo string
	// Guard makes other writers refuse the table: see guardFeature. It fixes the
	// protocol of version 0; on a table that exists it is added by the next
	// version.
	Guard bool
	// Now is the clock of tombstones and log cleanup. Nil: time.Now.
	Now func() time.Time
	// Logger may be nil.
	Logger *slog.Logger
}

// DefaultEngineInfo is the engineInfo of commits that name no other.
const DefaultEngineInfo = "managed-lakehouse"

// Mirror brings one Delta log up to one Iceberg table. It is safe for concurrent
// use; other processes may write the same log.
type Mirror struct {
	log  logStore
	opts projectOptions
	now  func() time.Time
	out  *slog.Logger

	mu     sync.Mutex
	loaded bool
	st     state
	seen   time.Time // when st was the log's newest state last, wall clock
	// refused remembers states that were found not to be expressible, so that a
	// mirror that is held does not read their manifests at each call.
	refused map[int64]string

	schemaFor *iceberg.Schema // of schema
	schema    *tableSchema
	schemaErr error

	tidy    sync.Mutex // held over Tidy
	cleaned time.Time  // when Tidy listed the log last
}

// NewMirror is the mirror whose Delta root is the key root of store. It does no I/O.
func NewMirror(store Store, root string, opts Options) *Mirror {
	m := &Mirror{
		log:  logStore{store: store, root: root},
		opts: projectOptions{EngineInfo: opts.EngineInfo, Guard: opts.Guard},
		now:  opts.Now, out: opts.Logger, st: emptyState(), refused: map[int64]string{},
	}
	if m.opts.EngineInfo == "" {
		m.opts.EngineInfo = DefaultEngineInfo
	}
	if m.now == nil {
		m.now = time.Now
	}
	if m.out == nil {
		m.out = slog.New(slog.DiscardHandler)
	}
	return m
}

// Status is what a catch-up came to.
type Status struct {
	// Version is the newest version of the log; -1 where there is none.
	Version int64
	// SnapshotID and Sequence name the Iceberg snapshot that it shows; zero
	// where it shows none.
	SnapshotID, Sequence int64
	// Written is the number of versions that this call wrote; others may have
	// written more.
	Written int
	// Lag is the number of Iceberg snapshots that the log lacks, at least as
	// far as the table's history tells.
	Lag int
	// Held says why the newest state of the table is not projected: Delta cannot
	// express it. "" otherwise.
	Held string
	// Ahead says that the log was written from a newer view of the table than
	// the one given: there is nothing to do for this view.
	Ahead bool
	// TidyDue says that [Mirror.Tidy] has a checkpoint to write.
	TidyDue bool
}

// Appended are the data files of an append that the caller has just committed:
// with them, its version is made without reading a manifest.
type Appended struct {
	SnapshotID int64
	Files      []iceberg.DataFile
}

// stateAge is how long what is remembered of the log is trusted. It must be far
// below logRetention: once old versions are removed, a put-if-absent of a version
// that was there succeeds again, and nobody would ever read it.
const stateAge = 24 * time.Hour

// maxRounds bounds how often one call starts over after losing a race. Each loss
// is another projector's progress.
const maxRounds = 1000

// CatchUp writes the versions that the log lacks of the table's current history:
// one for each snapshot, oldest first. It returns nil also where the mirror is
// held; Status.Held says so. After an error the log may have been brought forward
// in part; the next call goes on from there, whatever happened.
func (m *Mirror) CatchUp(ctx context.Context, tbl *table.Table, known ...Appended) (Status, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	run := &catchUp{m: m, tbl: tbl, meta: tbl.Metadata(), known: known}
	err := run.all(ctx)
	s := Status{
		Version: m.st.version, Sequence: m.st.sequence, Written: run.written, Lag: run.lag, Held: run.held, Ahead: run.ahead,
		TidyDue: checkpointDue(m.st),
	}
	if m.st.hasSnapshot && m.st.snapshotID != noSnapshot {
		s.SnapshotID = m.st.snapshotID
	}
	if err != nil {
		return s, fmt.Errorf("bringing the Delta log %s up to the Iceberg table: %w", m.log.store.Location(m.log.root+"/"+logFolder), err)
	}
	return s, nil
}

// Forget drops what is remembered of the log: the next call reads it anew.
func (m *Mirror) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.loaded = false
	clear(m.refused)
}
