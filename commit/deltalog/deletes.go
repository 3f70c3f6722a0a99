package deltalog

import (
	"fmt"
	"maps"
	"reflect"

	"github.com/apache/iceberg-go"
	icebergio "github.com/apache/iceberg-go/io"
)

// filePathFieldID is the reserved field id of a position delete's file_path column.
const filePathFieldID = 2147483546

// checkDeletes is a [heldError] if row-level deletes of the snapshot with these
// manifests apply to a live data file. Deletes that were left behind by a
// compaction apply to none and change no row.
func checkDeletes(fs icebergio.IO, manifests []iceberg.ManifestFile) error {
	var deletes []iceberg.ManifestEntry
	var upTo int64
	for _, m := range manifests {
		if m.ManifestContent() != iceberg.ManifestContentDeletes || m.AddedDataFiles() == 0 && m.ExistingDataFiles() == 0 {
			continue
		}
		for e, err := range m.Entries(fs, true) {
			if err != nil {
				return fmt.Errorf("reading delete manifest %s: %w", m.FilePath(), err)
			}
			deletes = append(deletes, e)
			upTo = max(upTo, e.SequenceNum())
		}
	}
	if len(deletes) == 0 {
		return nil
	}
	for _, m := range manifests {
		if m.ManifestContent() != iceberg.ManifestContentData || m.MinSequenceNum() > upTo {
			continue // all its files are younger than every delete
		}
		for e, err := range m.Entries(fs, true) {
			if err != nil {
				return fmt.Errorf("reading manifest %s: %w", m.FilePath(), err)
			}
			for _, d := range deletes {
				if deleteApplies(d, e) {
					return held("rows of data file %s are deleted by %s; a compaction of the table applies such deletes", e.DataFile().FilePath(), d.DataFile().FilePath())
				}
			}
		}
	}
	return nil
}

// deleteApplies tells whether a delete file may delete rows of a data file
// (Iceberg spec, "Scan Planning"). In doubt it does.
func deleteApplies(del, data iceberg.ManifestEntry) bool {
	d, f := del.DataFile(), data.DataFile()
	samePartition := d.SpecID() == f.SpecID() && maps.EqualFunc(d.Partition(), f.Partition(), func(a, b any) bool {
		return reflect.DeepEqual(a, b) || fmt.Sprint(a) == fmt.Sprint(b) // NaN is a partition too
	})
	switch d.ContentType() {
	case iceberg.EntryContentPosDeletes:
		if data.SequenceNum() > del.SequenceNum() {
			return false
		}
		if ref := d.ReferencedDataFile(); ref != nil {
			return *ref == f.FilePath()
		}
		if !samePartition {
			return false
		}
		path := f.FilePath()
		if low, ok := d.LowerBoundValues()[filePathFieldID]; ok && path < string(low) {
			return false
		}
		// An upper bound that was cut is still not below any path that it bounds.
		if up, ok := d.UpperBoundValues()[filePathFieldID]; ok && path > string(up) {
			return false
		}
		return true
	case iceberg.EntryContentEqDeletes:
		if data.SequenceNum() >= del.SequenceNum() {
			return false
		}
		return len(d.Partition()) == 0 || samePartition
	default:
		return true
	}
}
