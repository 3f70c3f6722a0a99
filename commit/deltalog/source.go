package deltalog

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
)

// heldError is why a state is not projected; the mirror waits for the next one.
type heldError struct{ reason string }

func (e *heldError) Error() string { return e.reason }

func held(format string, args ...any) error { return &heldError{fmt.Sprintf(format, args...)} }

// changes are what one snapshot did, or, as a whole state, what it holds.
type changes struct {
	added, removed []iceberg.DataFile
}

// readChanges reads what a snapshot added and removed. Only manifests that this
// snapshot wrote are read: for an append that is one, or more after a merge.
//
// Live row-level deletes, unless none applies to a live file, are a
// [heldError].
func readChanges(fs icebergio.IO, snap table.Snapshot) (changes, error) {
	manifests, err := snap.Manifests(fs)
	if err != nil {
		return changes{}, fmt.Errorf("reading the manifest list of snapshot %d: %w", snap.SnapshotID, err)
	}
	if err := checkDeletes(fs, manifests); err != nil {
		return changes{}, err
	}
	var out changes
	for _, m := range manifests {
		if m.ManifestContent() != iceberg.ManifestContentData || m.SnapshotID() != snap.SnapshotID {
			continue
		}
		for e, err := range m.Entries(fs, false) {
			if err != nil {
				return changes{}, fmt.Errorf("reading manifest %s: %w", m.FilePath(), err)
			}
			// A merged manifest also holds what older snapshots did.
			if e.SnapshotID() != snap.SnapshotID {
				continue
			}
			switch e.Status() {
			case iceberg.EntryStatusADDED:
				out.added = append(out.added, e.DataFile())
			case iceberg.EntryStatusDELETED:
				out.removed = append(out.removed, e.DataFile())
			}
		}
	}
	return out, nil
}

// readLive reads all live data files of a snapshot. A file that is listed more
// than once, or row-level deletes that apply, are a [heldError].
func readLive(fs icebergio.IO, snap table.Snapshot) ([]iceberg.DataFile, error) {
	manifests, err := snap.Manifests(fs)
	if err != nil {
		return nil, fmt.Errorf("reading the manifest list of snapshot %d: %w", snap.SnapshotID, err)
	}
	if err := checkDeletes(fs, manifests); err != nil {
		return nil, err
	}
	var out []iceberg.DataFile
	seen := map[string]bool{}
	for _, m := range manifests {
		if m.ManifestContent() != iceberg.ManifestContentData {
			continue
		}
		for e, err := range m.Entries(fs, true) {
			if err != nil {
				return nil, fmt.Errorf("reading manifest %s: %w", m.FilePath(), err)
			}
			path := e.DataFile().FilePath()
			if seen[path] {
				return nil, held("data file %s is listed twice, and Delta would show its rows once", path)
			}
			seen[path] = true
			out = append(out, e.DataFile())
		}
	}
	return out, nil
}

// convertFiles are data files as the projection needs them. A file that Delta
// cannot refer to is a [heldError].
func convertFiles(root string, schema *tableSchema, files []iceberg.DataFile) ([]file, error) {
	out := make([]file, 0, len(files))
	for _, f := range files {
		rel, ok := relativePath(root, f.FilePath())
		if !ok {
			return nil, held("data file %s lies outside of the Delta root %s; files written with write.data.path set to it lie inside", f.FilePath(), root)
		}
		if !strings.EqualFold(string(f.FileFormat()), string(iceberg.ParquetFile)) {
			return nil, held("data file %s is %s, and Delta has only Parquet", f.FilePath(), f.FileFormat())
		}
		if len(f.KeyMetadata()) > 0 {
			return nil, held("data file %s is encrypted", f.FilePath())
		}
		out = append(out, file{Path: rel, Size: f.FileSizeBytes(), Records: f.Count(), Stats: fileStats(schema.stats, f)})
	}
	return out, nil
}

// schemaOf is the schema that a snapshot was made under.
func schemaOf(meta table.Metadata, snap table.Snapshot) *iceberg.Schema {
	if snap.SchemaID != nil {
		all := meta.Schemas()
		if i := slices.IndexFunc(all, func(s *iceberg.Schema) bool { return s.ID == *snap.SchemaID }); i >= 0 {
			return all[i]
		}
	}
	return meta.CurrentSchema()
}

// operationOf is the snapshot's operation; overwrite, which promises nothing,
// where it has none.
func operationOf(snap table.Snapshot) string {
	if snap.Summary == nil || snap.Summary.Operation == "" {
		return string(table.OpOverwrite)
	}
	return string(snap.Summary.Operation)
}

// sequenceOf orders the snapshots of a table: by sequence number, or, in format
// version 1, which has none, by time.
func sequenceOf(snap table.Snapshot) int64 {
	if snap.SequenceNumber > 0 {
		return snap.SequenceNumber
	}
	return snap.TimestampMs
}

// firstTimeSequence is above every sequence number and below every time, in ms,
// that stands in for one.
const firstTimeSequence = 1_000_000_000_000

// tableFS is the table's file system.
func tableFS(ctx context.Context, tbl *table.Table) (icebergio.IO, error) {
	fs, err := tbl.FS(ctx)
	if err != nil {
		return nil, fmt.Errorf("opening the files of table %s: %w", strings.Join(tbl.Identifier(), "."), err)
	}
	return fs, nil
}
