package deltalog

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/iceberg-go"
)

// indexedLeaves is the number of leaf columns, in schema order, that have
// statistics: Delta's default of delta.dataSkippingNumIndexedCols.
const indexedLeaves = 32

// stringPrefix is the length, in characters, to which string bounds are cut.
const stringPrefix = 32

// statNode is a column of which statistics are written; one with children is a
// struct.
type statNode struct {
	key      string // name, JSON-encoded
	id       int
	kind     iceberg.Type
	children []statNode
}

// statsPlan lays out the statistics of a schema.
func statsPlan(s *iceberg.Schema) []statNode {
	left := indexedLeaves
	var walk func([]iceberg.NestedField) []statNode
	walk = func(fields []iceberg.NestedField) []statNode {
		var out []statNode
		for _, f := range fields {
			if left == 0 {
				break
			}
			name, err := marshalPlain(f.Name)
			if err != nil {
				continue
			}
			n := statNode{key: name, id: f.ID, kind: f.Type}
			if st, ok := f.Type.(*iceberg.StructType); ok {
				if n.children = walk(st.FieldList); len(n.children) == 0 {
					continue
				}
			} else {
				left--
			}
			out = append(out, n)
		}
		return out
	}
	return walk(s.Fields())
}

// fileStats is the stats string of an add action (Delta protocol, "Per-file
// Statistics"), from what the Iceberg manifest knows of the file. What is not
// known, or has no sound form in Delta, is left out: a reader then reads the
// file.
func fileStats(plan []statNode, f iceberg.DataFile) string {
	lower, upper := f.LowerBoundValues(), f.UpperBoundValues()
	nulls, nans := f.NullValueCounts(), f.NaNValueCounts()
	bound := func(bounds map[int][]byte, encode func(iceberg.Type, []byte) (string, bool)) func(statNode) (string, bool) {
		return func(n statNode) (string, bool) {
			raw, ok := bounds[n.id]
			if !ok {
				return "", false
			}
			switch n.kind.(type) {
			case iceberg.Float32Type, iceberg.Float64Type:
				// Iceberg's bounds leave NaN out; Delta's readers take NaN for
				// the largest value, so a bound beside a NaN would lose it.
				if count, known := nans[n.id]; !known || count != 0 {
					return "", false
				}
			}
			return encode(n.kind, raw)
		}
	}
	var b strings.Builder
	b.WriteString(`{"numRecords":`)
	b.WriteString(strconv.FormatInt(f.Count(), 10))
	member := func(name string, value func(statNode) (string, bool)) {
		if obj := statObject(plan, value); obj != "" {
			b.WriteString(`,"` + name + `":` + obj)
		}
	}
	member("minValues", bound(lower, minValue))
	member("maxValues", bound(upper, maxValue))
	member("nullCount", func(n statNode) (string, bool) {
		count, ok := nulls[n.id]
		return strconv.FormatInt(count, 10), ok && count >= 0
	})
	b.WriteByte('}')
	return b.String()
}

// statObject writes the values that there are, nested as the columns are; "" if
// there are none.
func statObject(plan []statNode, value func(statNode) (string, bool)) string {
	var b strings.Builder
	for _, n := range plan {
		var v string
		var ok bool
		if n.children != nil {
			v = statObject(n.children, value)
			ok = v != ""
		} else {
			v, ok = value(n)
		}
		if !ok {
			continue
		}
		if b.Len() == 0 {
			b.WriteByte('{')
		} else {
			b.WriteByte(',')
		}
		b.WriteString(n.key)
		b.WriteByte(':')
		b.WriteString(v)
	}
	if b.Len() == 0 {
		return ""
	}
	b.WriteByte('}')
	return b.String()
}

func minValue(t iceberg.Type, raw []byte) (string, bool) {
	if _, ok := t.(iceberg.StringType); ok {
		if !utf8.Valid(raw) {
			return "", false
		}
		return jsonString(firstChars(string(raw), stringPrefix))
	}
	return exactValue(t, raw)
}

func maxValue(t iceberg.Type, raw []byte) (string, bool) {
	if _, ok := t.(iceberg.StringType); ok {
		if !utf8.Valid(raw) {
			return "", false
		}
		s, ok := stringCeiling(string(raw))
		if !ok {
			return "", false
		}
		return jsonString(s)
	}
	return exactValue(t, raw)
}

// stringCeiling is s, or, where s is too long, a prefix with a character above
// all that may follow it: values up to s that share the prefix go on with at most
// the character that s goes on with.
func stringCeiling(s string) (string, bool) {
	prefix := firstChars(s, stringPrefix)
	if prefix == s {
		return s, true
	}
	switch next, _ := utf8.DecodeRuneInString(s[len(prefix):]); {
	case next < 0x7f:
		return prefix + "\x7f", true
	case next < utf8.MaxRune:
		return prefix + string(utf8.MaxRune), true
	default:
		return "", false
	}
}

func firstChars(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

func jsonString(s string) (string, bool) {
	text, err := marshalPlain(s)
	return text, err == nil
}

// exactValue is a bound in Delta's JSON form, from Iceberg's binary one (Iceberg
// spec, appendix D). Timestamps are cut down to milliseconds in both bounds;
// that is Delta's rule, and its readers allow for it.
func exactValue(t iceberg.Type, raw []byte) (string, bool) {
	switch t := t.(type) {
	case iceberg.Int32Type, iceberg.Int64Type:
		v, ok := integer(raw)
		return strconv.FormatInt(v, 10), ok
	case iceberg.Float32Type, iceberg.Float64Type:
		v, ok := float(raw)
		if !ok || math.IsNaN(v) || math.IsInf(v, 0) {
			return "", false
		}
		text, err := json.Marshal(v)
		return string(text), err == nil
	case iceberg.DecimalType:
		return decimal(raw, t.Scale()), len(raw) > 0 && len(raw) <= 16
	case iceberg.DateType:
		v, ok := integer(raw)
		if !ok {
			return "", false
		}
		return calendar(time.Unix(0, 0).UTC().AddDate(0, 0, int(v)), `"2006-01-02"`)
	case iceberg.TimestampTzType:
		v, ok := integer(raw)
		if !ok || len(raw) != 8 {
			return "", false
		}
		return calendar(time.UnixMilli(floorDiv(v, 1000)).UTC(), `"2006-01-02T15:04:05.000Z"`)
	case iceberg.TimestampType:
		v, ok := integer(raw)
		if !ok || len(raw) != 8 {
			return "", false
		}
		return calendar(time.UnixMilli(floorDiv(v, 1000)).UTC(), `"2006-01-02T15:04:05.000"`)
	default: // boolean, binary, lists, maps
		return "", false
	}
}

// calendar writes a time, unless its year has not the four digits of the form.
func calendar(t time.Time, layout string) (string, bool) {
	if y := t.Year(); y < 1 || y > 9999 {
		return "", false
	}
	return t.Format(layout), true
}

// integer reads a little-endian bound of four or eight bytes: one of a column
// that was widened after the file was written has four.
func integer(raw []byte) (int64, bool) {
	switch len(raw) {
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(raw))), true
	case 8:
		return int64(binary.LittleEndian.Uint64(raw)), true
	default:
		return 0, false
	}
}

// float reads a bound; a float is written as the double that it equals, so that
// readers of either width get it exactly.
func float(raw []byte) (float64, bool) {
	switch len(raw) {
	case 4:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(raw))), true
	case 8:
		return math.Float64frombits(binary.LittleEndian.Uint64(raw)), true
	default:
		return 0, false
	}
}

// decimal is the text of a two's complement big-endian unscaled value.
func decimal(raw []byte, scale int) string {
	v := new(big.Int).SetBytes(raw)
	if len(raw) > 0 && raw[0]&0x80 != 0 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(len(raw)*8)))
	}
	sign := ""
	if v.Sign() < 0 {
		sign = "-"
		v.Neg(v)
	}
	digits := v.String()
	if scale <= 0 {
		return sign + digits
	}
	if pad := scale + 1 - len(digits); pad > 0 {
		digits = strings.Repeat("0", pad) + digits
	}
	return sign + digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
