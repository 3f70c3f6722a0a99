package arrowconv

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
)

// structured writes rows that came as Go values: maps, slices and scalars as
// mappings make them. It goes from the value to the column by a type switch,
// and by the rules of values.go where a number or a text has to be judged.
//
// Not safe for concurrent use.
type structured struct {
	unknown bool // as in strict
	weight  int  // bytes of text stored, about
	scratch []byte
}

// row appends one row to the columns of root, all of it or nothing.
func (d *structured) row(root *column, v any) *refusal {
	d.unknown = false
	m, ok := v.(map[string]any)
	if !ok {
		return &refusal{expected: "an object", got: clip(describe(v)), reason: ReasonNotObject}
	}
	rows := root.n
	if r := d.members(root, m); r != nil {
		root.truncate(rows)
		return r
	}
	return nil
}

// members asks the map for each of the plan's fields; if the map has more, the
// rest are looked at one by one.
func (d *structured) members(c *column, m map[string]any) *refusal {
	found := 0
	for _, child := range c.children {
		v, ok := m[child.Name]
		if !ok {
			continue
		}
		found++
		if r := d.value(child, v); r != nil {
			return r.field(child.Name)
		}
	}
	entry := c.n
	if found != len(m) {
		if r := d.others(c, m); r != nil {
			return r
		}
	}
	if found != len(c.children) {
		return c.endStruct(entry)
	}
	c.n++
	return nil
}

// others takes the map's fields whose names are not the plan's as they stand.
func (d *structured) others(c *column, m map[string]any) *refusal {
	entry := c.n
	for _, name := range sortedKeys(m) {
		if _, ok := c.names.exact[name]; ok {
			continue
		}
		v := m[name]
		at, ok := c.find(name)
		if !ok {
			if v != nil && !c.opts.Evolve {
				return c.unknownName(name)
			}
			d.unknown = d.unknown || v != nil
			continue
		}
		child := c.children[at]
		if child.n > entry {
			return collision(name, child.Name)
		}
		if r := d.value(child, v); r != nil {
			return r.field(child.Name)
		}
	}
	return nil
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// value appends one Go value to a column.
func (d *structured) value(c *column, v any) *refusal {
	switch v := v.(type) {
	case nil:
		return c.putNothing()
	case string:
		if c.kind != kindString {
			return c.putString(bytesOf(v))
		}
		if !utf8.ValidString(v) {
			return notUTF8(c.field, v)
		}
		d.weight += len(v)
		c.putText(v)
		return nil
	case bool:
		return c.putBoolean(v)
	case float64:
		return d.double(c, v, 64)
	case int64:
		return d.integer(c, v)
	case int:
		return d.integer(c, int64(v))
	case json.Number:
		if !isNumber(bytesOf(string(v))) {
			return c.mismatch(quote(string(v)), "not a number")
		}
		return c.putNumber(bytesOf(string(v)))
	case map[string]any:
		switch c.kind {
		case kindStruct:
			return d.members(c, v)
		case kindMap:
			return d.entries(c, v)
		}
		return d.text(c, v)
	case []any:
		if c.kind == kindList {
			return d.elements(c, v)
		}
		return d.text(c, v)
	case time.Time:
		return d.time(c, v)
	case []byte:
		d.weight += len(v)
		if c.kind == kindBinary {
			c.putBytes(v)
			return nil
		}
		return c.mismatch(clip(describe(v)), "bytes keep their type; make them a string in the mapping")
	case float32:
		return d.double(c, float64(v), 32)
	}
	if p, ok := plain(v); ok {
		return d.value(c, p)
	}
	return &refusal{expected: c.typeName(), got: fmt.Sprintf("a Go value of type %T", v), reason: ReasonUnsupported}
}

// plain turns the less usual Go types into those that value knows.
func plain(v any) (any, bool) {
	switch v := v.(type) {
	case int32:
		return int64(v), true
	case int16:
		return int64(v), true
	case int8:
		return int64(v), true
	case uint8:
		return int64(v), true
	case uint16:
		return int64(v), true
	case uint32:
		return int64(v), true
	case uint:
		return plain(uint64(v))
	case uint64:
		if v <= math.MaxInt64 {
			return int64(v), true
		}
		return json.Number(strconv.FormatUint(v, 10)), true
	case []string:
		return toAny(v), true
	case []int64:
		return toAny(v), true
	case []int:
		return toAny(v), true
	case []float64:
		return toAny(v), true
	case []bool:
		return toAny(v), true
	case []map[string]any:
		return toAny(v), true
	case map[string]string:
		return toAnyMap(v), true
	case map[string]int64:
		return toAnyMap(v), true
	case map[string]float64:
		return toAnyMap(v), true
	}
	return nil, false
}

func toAny[T any](s []T) []any {
	out := make([]any, len(s))
	for i, v := range s {
		out[i] = v
	}
	return out
}

func toAnyMap[T any](m map[string]T) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// integer appends a Go integer.
func (d *structured) integer(c *column, v int64) *refusal {
	switch c.kind {
	case kindLong:
		c.putInt64(v)
		return nil
	case kindDouble:
		if f := float64(v); int64Exact(v, f) {
			c.putFloat64(f)
			return nil
		}
	case kindInt:
		if int64(int32(v)) == v {
			c.putInt32(int32(v))
			return nil
		}
	}
	d.scratch = strconv.AppendInt(d.scratch[:0], v, 10)
	return c.putNumber(d.scratch)
}

// double appends a Go float. NaN and infinities have a place in float and
// double columns only. Elsewhere the float stands for the shortest decimal that
// reads back as it, as it would in JSON.
func (d *structured) double(c *column, v float64, size int) *refusal {
	switch c.kind {
	case kindDouble:
		c.putFloat64(v)
		return nil
	case kindFloat:
		if f := float32(v); size == 32 || !math.IsInf(float64(f), 0) && (f != 0 || v == 0) || math.IsInf(v, 0) {
			c.putFloat32(f)
			return nil
		}
		return &refusal{expected: c.typeName(), got: strconv.FormatFloat(v, 'g', -1, 64), reason: ReasonOutOfRange}
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return c.mismatch(strconv.FormatFloat(v, 'g', -1, 64), "NaN and infinities fit float and double columns only")
	}
	d.scratch = appendFloat(d.scratch[:0], v, size)
	return c.putNumber(d.scratch)
}

// appendFloat writes a finite float in JSON's grammar, always with a fraction
// or an exponent.
func appendFloat(dst []byte, v float64, size int) []byte {
	if math.Abs(v) < 1e15 && v == math.Trunc(v) {
		return strconv.AppendFloat(dst, v, 'f', 1, size)
	}
	return strconv.AppendFloat(dst, v, 'g', -1, size)
}

func (d *structured) time(c *column, v time.Time) *refusal {
	switch {
	case c.kind == kindTimestampTZ:
		if v.Nanosecond()%1000 != 0 && !c.truncates() {
			return c.refuseTime(v.Format(time.RFC3339Nano), timeFiner)
		}
		if s := v.Unix(); s < minMicros/1_000_000 || s > maxMicros/1_000_000 {
			return c.refuseTime(v.Format(time.RFC3339Nano), timeRange)
		}
		c.putInt64(v.UnixMicro())
		return nil
	case c.kind == kindTimestamp:
		return c.refuseTime(v.Format(time.RFC3339Nano), timeHasZone)
	case c.storesText():
		c.putText(v.Format(time.RFC3339Nano))
		return nil
	}
	return c.mismatch(v.Format(time.RFC3339Nano), c.unlessDeclared("a time keeps its type: declared timestamptz, the column would take it"))
}

func (d *structured) elements(c *column, v []any) *refusal {
	elem := c.children[0]
	for i, e := range v {
		if r := c.checkRoom(); r != nil {
			return r
		}
		if r := d.value(elem, e); r != nil {
			return r.index(i)
		}
	}
	c.endEntry(elem.n)
	return nil
}

func (d *structured) entries(c *column, m map[string]any) *refusal {
	key, value := c.children[0], c.children[1]
	for _, name := range sortedKeys(m) {
		if r := c.checkRoom(); r != nil {
			return r
		}
		if !utf8.ValidString(name) {
			return (&refusal{expected: "a name in UTF-8", got: fmt.Sprintf("%+q", clip(name)), reason: ReasonInvalidUTF8}).key(name)
		}
		d.weight += len(name)
		if r := key.putKey(bytesOf(name)); r != nil {
			return r.key(name)
		}
		if r := d.value(value, m[name]); r != nil {
			return r.key(name)
		}
	}
	c.endEntry(key.n)
	return nil
}

// text stores an object or array as its JSON text, where the column may.
func (d *structured) text(c *column, v any) *refusal {
	if !c.storesText() {
		return c.mismatch(clip(describe(v)), c.textHint())
	}
	text, ok := appendJSON(nil, v)
	if !ok {
		return c.mismatch(clip(describe(v)), "it has no JSON text")
	}
	d.weight += len(text)
	c.putBytes(text)
	return nil
}

// appendJSON writes a value as compact JSON, names in order; ok is false for
// what JSON has no text for.
func appendJSON(dst []byte, v any) (_ []byte, ok bool) {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), true
	case bool:
		return strconv.AppendBool(dst, v), true
	case string:
		dst, err := jsontext.AppendQuote(dst, v)
		return dst, err == nil
	case json.Number:
		return append(dst, v...), isNumber([]byte(v))
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return dst, false
		}
		return appendFloat(dst, v, 64), true
	case float32:
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return dst, false
		}
		return appendFloat(dst, float64(v), 32), true
	case int:
		return strconv.AppendInt(dst, int64(v), 10), true
	case int64:
		return strconv.AppendInt(dst, v, 10), true
	case time.Time:
		return append(v.AppendFormat(append(dst, '"'), time.RFC3339Nano), '"'), true
	case []byte:
		return append(base64.StdEncoding.AppendEncode(append(dst, '"'), v), '"'), true
	case []any:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, ok = appendJSON(dst, e); !ok {
				return dst, false
			}
		}
		return append(dst, ']'), true
	case map[string]any:
		dst = append(dst, '{')
		for i, k := range sortedKeys(v) {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, ok = appendJSON(dst, k); !ok {
				return dst, false
			}
			if dst, ok = appendJSON(append(dst, ':'), v[k]); !ok {
				return dst, false
			}
		}
		return append(dst, '}'), true
	}
	if p, ok := plain(v); ok {
		return appendJSON(dst, p)
	}
	return dst, false
}

// describe shows a value in an error.
func describe(v any) string {
	if text, ok := appendJSON(nil, v); ok {
		return string(text)
	}
	return fmt.Sprintf("a Go value of type %T", v)
}

// bytesOf is a string's bytes without a copy; they must not be written to.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
