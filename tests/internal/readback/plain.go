package readback

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
)

const (
	instantLayout = "2006-01-02T15:04:05.000000Z"
	localLayout   = "2006-01-02T15:04:05.000000"
)

// Row is a row in its plain form.
type Row map[string]any

// Text is the row as one line of JSON with sorted keys: equal rows have equal
// texts.
func (r Row) Text() string {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		panic(fmt.Sprintf("a plain row is JSON: %v", err)) // only plain values are in it
	}
	return strings.TrimSuffix(buf.String(), "\n")
}

// Texts are the texts of rows, sorted: equal sets of rows have equal lists.
func Texts(rows []Row) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = r.Text()
	}
	slices.Sort(out)
	return out
}

// recordRows are the plain rows of a record.
func recordRows(rec arrow.RecordBatch) ([]Row, error) {
	rows := make([]Row, rec.NumRows())
	for i := range rows {
		rows[i] = Row{}
	}
	for c, col := range rec.Columns() {
		name := rec.ColumnName(c)
		for i := range rows {
			v, err := plain(col, i)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if v != nil {
				rows[i][name] = v
			}
		}
	}
	return rows, nil
}

// plain is the plain form of one Arrow value.
func plain(col arrow.Array, i int) (any, error) {
	if col.IsNull(i) {
		return nil, nil
	}
	switch a := col.(type) {
	case *array.Boolean:
		return a.Value(i), nil
	case *array.Int8:
		return integer(int64(a.Value(i))), nil
	case *array.Int16:
		return integer(int64(a.Value(i))), nil
	case *array.Int32:
		return integer(int64(a.Value(i))), nil
	case *array.Int64:
		return integer(a.Value(i)), nil
	case *array.Float32:
		return double(float64(a.Value(i)), 32), nil
	case *array.Float64:
		return double(a.Value(i), 64), nil
	case *array.Decimal128:
		return a.Value(i).ToString(a.DataType().(arrow.DecimalType).GetScale()), nil
	case *array.String:
		return a.Value(i), nil
	case *array.LargeString:
		return a.Value(i), nil
	case *array.Binary:
		return base64.StdEncoding.EncodeToString(a.Value(i)), nil
	case *array.LargeBinary:
		return base64.StdEncoding.EncodeToString(a.Value(i)), nil
	case *array.Date32:
		return a.Value(i).ToTime().Format(time.DateOnly), nil
	case *array.Timestamp:
		typ := a.DataType().(*arrow.TimestampType)
		at := a.Value(i).ToTime(typ.Unit)
		if typ.TimeZone != "" {
			return at.Format(instantLayout), nil
		}
		return at.Format(localLayout), nil
	case *array.Struct:
		typ := a.DataType().(*arrow.StructType)
		out := map[string]any{}
		for f := range a.NumField() {
			v, err := plain(a.Field(f), i)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", typ.Field(f).Name, err)
			}
			if v != nil {
				out[typ.Field(f).Name] = v
			}
		}
		return out, nil
	case *array.Map: // before List, which it embeds
		from, to := a.ValueOffsets(i)
		pairs := make([][2]any, 0, to-from)
		for j := int(from); j < int(to); j++ {
			k, err := plain(a.Keys(), j)
			if err != nil {
				return nil, err
			}
			v, err := plain(a.Items(), j)
			if err != nil {
				return nil, err
			}
			pairs = append(pairs, [2]any{k, v})
		}
		slices.SortFunc(pairs, func(a, b [2]any) int { return strings.Compare(fmt.Sprint(a[0]), fmt.Sprint(b[0])) })
		return pairs, nil
	case array.ListLike:
		from, to := a.ValueOffsets(i)
		out := make([]any, 0, to-from)
		for j := int(from); j < int(to); j++ {
			v, err := plain(a.ListValues(), j)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	}
	return nil, fmt.Errorf("no plain form for %s", col.DataType())
}

func integer(v int64) json.Number { return json.Number(strconv.FormatInt(v, 10)) }

func double(v float64, bits int) any {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "Infinity"
	case math.IsInf(v, -1):
		return "-Infinity"
	}
	return json.Number(strconv.FormatFloat(v, 'g', -1, bits))
}

// ParseRows reads objects, one after the other, with their numbers kept as digits.
func ParseRows(r io.Reader) ([]Row, error) {
	dec := json.NewDecoder(r)
	dec.UseNumber()
	var rows []Row
	for {
		var row Row
		if err := dec.Decode(&row); errors.Is(err, io.EOF) {
			return rows, nil
		} else if err != nil {
			return nil, fmt.Errorf("row %d: %w", len(rows)+1, err)
		}
		rows = append(rows, row)
	}
}

// Conform brings rows as a person writes them (or as they were sent) into the
// plain form, by the types of the table: 1 in a double column is the double 1,
// a timestamp is brought to UTC and six digits, a null is left out. It never
// converts between kinds: a string in a long column is an error.
func Conform(schema *iceberg.Schema, rows []Row) ([]Row, error) {
	out := make([]Row, len(rows))
	for i, row := range rows {
		v, err := conformStruct(schema.Fields(), row)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i+1, err)
		}
		out[i] = v
	}
	return out, nil
}

func conformStruct(fields []iceberg.NestedField, in map[string]any) (map[string]any, error) {
	out := map[string]any{}
	for name, v := range in {
		if v == nil {
			continue
		}
		at := slices.IndexFunc(fields, func(f iceberg.NestedField) bool { return f.Name == name })
		if at < 0 {
			return nil, fmt.Errorf("%s: no such field", name)
		}
		c, err := conform(fields[at].Type, v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if c != nil {
			out[name] = c
		}
	}
	return out, nil
}

func conform(t iceberg.Type, v any) (any, error) {
	if v == nil {
		return nil, nil
	}
	wrong := fmt.Errorf("%v (%T) is no %s", v, v, t)
	switch typ := t.(type) {
	case *iceberg.StructType:
		in, ok := v.(map[string]any)
		if !ok {
			return nil, wrong
		}
		return conformStruct(typ.FieldList, in)
	case *iceberg.ListType:
		in, ok := v.([]any)
		if !ok {
			return nil, wrong
		}
		out := make([]any, len(in))
		for i, e := range in {
			c, err := conform(typ.Element, e)
			if err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
			out[i] = c
		}
		return out, nil
	case *iceberg.MapType:
		in, ok := v.(map[string]any)
		if !ok {
			return nil, wrong
		}
		out := make([][2]any, 0, len(in))
		for k, e := range in {
			c, err := conform(typ.ValueType, e)
			if err != nil {
				return nil, fmt.Errorf("[%s]: %w", k, err)
			}
			out = append(out, [2]any{k, c})
		}
		slices.SortFunc(out, func(a, b [2]any) int { return strings.Compare(fmt.Sprint(a[0]), fmt.Sprint(b[0])) })
		return out, nil
	case iceberg.BooleanType:
		if _, ok := v.(bool); !ok {
			return nil, wrong
		}
		return v, nil
	case iceberg.Int32Type, iceberg.Int64Type:
		n, ok := v.(json.Number)
		if !ok {
			return nil, wrong
		}
		i, err := strconv.ParseInt(n.String(), 10, 64)
		if err != nil {
			return nil, wrong
		}
		return integer(i), nil
	case iceberg.Float32Type, iceberg.Float64Type:
		text, ok := v.(json.Number)
		if !ok {
			s, isString := v.(string)
			if !isString {
				return nil, wrong
			}
			text = json.Number(s) // NaN, Infinity
		}
		bits := 64
		if t.Equals(iceberg.PrimitiveTypes.Float32) {
			bits = 32
		}
		f, err := strconv.ParseFloat(text.String(), bits)
		if err != nil {
			return nil, wrong
		}
		return double(f, bits), nil
	case iceberg.TimestampTzType:
		return moment(v, time.RFC3339Nano, instantLayout, wrong)
	case iceberg.TimestampType:
		return moment(v, "2006-01-02T15:04:05.999999999", localLayout, wrong)
	default: // decimals, dates, strings, binary: strings, as they are
		if _, ok := v.(string); !ok {
			return nil, wrong
		}
		return v, nil
	}
}

func moment(v any, parse, format string, wrong error) (any, error) {
	s, ok := v.(string)
	if !ok {
		return nil, wrong
	}
	at, err := time.Parse(parse, s)
	if err != nil {
		return nil, wrong
	}
	return at.UTC().Format(format), nil
}
