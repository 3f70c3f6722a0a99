package deltalog

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/google/uuid"
)

// file is a data file as both formats see it.
type file struct {
	Path    string // raw, relative to the Delta root
	Size    int64  // bytes
	Records int64
	Stats   string // JSON, of the schema that the file is projected under
}

// snapshot is what the projection needs to know of one Iceberg snapshot.
type snapshot struct {
	TableUUID uuid.UUID
	ID        int64 // -1: the empty table before its first snapshot
	Sequence  int64
	Timestamp int64 // ms since the epoch
	Operation string
	Added     []file // in any order
	Removed   []file
	Schema    *tableSchema
}

// projectOptions are what else goes into a version's bytes.
type projectOptions struct {
	EngineInfo string
	Guard      bool
}

// project is the version that follows prev and shows the state of snap, where
// prev shows the state of snap's parent. It is a pure function.
func project(prev state, snap snapshot, opts projectOptions) []Action {
	added, removed := cancelOut(snap.Added, snap.Removed)
	// A rewrite changes no row: streaming readers must not see its files as new.
	dataChange := snap.Operation != "replace"
	info := newCommitInfo(snap, opts)
	info.IsBlindAppend = ptr(len(removed) == 0 && dataChange)
	describe(&info, snap.Operation, added, removed)
	return version(prev, snap, info, added, removed, dataChange, opts)
}

// projectDifference is the version that follows prev and shows the state of
// snap, of which live is the whole set of files, whatever lies between. view is
// that of the table which it was made from.
func projectDifference(prev state, have []liveFile, snap snapshot, live []file, view IcebergView, opts projectOptions) []Action {
	want := make(map[string]bool, len(live))
	for _, f := range live {
		want[f.Path] = true
	}
	same := make(map[string]bool, len(have))
	var removed []Remove
	for _, h := range have {
		// A file that carries deletes shows other rows than Iceberg's.
		if want[h.rel] && h.add.DeletionVector == nil {
			same[h.rel] = true
			continue
		}
		removed = append(removed, Remove{
			Path: h.add.Path, DeletionTimestamp: ptr(snap.Timestamp), DataChange: true,
			ExtendedFileMetadata: true, PartitionValues: h.add.PartitionValues, Size: ptr(h.add.Size),
			DeletionVector: h.add.DeletionVector,
		})
	}
	var added []file
	for _, f := range live {
		if !same[f.Path] {
			added = append(added, f)
		}
	}
	info := newCommitInfo(snap, opts)
	info.IcebergView = &view
	info.IsBlindAppend = ptr(len(removed) == 0)
	describe(&info, "difference", added, nil)
	if len(removed) > 0 {
		info.OperationMetrics["numRemovedFiles"] = strconv.Itoa(len(removed))
	}
	actions := version(prev, snap, info, added, nil, true, opts)
	slices.SortFunc(removed, func(a, b Remove) int { return cmp.Compare(a.Path, b.Path) })
	at := len(actions) - len(added)
	out := slices.Clone(actions[:at])
	for _, r := range removed {
		out = append(out, Action{Remove: &r})
	}
	return append(out, actions[at:]...)
}

// projectSchema is the version that follows prev, which shows the same snapshot,
// where only the table's schema went on.
func projectSchema(prev state, snap snapshot, view IcebergView, opts projectOptions) []Action {
	snap.Timestamp = view.LastUpdated
	info := newCommitInfo(snap, opts)
	info.IcebergView = &view
	info.Operation = "CHANGE COLUMNS"
	info.IsBlindAppend = ptr(false)
	return version(prev, snap, info, nil, nil, false, opts)
}

func newCommitInfo(snap snapshot, opts projectOptions) CommitInfo {
	return CommitInfo{
		Timestamp: snap.Timestamp, EngineInfo: opts.EngineInfo,
		IcebergSnapshotID: ptr(snap.ID), IcebergSequenceNumber: ptr(snap.Sequence),
	}
}

// describe sets operation, parameters and metrics, by the names that Delta's own
// writers use.
func describe(info *CommitInfo, operation string, added, removed []file) {
	params := map[string]any{}
	switch operation {
	case "append":
		info.Operation = "WRITE"
		params["mode"], params["partitionBy"] = "Append", "[]"
	case "replace":
		info.Operation = "OPTIMIZE"
		params["predicate"] = "[]"
	case "delete":
		info.Operation = "DELETE"
		params["predicate"] = "[]"
	case "difference":
		info.Operation = "WRITE"
		params["mode"], params["partitionBy"] = "Overwrite", "[]"
		params["description"] = "difference of live file sets"
	default:
		info.Operation = "WRITE"
		params["mode"], params["partitionBy"] = "Overwrite", "[]"
	}
	info.OperationParameters = params
	metrics := map[string]any{}
	var rows, bytes, gone int64
	for _, f := range added {
		rows += f.Records
		bytes += f.Size
	}
	for _, f := range removed {
		gone += f.Size
	}
	num := func(key string, v int64) { metrics[key] = strconv.FormatInt(v, 10) }
	switch info.Operation {
	case "OPTIMIZE":
		num("numAddedFiles", int64(len(added)))
		num("numAddedBytes", bytes)
		num("numRemovedFiles", int64(len(removed)))
		num("numRemovedBytes", gone)
	default:
		num("numFiles", int64(len(added)))
		num("numOutputRows", rows)
		num("numOutputBytes", bytes)
		if len(removed) > 0 {
			num("numRemovedFiles", int64(len(removed)))
			num("numRemovedBytes", gone)
		}
	}
	info.OperationMetrics = metrics
}

// version puts the actions of a version in their fixed order: commitInfo,
// protocol and metaData where they change, txn, removes and adds by path.
func version(prev state, snap snapshot, info CommitInfo, added, removed []file, dataChange bool, opts projectOptions) []Action {
	out := make([]Action, 0, 4+len(added)+len(removed))
	out = append(out, Action{CommitInfo: &info})
	proto := protocolFor(prev.protocol, snap.Schema.TimestampNtz, snap.Schema.Mapped, opts.Guard)
	if prev.protocol == nil || !proto.equal(*prev.protocol) {
		out = append(out, Action{Protocol: &proto})
	}
	if prev.metaData == nil || prev.metaData.SchemaString != snap.Schema.JSON {
		md := metaDataFor(prev.metaData, snap)
		out = append(out, Action{MetaData: &md})
	}
	out = append(out, Action{Txn: &Txn{AppID: appID(snap.TableUUID), Version: snap.Sequence, LastUpdated: ptr(snap.Timestamp)}})
	byPath := func(a, b file) int { return cmp.Compare(a.Path, b.Path) }
	for _, f := range slices.SortedFunc(slices.Values(removed), byPath) {
		out = append(out, Action{Remove: &Remove{
			Path: encodePath(f.Path), DeletionTimestamp: ptr(snap.Timestamp), DataChange: dataChange,
			ExtendedFileMetadata: true, PartitionValues: map[string]*string{}, Size: ptr(f.Size),
		}})
	}
	for _, f := range slices.SortedFunc(slices.Values(added), byPath) {
		out = append(out, Action{Add: &Add{
			Path: encodePath(f.Path), PartitionValues: map[string]*string{}, Size: f.Size,
			ModificationTime: snap.Timestamp, DataChange: dataChange, Stats: f.Stats,
		}})
	}
	return out
}

// metaDataFor keeps all of the table's description but its schema. The id of a
// new one follows from the Iceberg table's UUID, so that all projectors give it
// the same.
func metaDataFor(prev *MetaData, snap snapshot) MetaData {
	if prev != nil {
		md := *prev
		md.SchemaString = snap.Schema.JSON
		md.Configuration = withMapping(md.Configuration, snap.Schema)
		return md
	}
	return MetaData{
		ID:               uuid.NewSHA1(snap.TableUUID, []byte("delta")).String(),
		Description:      "Mirror of an Iceberg table. Do not write to it: changes belong into the Iceberg table.",
		Format:           Format{Provider: "parquet", Options: map[string]string{}},
		SchemaString:     snap.Schema.JSON,
		PartitionColumns: []string{},
		Configuration:    withMapping(nil, snap.Schema),
		CreatedTime:      ptr(snap.Timestamp),
	}
}

// Table properties of column mapping (Delta protocol, "Column Mapping").
const (
	mappingMode  = "delta.columnMapping.mode"
	mappingMaxID = "delta.columnMapping.maxColumnId"
)

// withMapping is a configuration with what column mapping asks of it.
func withMapping(prev map[string]string, schema *tableSchema) map[string]string {
	out := maps.Clone(prev)
	if out == nil {
		out = map[string]string{}
	}
	if schema.Mapped {
		out[mappingMode], out[mappingMaxID] = "name", strconv.Itoa(schema.MaxID)
	}
	return out
}

// appID is the txn appId of an Iceberg table.
func appID(table uuid.UUID) string { return appIDPrefix + table.String() }

const appIDPrefix = "iceberg-"

// cancelOut drops files that a snapshot both removes and adds: Delta allows a
// path once in a version, and the file stays live.
func cancelOut(added, removed []file) (a, r []file) {
	if len(added) == 0 || len(removed) == 0 {
		return added, removed
	}
	out := make(map[string]bool, len(removed))
	for _, f := range removed {
		out[f.Path] = true
	}
	both := map[string]bool{}
	for _, f := range added {
		if out[f.Path] {
			both[f.Path] = true
		}
	}
	if len(both) == 0 {
		return added, removed
	}
	stays := func(f file) bool { return both[f.Path] }
	return slices.DeleteFunc(slices.Clone(added), stays), slices.DeleteFunc(slices.Clone(removed), stays)
}

func ptr[T any](v T) *T { return &v }
