package readback

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go"
)

// Both are the two sides of one table.
type Both struct {
	Iceberg *Iceberg
	Delta   *Delta
}

// Check reads the table below dir in both formats and returns what it read, and an
// error that names everything that is not as it must be in every table:
//
//   - the same columns, live files and rows in both formats
//   - each file's size and row count as both formats tell it
//   - the Delta log without holes; its txn at the Iceberg table's last sequence
//     number under its UUID; the checkpoint equal to the log it sums up
//   - Delta statistics that hold for the rows in the file; Iceberg bounds likewise,
//     and the partition summaries of manifests for the partitions in them
//   - data below `delta` only, metadata below `iceberg` only, and nothing in either
//     folder that neither format refers to
func Check(ctx context.Context, dir string) (*Both, error) {
	ice, err := ReadIceberg(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("iceberg: %w", err)
	}
	del, err := ReadDelta(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("delta: %w", err)
	}
	var wrong []error
	bad := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }

	if !slices.Equal(ice.Columns, del.Columns) {
		bad("columns differ:\n  iceberg %v\n  delta   %v", ice.Columns, del.Columns)
	}
	for _, p := range del.Physical {
		bad("%s", p)
	}
	if diff := difference("iceberg", Texts(ice.Rows), "delta", Texts(del.Rows)); diff != "" {
		bad("rows differ:\n%s", diff)
	}
	if diff := difference("iceberg", fileTexts(ice.Files), "delta", fileTexts(del.Files)); diff != "" {
		bad("live files differ:\n%s", diff)
	}
	for _, f := range ice.Files {
		info, err := os.Stat(f.Path)
		if err != nil {
			bad("live file: %w", err)
		} else if info.Size() != f.Size {
			bad("%s has %d bytes, the formats say %d", f.Path, info.Size(), f.Size)
		}
	}
	meta := ice.Table.Metadata()
	app := "iceberg-" + meta.TableUUID().String()
	if got, ok := del.Txns[app]; !ok || got != meta.LastSequenceNumber() {
		bad("txn of Delta version %d is %v, %s is at sequence number %d", del.Version, del.Txns, app, meta.LastSequenceNumber())
	}
	for i, v := range del.Commits {
		if i > 0 && v != del.Commits[i-1]+1 {
			bad("the Delta log jumps from %d to %d", del.Commits[i-1], v)
		}
	}
	if len(del.Commits) > 0 && del.Commits[0] == 0 {
		zero, err := ReadDeltaFromZero(ctx, dir)
		if err != nil {
			bad("delta from version 0: %w", err)
		} else if diff := difference("checkpoint", fileTexts(del.Files), "log", fileTexts(zero.Files)); diff != "" {
			bad("the checkpoint differs from the log:\n%s", diff)
		} else if !maps.Equal(zero.Txns, del.Txns) || zero.MetaData.SchemaString != del.MetaData.SchemaString {
			bad("the checkpoint differs from the log in txn or metaData")
		}
	}
	fields, singles := map[string]iceberg.NestedField{}, map[string]bool{}
	scalarFields(ice.Table.Schema().Fields(), "", fields)
	for path, f := range fields {
		singles[path] = f.Type.Equals(iceberg.PrimitiveTypes.Float32)
	}
	for i, add := range del.Adds {
		if err := checkStats(add, del.FileRows[i], singles); err != nil {
			bad("delta statistics of %s: %w", add.Path, err)
		}
	}
	rowsOf := map[string][]Row{}
	for i, f := range del.Files {
		rowsOf[f.Path] = del.FileRows[i]
	}
	for i, f := range ice.Files {
		if err := checkBounds(ice.Table.Schema(), ice.Entries[i], rowsOf[f.Path]); err != nil {
			bad("iceberg statistics of %s: %w", f.Path, err)
		}
	}
	if err := checkSummaries(ctx, ice); err != nil {
		bad("iceberg manifest list: %w", err)
	}
	for _, f := range strays(ctx, dir, ice, del) {
		bad("stray file %s", f)
	}
	return &Both{Iceberg: ice, Delta: del}, errors.Join(wrong...)
}

func fileTexts(files []File) []string {
	out := make([]string, len(files))
	for i, f := range files {
		out[i] = fmt.Sprintf("%s (%d bytes, %d rows)", f.Path, f.Size, f.Rows)
	}
	slices.Sort(out)
	return out
}

// difference tells what is in one sorted list and not in the other, some of it.
func difference(nameA string, a []string, nameB string, b []string) string {
	count := map[string]int{}
	for _, s := range a {
		count[s]++
	}
	for _, s := range b {
		count[s]--
	}
	var out []string
	for _, s := range slices.Sorted(maps.Keys(count)) {
		if n := count[s]; n > 0 {
			out = append(out, fmt.Sprintf("  only in %s (%d times): %s", nameA, n, s))
		} else if n < 0 {
			out = append(out, fmt.Sprintf("  only in %s (%d times): %s", nameB, -n, s))
		}
	}
	if len(out) > 10 {
		out = append(out[:10], fmt.Sprintf("  and %d more", len(out)-10))
	}
	return strings.Join(out, "\n")
}

// Difference is empty if both lists hold the same texts, as often, in any order.
func Difference(want, got []string) string { return difference("expected", want, "the table", got) }

// strays are files below dir that neither format refers to.
func strays(ctx context.Context, dir string, ice *Iceberg, del *Delta) []string {
	known := map[string]bool{}
	for _, f := range ice.Files {
		known[f.Path] = true
	}
	for _, f := range del.Removed {
		known[f] = true
	}
	known[ice.Metadata] = true
	for entry := range ice.Table.Metadata().PreviousFiles() {
		known[strings.TrimPrefix(entry.MetadataFile, "file://")] = true
	}
	fsys, err := ice.Table.FS(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	for _, s := range ice.Table.Metadata().Snapshots() {
		known[strings.TrimPrefix(s.ManifestList, "file://")] = true
		manifests, err := s.Manifests(fsys)
		if err != nil {
			return []string{err.Error()}
		}
		for _, m := range manifests {
			known[strings.TrimPrefix(m.FilePath(), "file://")] = true
		}
	}
	var out []string
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		switch {
		case known[path]:
		case rel == filepath.Join("iceberg", "metadata", "version-hint.text"):
		case strings.HasPrefix(rel, filepath.Join("delta", "_delta_log")+string(filepath.Separator)):
			name := filepath.Base(path)
			if !logEntry.MatchString(name) && name != "_last_checkpoint" && !strings.HasSuffix(name, ".checkpoint.parquet") {
				out = append(out, rel)
			}
		default:
			out = append(out, rel)
		}
		return nil
	})
	if err != nil {
		out = append(out, err.Error())
	}
	return out
}

// pathSep joins the names of a path: a name may well hold a dot.
const pathSep = " > "

// leaves are the scalar values of a row by path; lists and maps have none. A
// column that is NULL, or whose struct is, is absent.
func leaves(row map[string]any, prefix string, out map[string]any) {
	for name, v := range row {
		path := prefix + name
		switch v := v.(type) {
		case map[string]any:
			leaves(v, path+pathSep, out)
		case []any, [][2]any:
			out[path] = nil // present, without an order
		default:
			out[path] = v
		}
	}
}

// checkStats holds a Delta file's statistics against its rows. singles are the paths
// of columns of 32-bit floats: their bounds count for what they are as such.
func checkStats(add deltaAdd, rows []Row, singles map[string]bool) error {
	if add.Stats == "" {
		return errors.New("none")
	}
	var stats struct {
		NumRecords *int64         `json:"numRecords"`
		MinValues  map[string]any `json:"minValues"`
		MaxValues  map[string]any `json:"maxValues"`
		NullCount  map[string]any `json:"nullCount"`
	}
	dec := json.NewDecoder(strings.NewReader(add.Stats))
	dec.UseNumber()
	if err := dec.Decode(&stats); err != nil {
		return err
	}
	if stats.NumRecords == nil || *stats.NumRecords != int64(len(rows)) {
		return fmt.Errorf("numRecords %v, the file has %d rows", stats.NumRecords, len(rows))
	}
	low, high, nulls := map[string]any{}, map[string]any{}, map[string]any{}
	leaves(stats.MinValues, "", low)
	leaves(stats.MaxValues, "", high)
	leaves(stats.NullCount, "", nulls)
	for _, bounds := range []map[string]any{low, high} {
		for path, b := range bounds {
			if n, ok := b.(json.Number); ok && singles[path] {
				f, err := strconv.ParseFloat(n.String(), 32)
				if err != nil {
					return fmt.Errorf("bound of %s: %w", path, err)
				}
				bounds[path] = double(f, 32)
			}
		}
	}
	present := map[string]int64{}
	for _, row := range rows {
		flat := map[string]any{}
		leaves(row, "", flat)
		for path, v := range flat {
			present[path]++
			if v == nil {
				continue
			}
			if b, ok := low[path]; ok && compare(b, v) > 0 {
				return fmt.Errorf("minValues.%s is %v, the file holds %v", path, b, v)
			}
			if b, ok := high[path]; ok && compare(b, cut(v)) < 0 {
				return fmt.Errorf("maxValues.%s is %v, the file holds %v", path, b, v)
			}
		}
	}
	for path, n := range nulls {
		if want := int64(len(rows)) - present[path]; fmt.Sprint(n) != fmt.Sprint(want) {
			return fmt.Errorf("nullCount.%s is %v, the file has %d", path, n, want)
		}
	}
	for path := range low {
		if present[path] == 0 {
			return fmt.Errorf("minValues.%s is given, the file has no value", path)
		}
	}
	return nil
}

// cut brings a timestamp down to the millisecond that Delta's statistics hold.
func cut(v any) any {
	s, ok := v.(string)
	if ok && len(s) >= 26 && len(s) <= 27 && s[4] == '-' && s[10] == 'T' && s[19] == '.' {
		return s[:23] + s[26:]
	}
	return v
}

// compare orders two plain values of one type. Timestamps compare as their text.
func compare(bound, v any) int {
	switch bound := bound.(type) {
	case json.Number:
		a, ok := new(big.Rat).SetString(bound.String())
		b, ok2 := new(big.Rat).SetString(fmt.Sprint(v)) // NaN has no place in an order
		if !ok || !ok2 {
			return 0
		}
		return a.Cmp(b)
	case string:
		return strings.Compare(strings.TrimSuffix(bound, "Z"), strings.TrimSuffix(fmt.Sprint(v), "Z"))
	}
	return 0
}

// checkBounds holds an Iceberg data file's counts and bounds against its rows.
func checkBounds(schema *iceberg.Schema, df iceberg.DataFile, rows []Row) error {
	present := map[string]int64{}
	values := map[string][]any{}
	for _, row := range rows {
		flat := map[string]any{}
		leaves(row, "", flat)
		for path, v := range flat {
			present[path]++
			if v != nil {
				values[path] = append(values[path], v)
			}
		}
	}
	ids := map[string]iceberg.NestedField{}
	scalarFields(schema.Fields(), "", ids)
	for path, field := range ids {
		if n, ok := df.NullValueCounts()[field.ID]; ok {
			if want := int64(len(rows)) - present[path]; n != want {
				return fmt.Errorf("null count of %s is %d, the file has %d", path, n, want)
			}
		}
		typ, ok := field.Type.(iceberg.PrimitiveType)
		if !ok {
			continue
		}
		for _, side := range []struct {
			bytes []byte
			sign  int
			name  string
		}{{df.LowerBoundValues()[field.ID], 1, "lower"}, {df.UpperBoundValues()[field.ID], -1, "upper"}} {
			if side.bytes == nil {
				continue
			}
			bound, err := boundValue(typ, side.bytes)
			if err != nil {
				return fmt.Errorf("%s bound of %s: %w", side.name, path, err)
			}
			for _, v := range values[path] {
				if bound != nil && compare(bound, v)*side.sign > 0 {
					return fmt.Errorf("%s bound of %s is %v, the file holds %v", side.name, path, bound, v)
				}
			}
		}
	}
	return nil
}

// checkSummaries holds the partition summaries of manifests against their entries.
func checkSummaries(ctx context.Context, ice *Iceberg) error {
	if ice.Table.CurrentSnapshot() == nil {
		return nil
	}
	fsys, err := ice.Table.FS(ctx)
	if err != nil {
		return err
	}
	manifests, err := ice.Table.CurrentSnapshot().Manifests(fsys)
	if err != nil {
		return err
	}
	spec := ice.Table.Spec()
	for _, m := range manifests {
		if int(m.PartitionSpecID()) != spec.ID() {
			continue
		}
		for i, p := range m.Partitions() {
			for e, err := range m.Entries(fsys, false) {
				if err != nil {
					return err
				}
				v := e.DataFile().Partition()[spec.Field(i).FieldID]
				if v == nil && !p.ContainsNull || v != nil && (p.LowerBound == nil || p.UpperBound == nil) {
					return fmt.Errorf("%s: the summary of %s leaves out the partition %v", m.FilePath(), spec.Field(i).Name, v)
				}
				if s, ok := v.(string); ok && (s < string(*p.LowerBound) || s > string(*p.UpperBound)) {
					return fmt.Errorf("%s: the summary of %s is from %q to %q, a partition is %q", m.FilePath(), spec.Field(i).Name, *p.LowerBound, *p.UpperBound, s)
				}
			}
		}
	}
	return nil
}

func scalarFields(fields []iceberg.NestedField, prefix string, out map[string]iceberg.NestedField) {
	for _, f := range fields {
		switch t := f.Type.(type) {
		case *iceberg.StructType:
			scalarFields(t.FieldList, prefix+f.Name+pathSep, out)
		case *iceberg.ListType, *iceberg.MapType:
		default:
			out[prefix+f.Name] = f
		}
	}
}

// boundValue is a bound in the plain form of its type; nil for types that it has
// no order for here.
func boundValue(t iceberg.PrimitiveType, data []byte) (any, error) {
	lit, err := iceberg.LiteralFromBytes(t, data)
	if err != nil {
		return nil, err
	}
	switch l := lit.(type) {
	case iceberg.Int32Literal:
		return integer(int64(l)), nil
	case iceberg.Int64Literal:
		return integer(int64(l)), nil
	case iceberg.Float32Literal:
		return double(float64(l), 32), nil
	case iceberg.Float64Literal:
		return double(float64(l), 64), nil
	case iceberg.StringLiteral:
		return string(l), nil
	case iceberg.DecimalLiteral:
		return json.Number(l.Val.ToString(int32(l.Scale))), nil
	case iceberg.DateLiteral:
		return iceberg.Date(l).ToTime().Format("2006-01-02"), nil
	case iceberg.TimestampLiteral:
		if _, ok := t.(iceberg.TimestampTzType); ok {
			return iceberg.Timestamp(l).ToTime().UTC().Format(instantLayout), nil
		}
		return iceberg.Timestamp(l).ToTime().UTC().Format(localLayout), nil
	}
	return nil, nil
}
