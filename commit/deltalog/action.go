package deltalog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Action is one line of a Delta commit: exactly one field is set (Delta
// protocol, "Actions"). Lines of kinds that this package does not know decode
// to an Action with no field set.
type Action struct {
	CommitInfo *CommitInfo `json:"commitInfo,omitempty"`
	Protocol   *Protocol   `json:"protocol,omitempty"`
	MetaData   *MetaData   `json:"metaData,omitempty"`
	Txn        *Txn        `json:"txn,omitempty"`
	Remove     *Remove     `json:"remove,omitempty"`
	Add        *Add        `json:"add,omitempty"`
}

// Protocol says what a client must be able to do (Delta protocol, "Protocol
// Evolution"). The feature lists stand only at reader version 3 and writer
// version 7.
type Protocol struct {
	MinReaderVersion int      `json:"minReaderVersion"`
	MinWriterVersion int      `json:"minWriterVersion"`
	ReaderFeatures   []string `json:"readerFeatures,omitempty"`
	WriterFeatures   []string `json:"writerFeatures,omitempty"`
}

// MetaData is the table's description (Delta protocol, "Change Metadata").
type MetaData struct {
	ID               string            `json:"id"`
	Name             string            `json:"name,omitempty"`
	Description      string            `json:"description,omitempty"`
	Format           Format            `json:"format"`
	SchemaString     string            `json:"schemaString"`
	PartitionColumns []string          `json:"partitionColumns"`
	Configuration    map[string]string `json:"configuration"`
	CreatedTime      *int64            `json:"createdTime,omitempty"` // ms since the epoch
}

// Format is the encoding of the data files.
type Format struct {
	Provider string            `json:"provider"`
	Options  map[string]string `json:"options"`
}

// Txn is an application's progress (Delta protocol, "Transaction Identifiers").
type Txn struct {
	AppID       string `json:"appId"`
	Version     int64  `json:"version"`
	LastUpdated *int64 `json:"lastUpdated,omitempty"` // ms since the epoch
}

// Add makes a file live (Delta protocol, "Add File and Remove File").
type Add struct {
	Path             string             `json:"path"` // URI, relative to the table's root
	PartitionValues  map[string]*string `json:"partitionValues"`
	Size             int64              `json:"size"`             // bytes
	ModificationTime int64              `json:"modificationTime"` // ms since the epoch
	DataChange       bool               `json:"dataChange"`
	Stats            string             `json:"stats,omitempty"` // JSON
	Tags             map[string]*string `json:"tags,omitempty"`
	DeletionVector   *DeletionVector    `json:"deletionVector,omitempty"`
}

// Remove makes a file a tombstone.
type Remove struct {
	Path                 string             `json:"path"`
	DeletionTimestamp    *int64             `json:"deletionTimestamp,omitempty"` // ms since the epoch
	DataChange           bool               `json:"dataChange"`
	ExtendedFileMetadata bool               `json:"extendedFileMetadata,omitempty"`
	PartitionValues      map[string]*string `json:"partitionValues,omitzero"`
	Size                 *int64             `json:"size,omitempty"` // bytes
	Tags                 map[string]*string `json:"tags,omitempty"`
	DeletionVector       *DeletionVector    `json:"deletionVector,omitempty"`
}

// DeletionVector is read only in versions that somebody else wrote: the mirror
// itself has none (Delta protocol, "Deletion Vectors").
type DeletionVector struct {
	StorageType    string `json:"storageType"`
	PathOrInlineDv string `json:"pathOrInlineDv"`
	Offset         *int32 `json:"offset,omitempty"`
	SizeInBytes    int32  `json:"sizeInBytes"`
	Cardinality    int64  `json:"cardinality"`
}

// CommitInfo is the provenance of a version. Readers ignore what they do not
// know in it; the fields that begin with iceberg are this mirror's.
type CommitInfo struct {
	Timestamp           int64          `json:"timestamp"` // ms since the epoch
	Operation           string         `json:"operation,omitempty"`
	OperationParameters map[string]any `json:"operationParameters,omitempty"`
	IsBlindAppend       *bool          `json:"isBlindAppend,omitempty"`
	OperationMetrics    map[string]any `json:"operationMetrics,omitempty"`
	EngineInfo          string         `json:"engineInfo,omitempty"`

	// IcebergSnapshotID and IcebergSequenceNumber name the snapshot whose state
	// this version shows; -1 and 0 are the empty table before its first one.
	IcebergSnapshotID     *int64 `json:"icebergSnapshotId,omitempty"`
	IcebergSequenceNumber *int64 `json:"icebergSequenceNumber,omitempty"`
	// IcebergView stands in versions that follow from more than one snapshot (a
	// difference, a schema change of its own).
	IcebergView *IcebergView `json:"icebergView,omitempty"`
}

// IcebergView tells how new the table metadata was that a version was made from.
// A projector with an older view must not go on from such a version: it would
// undo it.
type IcebergView struct {
	LastSequenceNumber int64 `json:"lastSequenceNumber"`
	LastUpdated        int64 `json:"lastUpdated"` // ms since the epoch
}

// newerThan compares two views of one table. Sequence numbers never go back;
// times may, where clocks do, and decide only between views of one sequence.
func (v IcebergView) newerThan(o IcebergView) bool {
	if v.LastSequenceNumber != o.LastSequenceNumber {
		return v.LastSequenceNumber > o.LastSequenceNumber
	}
	return v.LastUpdated > o.LastUpdated
}

// encode is the content of a commit file: one action a line.
func encode(actions []Action) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	for _, a := range actions {
		if err := enc.Encode(a); err != nil {
			return nil, fmt.Errorf("encoding a Delta action: %w", err)
		}
	}
	return buf.Bytes(), nil
}

// decode reads a commit file.
func decode(data []byte) ([]Action, error) {
	var out []Action
	r := bufio.NewReader(bytes.NewReader(data))
	for line := 1; ; line++ {
		text, err := r.ReadBytes('\n')
		if text = bytes.TrimSpace(text); len(text) > 0 {
			var a Action
			if err := json.Unmarshal(text, &a); err != nil {
				return nil, fmt.Errorf("line %d: %w", line, err)
			}
			out = append(out, a)
		}
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
