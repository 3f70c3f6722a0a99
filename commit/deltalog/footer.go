package deltalog

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/apache/arrow-go/v18/parquet"
	pqfile "github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/apache/iceberg-go"
	"golang.org/x/sync/errgroup"
)

// Where it does not follow from the table's schemas that its files read the same
// by name as by field id, the files are asked: their footers hold both.

// pathSep joins names to a path; unlike a dot, it stands in no name.
const pathSep = "\x00"

func dotted(path string) string { return strings.ReplaceAll(path, pathSep, ".") }

// leafColumn is a column of a data file.
type leafColumn struct {
	path string // names down from the root, joined by pathSep, with Parquet's own levels of lists and maps left out
	id   int    // field id; -1: none
	kind columnKind
}

// columnKind is a type as far as readers tell it apart.
type columnKind string

// conforms says why a file with these columns does not read the same by name as
// by field id under the schema; "" if it does.
func conforms(cols []leafColumn, s *iceberg.Schema) string {
	byPath := map[string]schemaLeaf{}
	byID := map[int]schemaLeaf{}
	for _, l := range schemaLeaves(s) {
		byPath[l.path] = l
		byID[l.id] = l
	}
	for _, c := range cols {
		l, ok := byPath[c.path]
		switch {
		case ok && (c.id < 0 || c.id == l.id):
			if c.kind != l.kind {
				return fmt.Sprintf("it holds column %s as %s, and the table as %s", dotted(c.path), c.kind, l.kind)
			}
		case ok:
			return fmt.Sprintf("its column %s is another column than the table's", dotted(c.path))
		case c.id >= 0 && byID[c.id].path != "":
			return fmt.Sprintf("it holds column %s by the name %s", dotted(byID[c.id].path), dotted(c.path))
		default:
			return fmt.Sprintf("it holds column %s, which the table has not any more", dotted(c.path))
		}
	}
	return ""
}

type schemaLeaf struct {
	path string
	id   int
	kind columnKind
}

func schemaLeaves(s *iceberg.Schema) []schemaLeaf {
	var out []schemaLeaf
	var walk func(path string, id int, t iceberg.Type)
	fields := func(prefix string, list []iceberg.NestedField) {
		for _, f := range list {
			walk(prefix+f.Name, f.ID, f.Type)
		}
	}
	walk = func(path string, id int, t iceberg.Type) {
		switch t := t.(type) {
		case *iceberg.StructType:
			fields(path+pathSep, t.FieldList)
		case *iceberg.ListType:
			walk(path+pathSep+"element", t.ElementID, t.Element)
		case *iceberg.MapType:
			walk(path+pathSep+"key", t.KeyID, t.KeyType)
			walk(path+pathSep+"value", t.ValueID, t.ValueType)
		default:
			out = append(out, schemaLeaf{path, id, columnKind(t.String())})
		}
	}
	fields("", s.Fields())
	return out
}

// fileColumns are the leaf columns of a Parquet schema.
func fileColumns(s *schema.Schema) []leafColumn {
	var out []leafColumn
	var walk func(path string, n schema.Node)
	walk = func(path string, n schema.Node) {
		g, ok := n.(*schema.GroupNode)
		if !ok {
			out = append(out, leafColumn{path: path, id: int(n.FieldID()), kind: kindOf(n.(*schema.PrimitiveNode))})
			return
		}
		logical, converted := n.LogicalType(), n.ConvertedType()
		_, isList := logical.(schema.ListLogicalType)
		_, isMap := logical.(schema.MapLogicalType)
		switch {
		case (isList || converted == schema.ConvertedTypes.List) && g.NumFields() == 1:
			if mid, ok := g.Field(0).(*schema.GroupNode); ok && mid.NumFields() == 1 {
				walk(path+pathSep+"element", mid.Field(0))
			} else {
				walk(path+pathSep+"element", g.Field(0)) // the old form of two levels
			}
		case (isMap || converted == schema.ConvertedTypes.Map || converted == schema.ConvertedTypes.MapKeyValue) && g.NumFields() == 1:
			if mid, ok := g.Field(0).(*schema.GroupNode); ok && mid.NumFields() == 2 {
				walk(path+pathSep+"key", mid.Field(0))
				walk(path+pathSep+"value", mid.Field(1))
			}
		default:
			for i := range g.NumFields() {
				walk(path+pathSep+g.Field(i).Name(), g.Field(i))
			}
		}
	}
	root := s.Root()
	for i := range root.NumFields() {
		walk(root.Field(i).Name(), root.Field(i))
	}
	return out
}

// kindOf is the Iceberg type that a Parquet column holds (Iceberg spec, appendix A).
func kindOf(n *schema.PrimitiveNode) columnKind {
	switch l := n.LogicalType().(type) {
	case schema.StringLogicalType:
		return columnKind(iceberg.PrimitiveTypes.String.String())
	case schema.DateLogicalType:
		return columnKind(iceberg.PrimitiveTypes.Date.String())
	case schema.TimestampLogicalType:
		if l.IsAdjustedToUTC() {
			return columnKind(iceberg.PrimitiveTypes.TimestampTz.String())
		}
		return columnKind(iceberg.PrimitiveTypes.Timestamp.String())
	case schema.DecimalLogicalType:
		return columnKind(iceberg.DecimalTypeOf(int(l.Precision()), int(l.Scale())).String())
	}
	switch n.PhysicalType() {
	case parquet.Types.Boolean:
		return columnKind(iceberg.PrimitiveTypes.Bool.String())
	case parquet.Types.Int32:
		return columnKind(iceberg.PrimitiveTypes.Int32.String())
	case parquet.Types.Int64:
		return columnKind(iceberg.PrimitiveTypes.Int64.String())
	case parquet.Types.Float:
		return columnKind(iceberg.PrimitiveTypes.Float32.String())
	case parquet.Types.Double:
		return columnKind(iceberg.PrimitiveTypes.Float64.String())
	case parquet.Types.Int96:
		return columnKind(iceberg.PrimitiveTypes.TimestampTz.String())
	default:
		return columnKind(iceberg.PrimitiveTypes.Binary.String())
	}
}

// plainName are the names that every Iceberg writer stores as they are; some
// encode others in Parquet.
var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// needsFooters tells whether names alone leave it open how another engine stored
// the columns.
func needsFooters(s *iceberg.Schema) bool {
	for _, l := range schemaLeaves(s) {
		for part := range strings.SplitSeq(l.path, pathSep) {
			if !plainName.MatchString(part) {
				return true
			}
		}
	}
	return false
}

// checkFooters is a [heldError] if one of the files does not conform to the
// schema. because says why they are asked.
func checkFooters(ctx context.Context, l logStore, files []file, s *iceberg.Schema, because string) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(window)
	for _, f := range files {
		g.Go(func() error {
			cols, err := readFooter(ctx, l, f)
			if err != nil {
				return err
			}
			if why := conforms(cols, s); why != "" {
				return held("%s; data file %s does not read the same by column name: %s", because, f.Path, why)
			}
			return nil
		})
	}
	return g.Wait()
}

func readFooter(ctx context.Context, l logStore, f file) (_ []leafColumn, err error) {
	r, err := l.store.OpenReader(ctx, l.root+"/"+f.Path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	pf, err := pqfile.NewParquetReader(r)
	if err != nil {
		return nil, fmt.Errorf("data file %s: %w", f.Path, err)
	}
	defer pf.Close()
	return fileColumns(pf.MetaData().Schema), nil
}
