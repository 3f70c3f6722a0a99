package deltalog

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// A checkpoint is the log up to a version, folded into one Parquet file (Delta
// protocol, "Checkpoints", classic naming, V1): one row for each action, one
// struct column for each kind. It holds protocol, metaData, every txn, the live
// adds and the tombstones that are not expired, and never commitInfo.

// tombstoneAge is how long a remove stays in checkpoints: Delta's default of
// delta.deletedFileRetentionDuration.
const tombstoneAge = 7 * 24 * time.Hour

var (
	stringMap        = arrow.MapOf(arrow.BinaryTypes.String, arrow.BinaryTypes.String)
	checkpointSchema = arrow.NewSchema([]arrow.Field{
		optional("txn", arrow.StructOf(
			optional("appId", arrow.BinaryTypes.String),
			optional("version", arrow.PrimitiveTypes.Int64),
			optional("lastUpdated", arrow.PrimitiveTypes.Int64))),
		optional("add", arrow.StructOf(
			optional("path", arrow.BinaryTypes.String),
			optional("partitionValues", stringMap),
			optional("size", arrow.PrimitiveTypes.Int64),
			optional("modificationTime", arrow.PrimitiveTypes.Int64),
			optional("dataChange", arrow.FixedWidthTypes.Boolean),
			optional("tags", stringMap),
			optional("stats", arrow.BinaryTypes.String))),
		optional("remove", arrow.StructOf(
			optional("path", arrow.BinaryTypes.String),
			optional("deletionTimestamp", arrow.PrimitiveTypes.Int64),
			optional("dataChange", arrow.FixedWidthTypes.Boolean),
			optional("extendedFileMetadata", arrow.FixedWidthTypes.Boolean),
			optional("partitionValues", stringMap),
			optional("size", arrow.PrimitiveTypes.Int64))),
		optional("metaData", arrow.StructOf(
			optional("id", arrow.BinaryTypes.String),
			optional("name", arrow.BinaryTypes.String),
			optional("description", arrow.BinaryTypes.String),
			optional("format", arrow.StructOf(
				optional("provider", arrow.BinaryTypes.String),
				optional("options", stringMap))),
			optional("schemaString", arrow.BinaryTypes.String),
			optional("partitionColumns", arrow.ListOf(arrow.BinaryTypes.String)),
			optional("configuration", stringMap),
			optional("createdTime", arrow.PrimitiveTypes.Int64))),
		optional("protocol", arrow.StructOf(
			optional("minReaderVersion", arrow.PrimitiveTypes.Int32),
			optional("minWriterVersion", arrow.PrimitiveTypes.Int32),
			optional("readerFeatures", arrow.ListOf(arrow.BinaryTypes.String)),
			optional("writerFeatures", arrow.ListOf(arrow.BinaryTypes.String)))),
	}, nil)
)

func optional(name string, t arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: t, Nullable: true}
}

// checkpointRows is the number of actions that are in memory as Arrow at once.
const checkpointRows = 8192

// checkpointWriter makes the Parquet file of a checkpoint, in row groups of
// checkpointRows actions.
type checkpointWriter struct {
	buf     bytes.Buffer
	pq      *pqarrow.FileWriter
	b       *array.RecordBuilder
	pending int
	actions int64
	live    int64
}

func newCheckpointWriter(mem memory.Allocator) (*checkpointWriter, error) {
	w := &checkpointWriter{}
	pq, err := pqarrow.NewFileWriter(checkpointSchema, &w.buf,
		parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Snappy), parquet.WithAllocator(mem),
			// Paths and stats differ in every row.
			parquet.WithDictionaryDefault(false)),
		pqarrow.NewArrowWriterProperties(pqarrow.WithAllocator(mem)))
	if err != nil {
		return nil, err
	}
	w.pq, w.b = pq, array.NewRecordBuilder(mem, checkpointSchema)
	return w, nil
}

func (w *checkpointWriter) append(a Action) error {
	switch {
	case a.Add != nil && a.Add.DeletionVector != nil:
		return fmt.Errorf("file %s has a deletion vector, which another writer gave it", a.Add.Path)
	case a.Add != nil:
		add := *a.Add
		add.DataChange = false
		a.Add = &add
		w.live++
	case a.Remove != nil:
		rm := *a.Remove
		rm.DataChange = false
		a.Remove = &rm
	}
	appendAction(w.b, a)
	w.actions++
	if w.pending++; w.pending == checkpointRows {
		return w.flush()
	}
	return nil
}

func (w *checkpointWriter) flush() error {
	rec := w.b.NewRecordBatch()
	defer rec.Release()
	w.pending = 0
	return w.pq.Write(rec)
}

// close ends the file and returns it.
func (w *checkpointWriter) close() ([]byte, error) {
	if w.pending > 0 {
		if err := w.flush(); err != nil {
			return nil, err
		}
	}
	if err := w.pq.Close(); err != nil {
		return nil, err
	}
	return w.buf.Bytes(), nil
}

func (w *checkpointWriter) release() { w.b.Release() }

// writeCheckpoint folds a state, the files of an older checkpoint (nil: there is
// none) and what the versions since have done to them. Tombstones older than
// cutoff (ms) are left out, and so are those of deletion vectors, which this
// package never writes. Memory is bounded by the files themselves and by tail,
// not by the number of live files.
func writeCheckpoint(ctx context.Context, w *checkpointWriter, st state, older []byte, tail *replay, cutoff int64) error {
	if st.protocol == nil || st.metaData == nil {
		return fmt.Errorf("the Delta log has no protocol or no metaData at version %d", st.version)
	}
	head := []Action{{Protocol: st.protocol}, {MetaData: st.metaData}}
	for _, app := range sortedKeys(st.txns) {
		head = append(head, Action{Txn: ptr(st.txns[app])})
	}
	for _, a := range head {
		if err := w.append(a); err != nil {
			return err
		}
	}
	kept := func(rm *Remove) bool {
		return rm.DeletionVector == nil && rm.DeletionTimestamp != nil && *rm.DeletionTimestamp > cutoff
	}
	if older != nil {
		err := readCheckpointFiles(ctx, older, func(actions []Action) error {
			for _, a := range actions {
				if a.Remove != nil && !kept(a.Remove) || tail.touches(a) {
					continue
				}
				if err := w.append(a); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, f := range tail.files() {
		if err := w.append(Action{Add: f.add}); err != nil {
			return err
		}
	}
	for _, rm := range tail.tombstones() {
		if kept(rm) {
			if err := w.append(Action{Remove: rm}); err != nil {
				return err
			}
		}
	}
	return nil
}

func appendAction(b *array.RecordBuilder, a Action) {
	row := func(i int, present bool, values ...any) {
		sb := b.Field(i).(*array.StructBuilder)
		if !present {
			sb.AppendNull()
			return
		}
		sb.Append(true)
		for j, v := range values {
			appendValue(sb.FieldBuilder(j), v)
		}
	}
	if t := a.Txn; t != nil {
		row(0, true, t.AppID, t.Version, t.LastUpdated)
	} else {
		row(0, false)
	}
	if f := a.Add; f != nil {
		row(1, true, f.Path, f.PartitionValues, f.Size, f.ModificationTime, f.DataChange, absentIfNil(f.Tags), emptyIsNull(f.Stats))
	} else {
		row(1, false)
	}
	if f := a.Remove; f != nil {
		row(2, true, f.Path, f.DeletionTimestamp, f.DataChange, f.ExtendedFileMetadata, absentIfNil(f.PartitionValues), f.Size)
	} else {
		row(2, false)
	}
	if m := a.MetaData; m != nil {
		row(3, true, m.ID, emptyIsNull(m.Name), emptyIsNull(m.Description), m.Format, m.SchemaString, m.PartitionColumns, m.Configuration, m.CreatedTime)
	} else {
		row(3, false)
	}
	if p := a.Protocol; p != nil {
		var readers, writers any
		if p.MinReaderVersion >= 3 {
			readers = p.ReaderFeatures
		}
		if p.MinWriterVersion >= 7 {
			writers = p.WriterFeatures
		}
		row(4, true, int32(p.MinReaderVersion), int32(p.MinWriterVersion), readers, writers)
	} else {
		row(4, false)
	}
}

func emptyIsNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func absentIfNil(m map[string]*string) any {
	if m == nil {
		return nil
	}
	return m
}

func appendValue(b array.Builder, v any) {
	switch v := v.(type) {
	case nil:
		b.AppendNull()
	case string:
		b.(*array.StringBuilder).Append(v)
	case bool:
		b.(*array.BooleanBuilder).Append(v)
	case int32:
		b.(*array.Int32Builder).Append(v)
	case int64:
		b.(*array.Int64Builder).Append(v)
	case *int64:
		if v == nil {
			b.AppendNull()
		} else {
			b.(*array.Int64Builder).Append(*v)
		}
	case []string:
		lb := b.(*array.ListBuilder)
		lb.Append(true)
		for _, s := range v {
			lb.ValueBuilder().(*array.StringBuilder).Append(s)
		}
	case map[string]string:
		mb := b.(*array.MapBuilder)
		mb.Append(true)
		for _, k := range sortedKeys(v) {
			mb.KeyBuilder().(*array.StringBuilder).Append(k)
			mb.ItemBuilder().(*array.StringBuilder).Append(v[k])
		}
	case map[string]*string:
		mb := b.(*array.MapBuilder)
		mb.Append(true)
		for _, k := range sortedKeys(v) {
			mb.KeyBuilder().(*array.StringBuilder).Append(k)
			if s := v[k]; s == nil {
				mb.ItemBuilder().AppendNull()
			} else {
				mb.ItemBuilder().(*array.StringBuilder).Append(*s)
			}
		}
	case Format:
		sb := b.(*array.StructBuilder)
		sb.Append(true)
		appendValue(sb.FieldBuilder(0), v.Provider)
		appendValue(sb.FieldBuilder(1), v.Options)
	default:
		panic(fmt.Sprintf("no checkpoint column holds a %T", v))
	}
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
