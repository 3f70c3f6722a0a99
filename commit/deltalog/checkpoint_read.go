package deltalog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	pqfile "github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

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
