package icebergtable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore"
)

const commitIDKey = "test.commit-id"

var testSchema = iceberg.NewSchema(0,
	iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64},
	iceberg.NestedField{ID: 2, Name: "name", Type: iceberg.PrimitiveTypes.String},
)

// putRows stores a data file of the given ids under the table's data path.
func putRows(ctx context.Context, store *objstore.Store, tbl *table.Table, ids ...int64) (iceberg.DataFile, error) {
	schema, err := table.SchemaToArrowSchema(tbl.Schema(), nil, true, false)
	if err != nil {
		return nil, err
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for _, id := range ids {
		b.Field(0).(*array.Int64Builder).Append(id)
		b.Field(1).(*array.StringBuilder).Append(fmt.Sprint("row ", id))
		for i := 2; i < schema.NumFields(); i++ {
			b.Field(i).AppendNull()
		}
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	var buf bytes.Buffer
	if err := writeParquet(schema, rec, &buf); err != nil {
		return nil, err
	}
	dir, ok := store.Key(tbl.Properties()[table.WriteDataPathKey])
	if !ok {
		return nil, errors.New("no data path")
	}
	key := dir + "/" + uuid.NewString() + ".parquet"
	size := int64(buf.Len())
	if err := store.Put(ctx, key, buf.Bytes()); err != nil {
		return nil, err
	}
	builder, err := iceberg.NewDataFileBuilder(tbl.Spec(), iceberg.EntryContentData, store.Location(key), iceberg.ParquetFile, nil, nil, nil, rec.NumRows(), size)
	if err != nil {
		return nil, err
	}
	return builder.Build(), nil
}

func writeParquet(schema *arrow.Schema, rec arrow.RecordBatch, buf *bytes.Buffer) error {
	w, err := pqarrow.NewFileWriter(schema, buf, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
	if err != nil {
		return err
	}
	return errors.Join(w.Write(rec), w.Close())
}

// appendRows is the simplest sound conflict loop: reload, rebuild, commit, until in.
func appendRows(ctx context.Context, c *Catalog, ident []string, id string, ids ...int64) (conflicts int, err error) {
	tbl, err := c.LoadTable(ctx, ident)
	if err != nil {
		return 0, err
	}
	file, err := putRows(ctx, c.store, tbl, ids...)
	if err != nil {
		return 0, err
	}
	ctx = WithCommit(ctx, CommitOptions{})
	for attempt := 0; ; attempt++ {
		txn := tbl.NewTransaction()
		err := txn.AddDataFiles(ctx, []iceberg.DataFile{file}, iceberg.Properties{commitIDKey: id}, table.WithoutDuplicateCheck(), table.WithoutAutoNameMapping())
		if err == nil {
			_, err = txn.Commit(ctx)
		}
		if err == nil {
			return conflicts, nil
		}
		if !IsConflict(err) {
			return conflicts, err
		}
		if errors.Is(err, table.ErrCommitFailed) {
			return conflicts, fmt.Errorf("the library would replay: %w", err)
		}
		conflicts++
		time.Sleep(time.Duration(rand.IntN(1+min(attempt, 10)*2)) * time.Millisecond)
		if tbl, err = c.LoadTable(ctx, ident); err != nil {
			return conflicts, err
		}
	}
}

// checkCommits holds the table to exactly the commits of the given ids, one file of
// one row each, in the summaries and in the manifests.
func checkCommits(t *testing.T, c *Catalog, ident []string, ids []string) {
	t.Helper()
	tbl, err := c.LoadTable(t.Context(), ident)
	require.NoError(t, err)
	found := map[string]int{}
	for _, s := range tbl.Metadata().Snapshots() {
		found[s.Summary.Properties[commitIDKey]]++
	}
	for _, id := range ids {
		require.Equal(t, 1, found[id], "snapshots of commit %s", id)
	}
	require.Len(t, found, len(ids))
	cur := tbl.CurrentSnapshot()
	require.Equal(t, fmt.Sprint(len(ids)), cur.Summary.Properties["total-records"])
	require.EqualValues(t, len(ids), cur.SequenceNumber)

	files, err := liveFiles(t.Context(), tbl)
	require.NoError(t, err)
	require.Len(t, files, len(ids))
	for path, rows := range files {
		require.EqualValues(t, 1, rows)
		key, ok := c.store.Key(path)
		require.True(t, ok, path)
		require.Equal(t, path, c.store.Location(key), "file paths are canonical")
		_, err := c.store.Stat(t.Context(), key)
		require.NoError(t, err)
	}
}

// liveFiles are the live data files and their rows.
func liveFiles(ctx context.Context, tbl *table.Table) (map[string]int64, error) {
	out := map[string]int64{}
	cur := tbl.CurrentSnapshot()
	if cur == nil {
		return out, nil
	}
	fs, err := tbl.FS(ctx)
	if err != nil {
		return nil, err
	}
	manifests, err := cur.Manifests(fs)
	if err != nil {
		return nil, err
	}
	for _, m := range manifests {
		for e, err := range m.Entries(fs, true) {
			if err != nil {
				return nil, err
			}
			if _, twice := out[e.DataFile().FilePath()]; twice {
				return nil, fmt.Errorf("%s is there twice", e.DataFile().FilePath())
			}
			out[e.DataFile().FilePath()] = e.DataFile().Count()
		}
	}
	return out, nil
}
