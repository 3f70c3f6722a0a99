package deltalog

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore"
)

// checkpointInterval is the least number of versions between checkpoints. For a
// table of many files it is live files / 100, so that what is written to
// checkpoints stays in proportion to what is written to the table.
const checkpointInterval = 10

// logRetention is how long versions can be travelled to.
const logRetention = 30 * 24 * time.Hour

// cleanupEvery is how often a mirror lists its log for what is past its time.
const cleanupEvery = 24 * time.Hour

// checkpointDue tells whether the state should be checkpointed: where it is at,
// or has passed, a multiple of the interval since the newest checkpoint.
func checkpointDue(st state) bool {
	every := max(checkpointInterval, st.liveFiles/100)
	return st.version > 0 && st.version/every > max(0, st.checkpoint)/every
}

// Tidied is what a [Mirror.Tidy] did.
type Tidied struct {
	Checkpoint int64 // version checkpointed; -1: none was due
	Deleted    int   // log objects removed
}

// Tidy writes a checkpoint, if one is due, and then, once a day, removes the
// log objects that are past their time. It reads and writes only what is committed, may run beside
// CatchUp, here and in other processes, and may fail at any point without harm:
// the next call does what is left.
func (m *Mirror) Tidy(ctx context.Context) (Tidied, error) {
	m.tidy.Lock()
	defer m.tidy.Unlock()
	out := Tidied{Checkpoint: -1}
	m.mu.Lock()
	st, loaded := m.st, m.loaded
	m.mu.Unlock()
	if !loaded {
		var err error
		if st, err = m.log.load(ctx); err != nil {
			return out, err
		}
	}
	if !checkpointDue(st) {
		return out, nil
	}
	if err := m.checkpoint(ctx, st); err != nil {
		return out, err
	}
	out.Checkpoint = st.version
	if !m.cleaned.IsZero() && m.now().Sub(m.cleaned).Abs() < cleanupEvery {
		return out, nil
	}
	n, err := m.cleanUp(ctx)
	out.Deleted = n
	if err == nil {
		m.cleaned = m.now()
	}
	return out, err
}

// checkpoint folds the newest checkpoint and the versions since into a new one.
func (m *Mirror) checkpoint(ctx context.Context, st state) error {
	var older []byte
	if st.checkpoint >= 0 {
		var err error
		if older, err = m.log.store.Get(ctx, m.log.key(checkpointName(st.checkpoint))); err != nil {
			return err
		}
	}
	tail := newReplay(m.log.store.Location(m.log.root))
	err := m.log.tail(ctx, st.checkpoint+1, st.version, func(_ int64, actions []Action) error { tail.apply(actions); return nil })
	if err != nil {
		return err
	}
	w, err := newCheckpointWriter(memory.DefaultAllocator)
	if err != nil {
		return err
	}
	defer w.release()
	if err := writeCheckpoint(ctx, w, st, older, tail, m.now().Add(-tombstoneAge).UnixMilli()); err != nil {
		return fmt.Errorf("checkpoint %d of the Delta log %s: %w", st.version, m.log.store.Location(m.log.root+"/"+logFolder), err)
	}
	data, err := w.close()
	if err != nil {
		return err
	}
	if err := m.log.store.Put(ctx, m.log.key(checkpointName(st.version)), data); err != nil {
		return err
	}
	// The pointer comes after the checkpoint is durable, and never goes back.
	if p, ok, err := m.log.pointer(ctx); err != nil {
		return err
	} else if !ok || p.Version < st.version {
		text, err := json.Marshal(lastCheckpoint{Version: st.version, Size: w.actions, SizeInBytes: int64(len(data)), NumOfAddFiles: w.live})
		if err != nil {
			return err
		}
		if err := m.log.store.Put(ctx, m.log.key(lastCheckpointName), text); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.loaded && m.st.checkpoint < st.version && m.st.version >= st.version {
		m.st.checkpoint = st.version
		m.st.liveFiles = w.live + m.st.liveFiles - st.liveFiles
	}
	return nil
}

// expired says which log objects are past their time: those below the newest
// checkpoint that is itself older than cutoff, so that every version since the
// cut-off stays readable. They come in ascending order; removed in that order, a
// log is whole from some version on at any moment.
func expired(objects []objstore.Object, prefix string, cutoff time.Time) []string {
	keep := int64(-1)
	for _, o := range objects {
		v, kind, ok := parseName(strings.TrimPrefix(o.Key, prefix))
		if ok && kind == "checkpoint.parquet" && !o.ModTime.After(cutoff) {
			keep = max(keep, v)
		}
	}
	var out []string
	for _, o := range objects {
		v, kind, ok := parseName(strings.TrimPrefix(o.Key, prefix))
		if ok && v < keep && !o.ModTime.After(cutoff) && (kind == "json" || kind == "checkpoint.parquet" || kind == "crc") {
			out = append(out, o.Key)
		}
	}
	return out
}

// cleanUp lists the log and removes what is expired.
func (m *Mirror) cleanUp(ctx context.Context) (deleted int, err error) {
	prefix := m.log.key("")
	var objects []objstore.Object
	for o, err := range m.log.store.List(ctx, prefix, "") {
		if err != nil {
			return 0, err
		}
		objects = append(objects, o)
	}
	for _, key := range expired(objects, prefix, m.now().Add(-logRetention)) {
		if err := m.log.store.Delete(ctx, key); err != nil {
			return deleted, err
		}
		deleted++
	}
	return deleted, nil
}
