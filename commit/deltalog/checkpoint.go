package deltalog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	pqfile "github.com/apache/arrow-go/v18/parquet/file"
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

// readCheckpointHeader reads all of a checkpoint but its files, and counts the
// live ones.
func readCheckpointHeader(ctx context.Context, data []byte) (header []Action, live int64, err error) {
	header, err = readCheckpoint(ctx, data, []string{"txn", "metaData", "protocol", "add.size"}, func(b rowBatch) ([]Action, error) {
		add := b.group("add")
		var out []Action
		for i := range b.rows {
			if add.present(i) {
				live++
				continue
			}
			a, err := b.header(i)
			if err != nil {
				return nil, err
			}
			if a != (Action{}) {
				out = append(out, a)
			}
		}
		return out, nil
	})
	return header, live, err
}

// readCheckpointFiles calls each with the adds and removes of a checkpoint, in
// batches.
func readCheckpointFiles(ctx context.Context, data []byte, each func([]Action) error) error {
	_, err := readCheckpoint(ctx, data, []string{"add", "remove"}, func(b rowBatch) ([]Action, error) {
		var out []Action
		for i := range b.rows {
			if a, ok := b.file(i); ok {
				out = append(out, a)
			}
		}
		return nil, each(out)
	})
	return err
}

// readCheckpoint reads the columns whose path begins with one of the prefixes.
func readCheckpoint(ctx context.Context, data []byte, prefixes []string, each func(rowBatch) ([]Action, error)) (out []Action, err error) {
	pf, err := pqfile.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("not a readable checkpoint: %w", err)
	}
	defer pf.Close()
	var cols []int
	schema := pf.MetaData().Schema
	for i := range schema.NumColumns() {
		path := schema.Column(i).ColumnPath().String()
		if slices.ContainsFunc(prefixes, func(p string) bool { return path == p || len(path) > len(p) && path[:len(p)+1] == p+"." }) {
			cols = append(cols, i)
		}
	}
	fr, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{BatchSize: checkpointRows}, memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	rr, err := fr.GetRecordReader(ctx, cols, nil)
	if err != nil {
		return nil, err
	}
	defer rr.Release()
	for rr.Next() {
		got, err := each(newRowBatch(rr.RecordBatch()))
		if err != nil {
			return nil, err
		}
		out = append(out, got...)
	}
	return out, rr.Err()
}

// rowBatch gives access to the rows of a checkpoint by name; columns that are
// not there read as null.
type rowBatch struct {
	rows   int
	groups map[string]rowGroup
}

type rowGroup struct {
	s    *array.Struct
	cols map[string]arrow.Array
}

func newRowBatch(rec arrow.RecordBatch) rowBatch {
	b := rowBatch{rows: int(rec.NumRows()), groups: map[string]rowGroup{}}
	for i, f := range rec.Schema().Fields() {
		if s, ok := rec.Column(i).(*array.Struct); ok {
			b.groups[f.Name] = newRowGroup(s)
		}
	}
	return b
}

func newRowGroup(s *array.Struct) rowGroup {
	g := rowGroup{s: s, cols: map[string]arrow.Array{}}
	for i, f := range s.DataType().(*arrow.StructType).Fields() {
		g.cols[f.Name] = s.Field(i)
	}
	return g
}

func (b rowBatch) group(name string) rowGroup { return b.groups[name] }

func (g rowGroup) present(i int) bool { return g.s != nil && g.s.IsValid(i) }

func (g rowGroup) text(name string, i int) string {
	if c, ok := g.cols[name].(*array.String); ok && c.IsValid(i) {
		return strings.Clone(c.Value(i)) // the batch's memory goes with it
	}
	return ""
}

func (g rowGroup) long(name string, i int) *int64 {
	switch c := g.cols[name].(type) {
	case *array.Int64:
		if c.IsValid(i) {
			return ptr(c.Value(i))
		}
	case *array.Int32:
		if c.IsValid(i) {
			return ptr(int64(c.Value(i)))
		}
	}
	return nil
}

func (g rowGroup) number(name string, i int) int64 {
	if v := g.long(name, i); v != nil {
		return *v
	}
	return 0
}

func (g rowGroup) flag(name string, i int) bool {
	c, ok := g.cols[name].(*array.Boolean)
	return ok && c.IsValid(i) && c.Value(i)
}

func (g rowGroup) list(name string, i int) []string {
	c, ok := g.cols[name].(*array.List)
	if !ok || c.IsNull(i) {
		return nil
	}
	values, ok := c.ListValues().(*array.String)
	if !ok {
		return nil
	}
	from, to := c.ValueOffsets(i)
	out := make([]string, 0, to-from)
	for j := from; j < to; j++ {
		out = append(out, strings.Clone(values.Value(int(j))))
	}
	return out
}

func (g rowGroup) dict(name string, i int) map[string]*string {
	c, ok := g.cols[name].(*array.Map)
	if !ok || c.IsNull(i) {
		return nil
	}
	keys, ok1 := c.Keys().(*array.String)
	items, ok2 := c.Items().(*array.String)
	if !ok1 || !ok2 {
		return nil
	}
	from, to := c.ValueOffsets(i)
	out := make(map[string]*string, to-from)
	for j := int(from); j < int(to); j++ {
		if items.IsNull(j) {
			out[strings.Clone(keys.Value(j))] = nil
		} else {
			out[strings.Clone(keys.Value(j))] = ptr(strings.Clone(items.Value(j)))
		}
	}
	return out
}

func (g rowGroup) plainDict(name string, i int) map[string]string {
	out := map[string]string{}
	for k, v := range g.dict(name, i) {
		if v != nil {
			out[k] = *v
		}
	}
	return out
}

// header is the row's action if it is none of a file.
func (b rowBatch) header(i int) (Action, error) {
	if t := b.group("txn"); t.present(i) {
		return Action{Txn: &Txn{AppID: t.text("appId", i), Version: t.number("version", i), LastUpdated: t.long("lastUpdated", i)}}, nil
	}
	if p := b.group("protocol"); p.present(i) {
		return Action{Protocol: &Protocol{
			MinReaderVersion: int(p.number("minReaderVersion", i)), MinWriterVersion: int(p.number("minWriterVersion", i)),
			ReaderFeatures: p.list("readerFeatures", i), WriterFeatures: p.list("writerFeatures", i),
		}}, nil
	}
	if m := b.group("metaData"); m.present(i) {
		md := MetaData{
			ID: m.text("id", i), Name: m.text("name", i), Description: m.text("description", i),
			Format: Format{Provider: "parquet", Options: map[string]string{}}, SchemaString: m.text("schemaString", i),
			PartitionColumns: append([]string{}, m.list("partitionColumns", i)...), Configuration: m.plainDict("configuration", i),
			CreatedTime: m.long("createdTime", i),
		}
		if s, ok := m.cols["format"].(*array.Struct); ok && s.IsValid(i) {
			f := newRowGroup(s)
			md.Format = Format{Provider: f.text("provider", i), Options: f.plainDict("options", i)}
		}
		if !json.Valid([]byte(md.SchemaString)) {
			return Action{}, fmt.Errorf("the metaData in row %d has no schema", i)
		}
		return Action{MetaData: &md}, nil
	}
	return Action{}, nil
}

// file is the row's add or remove.
func (b rowBatch) file(i int) (Action, bool) {
	if f := b.group("add"); f.present(i) {
		return Action{Add: &Add{
			Path: f.text("path", i), PartitionValues: f.dict("partitionValues", i), Size: f.number("size", i),
			ModificationTime: f.number("modificationTime", i), DataChange: f.flag("dataChange", i),
			Tags: f.dict("tags", i), Stats: f.text("stats", i), DeletionVector: f.deletionVector(i),
		}}, true
	}
	if f := b.group("remove"); f.present(i) {
		return Action{Remove: &Remove{
			Path: f.text("path", i), DeletionTimestamp: f.long("deletionTimestamp", i), DataChange: f.flag("dataChange", i),
			ExtendedFileMetadata: f.flag("extendedFileMetadata", i), PartitionValues: f.dict("partitionValues", i),
			Size: f.long("size", i), DeletionVector: f.deletionVector(i),
		}}, true
	}
	return Action{}, false
}

// deletionVector is that of a row in a checkpoint of another writer.
func (g rowGroup) deletionVector(i int) *DeletionVector {
	s, ok := g.cols["deletionVector"].(*array.Struct)
	if !ok || s.IsNull(i) {
		return nil
	}
	d := newRowGroup(s)
	out := &DeletionVector{
		StorageType: d.text("storageType", i), PathOrInlineDv: d.text("pathOrInlineDv", i),
		SizeInBytes: int32(d.number("sizeInBytes", i)), Cardinality: d.number("cardinality", i),
	}
	if o := d.long("offset", i); o != nil {
		out.Offset = ptr(int32(*o))
	}
	return out
}
