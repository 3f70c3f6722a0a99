package deltalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore"
)

// Store is what the log needs of an object store; [*objstore.Store] is one.
type Store interface {
	Location(key string) string
	Get(ctx context.Context, key string) ([]byte, error)
	OpenReader(ctx context.Context, key string) (objstore.Reader, error)
	Put(ctx context.Context, key string, data []byte) error
	PutIfAbsent(ctx context.Context, key string, data []byte) error
	Delete(ctx context.Context, key string) error
	List(ctx context.Context, prefix, startAfter string) iter.Seq2[objstore.Object, error]
}

// logStore reads and writes the objects of one log. It decides nothing.
type logStore struct {
	store Store
	root  string // key of the Delta root
}

const logFolder = "_delta_log"

func (l logStore) key(name string) string { return l.root + "/" + logFolder + "/" + name }

func commitName(v int64) string     { return fmt.Sprintf("%020d.json", v) }
func checkpointName(v int64) string { return fmt.Sprintf("%020d.checkpoint.parquet", v) }

const lastCheckpointName = "_last_checkpoint"

// parseName reads the version and the rest of a log object's name.
func parseName(name string) (v int64, kind string, ok bool) {
	digits, kind, ok := strings.Cut(name, ".")
	if !ok || len(digits) != 20 {
		return 0, "", false
	}
	v, err := strconv.ParseInt(digits, 10, 64)
	return v, kind, err == nil && v >= 0
}

// lastCheckpoint is the content of _last_checkpoint (Delta protocol, "Last
// Checkpoint File").
type lastCheckpoint struct {
	Version       int64 `json:"version"`
	Size          int64 `json:"size"` // actions
	SizeInBytes   int64 `json:"sizeInBytes,omitempty"`
	NumOfAddFiles int64 `json:"numOfAddFiles,omitempty"`
	Parts         *int  `json:"parts,omitempty"`
}

// read is one version's actions. A version that is not there is
// [objstore.ErrNotFound].
func (l logStore) read(ctx context.Context, v int64) ([]Action, error) {
	data, err := l.store.Get(ctx, l.key(commitName(v)))
	if err != nil {
		return nil, err
	}
	actions, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.store.Location(l.key(commitName(v))), err)
	}
	return actions, nil
}

// window is the number of versions that are read side by side.
const window = 8

// tail calls each for every version from from on, in order, until one is not
// there or, with to >= 0, to is done.
func (l logStore) tail(ctx context.Context, from, to int64, each func(v int64, actions []Action) error) error {
	for ; ; from += window {
		var got [window][]Action
		var missing [window]bool
		g, gctx := errgroup.WithContext(ctx)
		n := window
		if to >= 0 {
			n = int(min(window, to-from+1))
		}
		for i := range n {
			g.Go(func() error {
				actions, err := l.read(gctx, from+int64(i))
				if errors.Is(err, objstore.ErrNotFound) {
					missing[i] = true
					return nil
				}
				got[i] = actions
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		for i := range n {
			v := from + int64(i)
			if missing[i] {
				if to >= 0 {
					return fmt.Errorf("the Delta log %s lacks version %d", l.store.Location(l.root+"/"+logFolder), v)
				}
				return nil
			}
			if err := each(v, got[i]); err != nil {
				return err
			}
		}
		if n < window || to >= 0 && from+window > to {
			return nil
		}
	}
}

// pointer reads _last_checkpoint; ok is false where there is none, or where it
// points to a checkpoint that is not of the classic kind.
func (l logStore) pointer(ctx context.Context) (lastCheckpoint, bool, error) {
	data, err := l.store.Get(ctx, l.key(lastCheckpointName))
	if errors.Is(err, objstore.ErrNotFound) {
		return lastCheckpoint{}, false, nil
	}
	if err != nil {
		return lastCheckpoint{}, false, err
	}
	var p lastCheckpoint
	// It is a hint only: one that cannot be read is as good as none.
	if json.Unmarshal(data, &p) != nil || p.Parts != nil && *p.Parts > 1 {
		return lastCheckpoint{}, false, nil
	}
	return p, true, nil
}

// newest lists the log for its newest checkpoint and its oldest commit, -1 where
// there is none. It is only for a log without a usable _last_checkpoint.
func (l logStore) newest(ctx context.Context) (checkpoint, oldest int64, err error) {
	checkpoint, oldest = -1, -1
	prefix := l.key("")
	for o, err := range l.store.List(ctx, prefix, "") {
		if err != nil {
			return -1, -1, err
		}
		v, kind, ok := parseName(strings.TrimPrefix(o.Key, prefix))
		switch {
		case !ok:
		case kind == "checkpoint.parquet":
			checkpoint = v
		case kind == "json" && oldest < 0:
			oldest = v
		}
	}
	return checkpoint, oldest, nil
}

// load reads the log's state: the newest checkpoint and all versions after it.
func (l logStore) load(ctx context.Context) (state, error) {
	st, err := l.base(ctx)
	if err != nil {
		return state{}, err
	}
	err = l.tail(ctx, st.version+1, -1, func(v int64, actions []Action) error {
		st = st.apply(v, actions)
		return nil
	})
	return st, err
}

// base is the state at the newest checkpoint, or the empty state before version 0.
func (l logStore) base(ctx context.Context) (state, error) {
	p, ok, err := l.pointer(ctx)
	if err != nil {
		return state{}, err
	}
	if ok {
		st, err := l.checkpointState(ctx, p.Version)
		if !errors.Is(err, objstore.ErrNotFound) {
			return st, err
		}
	}
	checkpoint, oldest, err := l.newest(ctx)
	if err != nil {
		return state{}, err
	}
	if checkpoint < 0 && oldest > 0 {
		return state{}, fmt.Errorf("the Delta log %s begins at version %d without a checkpoint; restore it, or move the folder away and let it be made anew",
			l.store.Location(l.root+"/"+logFolder), oldest)
	}
	if checkpoint < 0 {
		return emptyState(), nil
	}
	return l.checkpointState(ctx, checkpoint)
}

// checkpointState is the state that a checkpoint and the commit of its version hold.
func (l logStore) checkpointState(ctx context.Context, v int64) (state, error) {
	data, err := l.store.Get(ctx, l.key(checkpointName(v)))
	if err != nil {
		return state{}, err
	}
	header, live, err := readCheckpointHeader(ctx, data)
	if err != nil {
		return state{}, fmt.Errorf("%s: %w", l.store.Location(l.key(checkpointName(v))), err)
	}
	st := fromCheckpoint(v, header, live)
	actions, err := l.read(ctx, v)
	if errors.Is(err, objstore.ErrNotFound) {
		return st, nil // cleaned up; the sequence number must do
	}
	if err != nil {
		return state{}, err
	}
	return st.confirm(actions), nil
}

// replay reads the live files and tombstones at version v, from the newest
// checkpoint at or below it that is known.
func (l logStore) replay(ctx context.Context, checkpoint, v int64) (*replay, error) {
	r := newReplay(l.store.Location(l.root))
	if checkpoint >= 0 {
		data, err := l.store.Get(ctx, l.key(checkpointName(checkpoint)))
		if err != nil {
			return nil, err
		}
		err = readCheckpointFiles(ctx, data, func(actions []Action) error { r.apply(actions); return nil })
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.store.Location(l.key(checkpointName(checkpoint))), err)
		}
	}
	if checkpoint == v {
		return r, nil
	}
	return r, l.tail(ctx, checkpoint+1, v, func(_ int64, actions []Action) error { r.apply(actions); return nil })
}
