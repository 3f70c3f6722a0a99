package icebergtable

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
)

// version is one state of a table, as its metadata file holds it. It is immutable.
type version struct {
	meta     table.Metadata
	location string   // of the metadata file
	sum      [32]byte // of its bytes
}

// stage is what the table would be after updates: requirements checked, updates
// applied, chosen snapshots removed. It does no I/O. Its errors wrap
// [table.ErrCommitFailed] where a requirement does not hold, [ErrRefused] where an
// update cannot be applied for another reason than a clock that was set back. next
// is nil where nothing would change.
func stage(ctx context.Context, cur version, reqs []table.Requirement, updates []table.Update) (next table.Metadata, err error) {
	for _, r := range reqs {
		if err := r.Validate(cur.meta); err != nil {
			return nil, fmt.Errorf("%w: %w", table.ErrCommitFailed, err)
		}
	}
	next, err = table.UpdateTableMetadata(cur.meta, updates, cur.location)
	if err != nil && clockBehind(err) {
		return nil, fmt.Errorf("this machine's clock is more than a minute behind the table's last change; set it right, or wait: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	removing := false
	if opts := commitOptions(ctx); opts != nil && opts.Remove != nil {
		if ids := opts.Remove(next); len(ids) > 0 {
			removing = true
			all := append(updates[:len(updates):len(updates)], table.NewRemoveSnapshotsUpdate(ids, false))
			if next, err = table.UpdateTableMetadata(cur.meta, all, cur.location); err != nil {
				return nil, fmt.Errorf("%w: removing snapshots %v: %w", ErrRefused, ids, err)
			}
		}
	}
	if len(updates) == 0 && !removing || next.Equals(cur.meta) {
		return nil, nil
	}
	return next, nil
}

// clockBehind reports that an update was turned down for its time, which is the
// clock's fault and passes. iceberg-go has no type for it.
func clockBehind(err error) bool {
	return strings.Contains(err.Error(), "invalid snapshot timestamp") || strings.Contains(err.Error(), "invalid update timestamp")
}

// checkLayout reports why next cannot be a version of a table whose metadata file
// names are its versions: another writer would look for them elsewhere, or under
// another name, and two commits could both win.
func checkLayout(cur, next table.Metadata) error {
	if cur != nil && next.Location() != cur.Location() {
		return fmt.Errorf("%w: the table's location cannot be changed from %s to %s in a filesystem catalog", ErrRefused, cur.Location(), next.Location())
	}
	props := next.Properties()
	for _, key := range []string{table.WriteMetadataPathKey, table.WriteMetadataLocationKey} {
		if v := props.Get(key, ""); v != "" {
			return fmt.Errorf("%w: table property %s is %q: a filesystem catalog keeps metadata in the table's own folder; remove the property", ErrRefused, key, v)
		}
	}
	if v := props.Get(table.MetadataCompressionKey, table.MetadataCompressionCodecNone); v != table.MetadataCompressionCodecNone {
		return fmt.Errorf("%w: table property %s is %q: in a filesystem catalog a compressed metadata file has another name, and two commits could both win; set it to none",
			ErrRefused, table.MetadataCompressionKey, v)
	}
	return nil
}

// confirmed reports that the commit that made ours from base is part of the history
// that latest ends: it is latest itself, or its new snapshot is there, or, where it
// made no snapshot, the metadata log names its file.
func confirmed(base, ours, latest version) bool {
	if ours.sum == latest.sum {
		return true
	}
	before, snap := base.meta.CurrentSnapshot(), ours.meta.CurrentSnapshot()
	if snap != nil && (before == nil || before.SnapshotID != snap.SnapshotID) {
		found := latest.meta.SnapshotByID(snap.SnapshotID)
		return found != nil && found.ManifestList == snap.ManifestList
	}
	for entry := range latest.meta.PreviousFiles() {
		if entry.MetadataFile == ours.location && entry.TimestampMs == ours.meta.LastUpdatedMillis() {
			return true
		}
	}
	return false
}

// parse reads a metadata file.
func parse(data []byte, location string) (version, error) {
	meta, err := table.ParseMetadataBytes(data)
	if err != nil {
		return version{}, fmt.Errorf("metadata file %s: %w", location, err)
	}
	return version{meta: meta, location: location, sum: sha256.Sum256(data)}, nil
}

func noSuchTable(ident []string) error {
	return fmt.Errorf("%w: %s", catalog.ErrNoSuchTable, shown(ident))
}

// conflict makes err a conflict of our own type, which iceberg-go does not replay.
func conflict(err error) error {
	if errors.Is(err, ErrConflict) && !errors.Is(err, table.ErrCommitFailed) {
		return err
	}
	return fmt.Errorf("%w: %s", ErrConflict, err.Error())
}
