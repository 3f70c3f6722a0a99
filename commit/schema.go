package commit

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// arrowSchema is the Arrow form of an Iceberg schema, with field ids.
func arrowSchema(s *iceberg.Schema) (*arrow.Schema, error) {
	return table.SchemaToArrowSchema(s, nil, true, false)
}

// icebergSchema is the Iceberg form of an Arrow schema; its field ids are of no
// meaning, since table creation and evolution assign their own.
func icebergSchema(s *arrow.Schema) (*iceberg.Schema, error) {
	return table.ArrowSchemaToIcebergWithFreshIDs(s, false)
}

// covers tells whether have holds every field of want, at every level.
func covers(have, want []arrow.Field) bool {
	byName := make(map[string]arrow.Field, len(have))
	for _, f := range have {
		byName[f.Name] = f
	}
	for _, f := range want {
		h, ok := byName[f.Name]
		if !ok || !coversType(h.Type, f.Type) {
			return false
		}
	}
	return true
}

func coversType(have, want arrow.DataType) bool {
	switch w := want.(type) {
	case *arrow.StructType:
		h, ok := have.(*arrow.StructType)
		return ok && covers(h.Fields(), w.Fields())
	case *arrow.ListType:
		h, ok := have.(*arrow.ListType)
		return ok && coversType(h.Elem(), w.Elem())
	case *arrow.MapType:
		h, ok := have.(*arrow.MapType)
		return ok && coversType(h.KeyType(), w.KeyType()) && coversType(h.ItemType(), w.ItemType())
	default:
		return arrow.TypeEqual(have, want)
	}
}

// evolve stages in txn the fields of want that the table lacks, and returns the
// staged schema.
func evolve(txn *table.Transaction, want *arrow.Schema) (*iceberg.Schema, error) {
	wanted, err := icebergSchema(want)
	if err != nil {
		return nil, err
	}
	if err := txn.UpdateSchema(true, false).UnionByNameWith(wanted).Commit(); err != nil {
		return nil, err
	}
	staged, err := txn.StagedTable()
	if err != nil {
		return nil, err
	}
	return staged.Schema(), nil
}

// leaf is what identifies a column in a data file.
type leaf struct {
	path string
	typ  string
}

// leaves maps field ids to columns.
func leaves(s *iceberg.Schema) map[int]leaf {
	out := map[int]leaf{}
	var walk func(path []string, f iceberg.NestedField)
	walk = func(path []string, f iceberg.NestedField) {
		path = append(path[:len(path):len(path)], f.Name)
		switch typ := f.Type.(type) {
		case *iceberg.StructType:
			for _, c := range typ.FieldList {
				walk(path, c)
			}
		case *iceberg.ListType:
			walk(path, typ.ElementField())
		case *iceberg.MapType:
			walk(path, typ.KeyField())
			walk(path, typ.ValueField())
		default:
			out[f.ID] = leaf{path: strings.Join(path, "\x00"), typ: f.Type.String()}
		}
	}
	for _, f := range s.Fields() {
		walk(nil, f)
	}
	return out
}

// sameColumns checks that every column of the files' schema stands in the
// schema about to be committed under the same field id, path and type. Two
// writers that evolve from one schema both take the next id; without this check
// one's values would read back under the other's name.
func sameColumns(files, committed *iceberg.Schema) error {
	now := leaves(committed)
	for id, l := range leaves(files) {
		got, ok := now[id]
		if !ok || got != l {
			return fmt.Errorf("%w: field id %d was %s %s when the files were written", ErrSchemaChanged, id,
				strings.ReplaceAll(l.path, "\x00", "."), l.typ)
		}
	}
	return nil
}
