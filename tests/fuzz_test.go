package tests

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/managed-lakehouse/managed-lakehouse/arrowconv"
	"github.com/managed-lakehouse/managed-lakehouse/commit"
	"github.com/managed-lakehouse/managed-lakehouse/commit/icebergtable"
	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore"
	"github.com/managed-lakehouse/managed-lakehouse/tests/internal/readback"
)

type oneRow []byte

func (r oneRow) Len() int                    { return 1 }
func (r oneRow) Bytes(int) ([]byte, bool)    { return r, true }
func (r oneRow) Structured(int) (any, error) { return nil, nil }

// FuzzTable takes a row through a table and back: what is read from Iceberg and
// from Delta is what another parser finds in the text, or the row is refused.
// Seeds are the parsing cases, as rows and as values of a row, and real events.
func FuzzTable(f *testing.F) {
	for _, s := range []string{
		`{"id":9007199254740993,"d":1.5,"s":"é\u0000","b":true,"n":null}`,
		`{"o":{"a":[1,null,3],"e":[],"o":{}},"l":[{"x":1},{"y":"z"},null]}`,
		`{"a":[[1],[],null],"v":-0.0,"w":1e300,"x":12345678901234567890}`,
	} {
		f.Add([]byte(s))
	}
	shared := os.Getenv("LAKEHOUSE_TEST_DATA")
	if shared == "" {
		shared = filepath.Join("..", "..", "shared", "data")
	}
	if data, err := os.ReadFile(filepath.Join(shared, "json-parsing-cases.jsonl")); err == nil {
		for line := range bytes.Lines(data) {
			var c struct{ Base64 string }
			require.NoError(f, json.Unmarshal(line, &c))
			if text, err := base64.StdEncoding.DecodeString(c.Base64); err == nil && len(text) < 1000 {
				f.Add(text)
				f.Add(append(append([]byte(`{"v":`), text...), '}'))
			}
		}
	}
	if data, err := os.ReadFile(filepath.Join(shared, "earthquakes.ndjson")); err == nil {
		f.Add(data[:bytes.IndexByte(data, '\n')])
	}

	dir := f.TempDir()
	warehouse, err := commit.OpenWarehouse(f.Context(), commit.Config{
		Store: objstore.Config{URL: dir}, Catalog: icebergtable.Config{Filesystem: &icebergtable.FilesystemConfig{}}, Delta: true,
	})
	require.NoError(f, err)
	tables := 0
	f.Fuzz(func(t *testing.T, text []byte) {
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		defer mem.AssertSize(t, 0)
		plan, err := arrowconv.NewPlan(nil, arrowconv.Options{
			Evolve: true, MaxColumns: 200, MaxDepth: 16, ColumnNames: arrowconv.RejectNames,
		})
		require.NoError(t, err)
		tuning := arrowconv.ArrowTuning{BatchSize: 10}
		chunk, err := plan.Convert(oneRow(text), nil, tuning, mem)
		require.NoError(t, err)
		if chunk.Unknown == nil {
			chunk.Release()
			return // refused
		}
		plan, err = plan.Extend(chunk.Unknown)
		require.NoError(t, err)
		chunk, err = plan.Convert(oneRow(text), nil, tuning, mem)
		require.NoError(t, err)
		defer chunk.Release()
		if chunk.Rows == 0 {
			return
		}

		tables++
		ident := []string{"fuzz", fmt.Sprint("t", tables)}
		tbl, err := warehouse.OpenTable(t.Context(), ident, commit.TableOptions{})
		require.NoError(t, err)
		draft, err := tbl.Begin(t.Context(), plan.Schema())
		require.NoError(t, err)
		for _, r := range chunk.Records {
			require.NoError(t, draft.Write(t.Context(), r))
		}
		_, err = draft.Commit(t.Context(), commit.Info{Trigger: "rows"})
		require.NoError(t, err)
		warehouse.Release(tbl)

		at := filepath.Join(dir, ident[0], ident[1])
		got, err := readback.Check(t.Context(), at)
		require.NoError(t, err)
		require.NoError(t, os.RemoveAll(at))
		sent, err := readback.ParseRows(bytes.NewReader(text))
		require.NoError(t, err, "accepted what another parser refuses")
		require.Len(t, sent, 1)
		schema := got.Iceberg.Table.Schema()
		dropTypeless(t, schema.Fields(), sent[0])
		want, err := readback.Conform(schema, sent)
		require.NoError(t, err)
		require.Equal(t, readback.Texts(want), readback.Texts(got.Iceberg.Rows))
		require.Equal(t, readback.Texts(want), readback.Texts(got.Delta.Rows))
	})
}

// dropTypeless takes out fields that have no column, and makes sure that nothing in
// them has a type.
func dropTypeless(t *testing.T, fields []iceberg.NestedField, row map[string]any) {
	t.Helper()
	types := map[string]iceberg.Type{}
	for _, f := range fields {
		types[f.Name] = f.Type
	}
	for name, v := range row {
		typ, ok := types[name]
		if !ok {
			require.True(t, typeless(v), "%s: %v is lost", name, v)
			delete(row, name)
			continue
		}
		dropBelow(t, typ, v)
	}
}

func dropBelow(t *testing.T, typ iceberg.Type, v any) {
	t.Helper()
	switch typ := typ.(type) {
	case *iceberg.StructType:
		if m, ok := v.(map[string]any); ok {
			dropTypeless(t, typ.FieldList, m)
		}
	case *iceberg.ListType:
		list, _ := v.([]any)
		for _, e := range list {
			dropBelow(t, typ.Element, e)
		}
	}
}

func typeless(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case []any:
		for _, e := range v {
			if !typeless(e) {
				return false
			}
		}
		return true
	case map[string]any:
		for _, e := range v {
			if !typeless(e) {
				return false
			}
		}
		return true
	}
	return false
}
