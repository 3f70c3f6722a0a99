package icebergtable

import (
	"fmt"
	"maps"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// newTable are the properties that every new table gets, under the user's own.
// Merging keeps the manifest list short at any number of commits; the bound on
// previous versions keeps the log inside the metadata file short, and deletes no file.
var newTable = iceberg.Properties{
	table.PropertyFormatVersion:          "2",
	table.ManifestMergeEnabledKey:        "true",
	table.ManifestMinMergeCountKey:       "50",
	table.MetadataPreviousVersionsMaxKey: "25",
}

// CheckProperties reports why the properties cannot be a new table's. The error
// names the property, what it holds and what it may hold.
func CheckProperties(props iceberg.Properties) error {
	fixed := func(key, why string) error {
		return fmt.Errorf("%w: table property %s is %q, but %s; leave it out", ErrRefused, key, props[key], why)
	}
	for key, value := range props {
		switch key {
		case table.PropertyFormatVersion:
			if value != newTable[key] {
				return fixed(key, "tables are made in format version 2")
			}
		case table.WriteDataPathKey, table.WriteMetadataPathKey, table.WriteMetadataLocationKey:
			return fixed(key, "where a table's files lie is fixed, so that each format's cleanup sees its own files only")
		case table.MetadataDeleteAfterCommitEnabledKey:
			if !strings.EqualFold(value, "false") {
				return fixed(key, "deleting metadata files by their number can lose a commit of a writer that was held up; they are deleted by age")
			}
		case table.MetadataCompressionKey:
			if value != table.MetadataCompressionCodecNone {
				return fixed(key, "metadata files are not compressed, so that every version has one name")
			}
		case table.PropertyUuid, table.PropertySnapshotCount, table.PropertyCurrentSnapshotId, table.PropertyCurrentSnapshotSummary,
			table.PropertyCurrentSnapshotTimestamp, table.PropertyCurrentSchema, table.PropertyDefaultPartitionSpec, table.PropertyDefaultSortOrder:
			return fixed(key, "Iceberg reserves it")
		}
	}
	return nil
}

// newProperties are the properties of a new table with its data at dataLocation.
func newProperties(user iceberg.Properties, dataLocation string) iceberg.Properties {
	props := maps.Clone(newTable)
	maps.Copy(props, user)
	props[table.WriteDataPathKey] = dataLocation
	return props
}
