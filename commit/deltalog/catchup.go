package deltalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/apache/iceberg-go"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore"
)

// catchUp is one call's work.
type catchUp struct {
	m     *Mirror
	tbl   *table.Table
	meta  table.Metadata
	known []Appended
	fs    icebergio.IO

	written int
	lag     int
	held    string
	ahead   bool
}

// errLostRace says that another projector put the version first, or that it
// cannot be told whether this one did: the log was read, decide again.
var errLostRace = errors.New("another writer put this version of the Delta log first")

func (c *catchUp) all(ctx context.Context) error {
	m := c.m
	c.lag = 1 // until it is known better
	if now := m.now().Round(0); !m.loaded || now.Sub(m.seen).Abs() > stateAge {
		st, err := m.log.load(ctx)
		if err != nil {
			return err
		}
		m.st, m.loaded, m.seen = st, true, now
	}
	for range maxRounds {
		err := c.round(ctx)
		if !errors.Is(err, errLostRace) {
			return err
		}
	}
	return fmt.Errorf("lost %d races for the next version in a row", maxRounds)
}

// round carries out one plan.
func (c *catchUp) round(ctx context.Context) error {
	m := c.m
	p := decide(m.st, c.meta)
	c.lag, c.held, c.ahead = p.lag, p.held, p.ahead
	switch p.step {
	case stepNone:
		return nil
	case stepSchema:
		return c.schemaOnly(ctx)
	case stepDifference:
		m.out.Info("the Delta table is brought up by one version with the difference of the live files", "root", m.log.store.Location(m.log.root), "reason", p.why)
		if len(p.walk) == 0 {
			return c.emptied(ctx)
		}
		return c.tryDifference(ctx, p.walk[0], 0)
	}
	// Once a state had to be skipped, the one that was projected last is no
	// longer the parent, and only a difference leads to the next.
	skipped := false
	for i, snap := range p.walk {
		left := len(p.walk) - i - 1
		if skipped {
			if err := c.tryDifference(ctx, snap, left); err != nil {
				return err
			}
			skipped = c.held != ""
			continue
		}
		err := c.advance(ctx, snap)
		var h *heldError
		if errors.As(err, &h) {
			skipped = true
			c.refuse(snap, h.reason)
			continue
		}
		if err != nil {
			return err
		}
		c.lag = left
	}
	if c.held != "" {
		return nil
	}
	return c.schemaOnly(ctx)
}

// refuse notes that a snapshot is not projected.
func (c *catchUp) refuse(snap table.Snapshot, reason string) {
	c.held = reason
	if len(c.m.refused) > 10_000 {
		clear(c.m.refused)
	}
	c.m.refused[snap.SnapshotID] = reason
}

// tryDifference is difference; a state that cannot be expressed is noted, not
// returned. left is the number of snapshots after this one.
func (c *catchUp) tryDifference(ctx context.Context, snap table.Snapshot, left int) error {
	if reason, ok := c.m.refused[snap.SnapshotID]; ok {
		c.held = reason
		return nil
	}
	err := c.difference(ctx, snap)
	var h *heldError
	if errors.As(err, &h) {
		c.refuse(snap, h.reason)
		return nil
	}
	if err == nil {
		c.lag, c.held = left, ""
	}
	return err
}

// advance projects the snapshot whose parent the log shows.
func (c *catchUp) advance(ctx context.Context, snap table.Snapshot) error {
	if reason, ok := c.m.refused[snap.SnapshotID]; ok {
		return &heldError{reason}
	}
	schema, err := c.convert(schemaOf(c.meta, snap))
	if err != nil {
		return err
	}
	why, err := c.evolves(schema)
	if err != nil {
		return err
	}
	if why != "" {
		// Its files decide; a difference asks all of them.
		return c.difference(ctx, snap)
	}
	ch, fresh := c.appended(snap)
	if !fresh {
		fs, err := c.files(ctx)
		if err != nil {
			return err
		}
		if ch, err = readChanges(fs, snap); err != nil {
			return err
		}
	}
	view := c.view(snap, schema)
	if view.Added, err = convertFiles(c.location(), schema, ch.added); err != nil {
		return err
	}
	if view.Removed, err = convertFiles(c.location(), schema, ch.removed); err != nil {
		return err
	}
	if !fresh && needsFooters(schema.iceberg) {
		if err := checkFooters(ctx, c.m.log, view.Added, schema.iceberg, "column names hold characters that some engines encode"); err != nil {
			return err
		}
	}
	return c.put(ctx, project(c.m.st, view, c.m.opts))
}

// difference projects a snapshot by its whole file set, under the schema that
// readers of the table have now, where that only adds to the snapshot's own.
func (c *catchUp) difference(ctx context.Context, snap table.Snapshot) error {
	schema, err := c.convert(schemaOf(c.meta, snap))
	if err != nil {
		return err
	}
	if head := c.meta.CurrentSnapshot(); head != nil && head.SnapshotID == snap.SnapshotID {
		now, err := c.convert(c.meta.CurrentSchema())
		if err == nil && evolves(schema.root, now.root) == "" {
			schema = now
		}
	}
	fs, err := c.files(ctx)
	if err != nil {
		return err
	}
	live, err := readLive(fs, snap)
	if err != nil {
		return err
	}
	files, err := convertFiles(c.location(), schema, live)
	if err != nil {
		return err
	}
	var have []liveFile
	if c.m.st.version >= 0 {
		r, err := c.m.log.replay(ctx, c.m.st.checkpoint, c.m.st.version)
		if err != nil {
			return err
		}
		have = r.files()
	}
	if err := c.checkNames(ctx, schema, have, files); err != nil {
		return err
	}
	return c.put(ctx, projectDifference(c.m.st, have, c.view(snap, schema), files, viewOf(c.meta), c.m.opts))
}

// checkNames is a [heldError] if one of the files does not read the same by name
// as by id. Files that the log shows, under a schema that only grew since, are
// known to; of the others the footers are read where the table's schemas leave
// it open.
func (c *catchUp) checkNames(ctx context.Context, schema *tableSchema, have []liveFile, files []file) error {
	grew, err := c.evolves(schema)
	if err != nil {
		return err
	}
	ask := files
	because := grew
	if grew == "" && c.m.st.metaData != nil && c.m.st.foreign == "" && c.m.st.table == c.meta.TableUUID() {
		shown := make(map[string]bool, len(have))
		for _, h := range have {
			shown[h.rel] = true
		}
		ask = nil
		for _, f := range files {
			if !shown[f.Path] {
				ask = append(ask, f)
			}
		}
	}
	if because == "" {
		because = schemaConflict(c.meta, schema)
	}
	if because == "" && needsFooters(schema.iceberg) {
		because = "column names hold characters that some engines encode"
	}
	if because == "" || len(ask) == 0 {
		return nil
	}
	return checkFooters(ctx, c.m.log, ask, schema.iceberg, because)
}

// schemaConflict says in what the other schemas of the table conflict with one;
// "" if files written under any of them read the same under it.
func schemaConflict(meta table.Metadata, schema *tableSchema) string {
	for _, s := range meta.Schemas() {
		if s.ID == schema.iceberg.ID {
			continue
		}
		other, err := convertSchema(s, schema.Mapped)
		if err != nil {
			return fmt.Sprintf("an earlier schema of the table cannot be compared: %v", err)
		}
		if why := evolves(other.root, schema.root); why != "" {
			// One that only grew out of this schema is a later one.
			if s.ID > schema.iceberg.ID && s.ID == meta.CurrentSchema().ID && evolves(schema.root, other.root) == "" {
				continue
			}
			return why
		}
	}
	return ""
}

// evolves says why files that the log shows do not read the same under the
// schema; "" if they do.
func (c *catchUp) evolves(schema *tableSchema) (string, error) {
	md := c.m.st.metaData
	if md == nil || md.SchemaString == schema.JSON || c.m.st.table != c.meta.TableUUID() {
		return "", nil
	}
	old, err := parseSchema(md.SchemaString)
	if err != nil {
		return "", err
	}
	return evolves(old, schema.root), nil
}

// schemaOnly projects a schema that went on after the newest snapshot.
func (c *catchUp) schemaOnly(ctx context.Context) error {
	head := c.meta.CurrentSnapshot()
	schema, err := c.convert(c.meta.CurrentSchema())
	var h *heldError
	if errors.As(err, &h) {
		c.held = h.reason
		return nil
	}
	if err != nil {
		return err
	}
	if c.m.st.metaData.SchemaString == schema.JSON {
		return nil
	}
	why, err := c.evolves(schema)
	if err != nil {
		return err
	}
	if why != "" {
		c.held = why
		return nil
	}
	return c.put(ctx, projectSchema(c.m.st, c.view(*head, schema), viewOf(c.meta), c.m.opts))
}

// emptied projects a table without snapshots over a log that shows another.
func (c *catchUp) emptied(ctx context.Context) error {
	schema, err := c.convert(c.meta.CurrentSchema())
	var h *heldError
	if errors.As(err, &h) {
		c.held = h.reason
		return nil
	}
	if err != nil {
		return err
	}
	r, err := c.m.log.replay(ctx, c.m.st.checkpoint, c.m.st.version)
	if err != nil {
		return err
	}
	view := snapshot{TableUUID: c.meta.TableUUID(), ID: noSnapshot, Timestamp: c.meta.LastUpdatedMillis(), Operation: "delete", Schema: schema}
	err = c.put(ctx, projectDifference(c.m.st, r.files(), view, nil, viewOf(c.meta), c.m.opts))
	if err == nil {
		c.lag = 0
	}
	return err
}

// view is a snapshot without its files.
func (c *catchUp) view(snap table.Snapshot, schema *tableSchema) snapshot {
	return snapshot{
		TableUUID: c.meta.TableUUID(), ID: snap.SnapshotID, Sequence: sequenceOf(snap), Timestamp: snap.TimestampMs,
		Operation: operationOf(snap), Schema: schema,
	}
}

// appended finds the files of a snapshot among those that the caller knows.
func (c *catchUp) appended(snap table.Snapshot) (changes, bool) {
	if operationOf(snap) != string(table.OpAppend) {
		return changes{}, false
	}
	for _, k := range c.known {
		if k.SnapshotID == snap.SnapshotID {
			return changes{added: k.Files}, true
		}
	}
	return changes{}, false
}

// mapped tells whether the table's columns are mapped: as it was made with, and
// for ever after, since Delta cannot take a mapping back.
func (c *catchUp) mapped() bool {
	if md := c.m.st.metaData; md != nil && md.Configuration[mappingMode] == "name" {
		return true
	}
	return c.meta.Properties()[ColumnNamesProperty] == ColumnNamesMapped
}

// convert is the Delta form of a schema. One that Delta cannot hold is a
// [heldError].
func (c *catchUp) convert(s *iceberg.Schema) (*tableSchema, error) {
	m := c.m
	if m.schemaFor != s {
		m.schemaFor = s
		m.schema, m.schemaErr = convertSchema(s, c.mapped())
	}
	var bad *SchemaError
	if errors.As(m.schemaErr, &bad) {
		return nil, &heldError{bad.Error()}
	}
	return m.schema, m.schemaErr
}

func (c *catchUp) location() string { return c.m.log.store.Location(c.m.log.root) }

func (c *catchUp) files(ctx context.Context) (icebergio.IO, error) {
	if c.fs == nil {
		fs, err := tableFS(ctx, c.tbl)
		if err != nil {
			return nil, err
		}
		c.fs = fs
	}
	return c.fs, nil
}

// put writes the next version if it is absent. Where it is not, or where the
// answer was lost, the winner is read: it may be this very version, another
// projector's, or a stranger's. errLostRace then says that the state went on and
// all is to be decided again.
func (c *catchUp) put(ctx context.Context, actions []Action) error {
	m := c.m
	data, err := encode(actions)
	if err != nil {
		return err
	}
	v := m.st.version + 1
	key := m.log.key(commitName(v))
	begun := m.now().Round(0)
	putErr := m.log.store.PutIfAbsent(ctx, key, data)
	if putErr == nil {
		m.seen = begun
		m.st = m.st.apply(v, actions)
		c.written++
		return nil
	}
	got, err := m.log.store.Get(ctx, key)
	if errors.Is(err, objstore.ErrNotFound) && !errors.Is(putErr, objstore.ErrExists) {
		return putErr // it is not in, as of now; should it come in late, the next call meets it
	}
	if err != nil {
		return errors.Join(putErr, err)
	}
	winner, err := decode(got)
	if err != nil {
		return fmt.Errorf("%s: %w", m.log.store.Location(key), err)
	}
	m.st = m.st.apply(v, winner)
	m.seen = begun
	if bytes.Equal(got, data) {
		return nil // ours, or word for word the same
	}
	return errLostRace
}
