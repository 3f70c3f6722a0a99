package arrowconv

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
	"unicode/utf8"
)

// structured gives the shape of a row of Go values that fits the plan so far.
// A map has no order, so its fields come by name.
func (o *observer) structured(v any) (*shape, *refusal) {
	o.arena.reset()
	s := o.arena.new()
	if r := o.goValue(s, v, o.plan.root, 0); r != nil {
		return nil, r
	}
	return s, o.checkColumns(s)
}

func (o *observer) goValue(s *shape, v any, f *field, depth int) *refusal {
	if v == nil || f != nil && len(f.children) == 0 && f.kind != kindStruct {
		return nil
	}
	if depth > o.plan.opts.MaxDepth {
		return o.tooDeep()
	}
	switch v := v.(type) {
	case map[string]any:
		return o.goMap(s, v, f, depth)
	case []any:
		return o.goSlice(s, v, f, depth)
	case bool:
		s.kind = shapeBool
	case string:
		if !utf8.ValidString(v) {
			return &refusal{expected: "string", got: fmt.Sprintf("%+q", clip(v)), reason: ReasonInvalidUTF8, hint: "not UTF-8"}
		}
		o.classifyText(s, bytesOf(v))
	case int:
		o.integer(s, int64(v))
	case int64:
		o.integer(s, v)
	case float64:
		o.double(s, v)
	case float32:
		o.double(s, float64(v))
	case json.Number:
		if !isNumber(bytesOf(string(v))) {
			return &refusal{expected: "a number", got: quote(string(v)), reason: ReasonTypeMismatch}
		}
		return o.number(s, []byte(v))
	case time.Time:
		if v.Nanosecond()%1000 != 0 && o.plan.opts.TimestampPrecision == RejectFiner {
			return &refusal{expected: "timestamptz", got: v.Format(time.RFC3339Nano), reason: ReasonPrecision, hint: "finer than a microsecond; timestamp_precision: truncate would drop the digits"}
		}
		s.kind, s.typ = shapeExact, "timestamptz"
	case []byte:
		s.kind, s.typ = shapeExact, "binary"
	default:
		p, ok := plain(v)
		if !ok {
			return &refusal{expected: "a value with a column type", got: describe(v), reason: ReasonUnsupported}
		}
		return o.goValue(s, p, f, depth)
	}
	return nil
}

func (o *observer) goMap(s *shape, m map[string]any, f *field, depth int) *refusal {
	if f != nil && f.kind == kindMap {
		s.kind = shapeList // as that of its values
		for _, name := range sortedKeys(m) {
			v := o.arena.new()
			if r := o.goValue(v, m[name], f.children[1], depth+1); r != nil {
				return r.key(name)
			}
			if r := o.join(s, v); r != nil {
				return r.key(name)
			}
		}
		return nil
	}
	if f != nil && f.kind != kindStruct {
		return nil
	}
	s.kind = shapeStruct
	for _, name := range sortedKeys(m) {
		if !utf8.ValidString(name) {
			return &refusal{expected: "a name in UTF-8", got: fmt.Sprintf("%+q", clip(name)), reason: ReasonInvalidUTF8}
		}
		seen := o.seen(bytesOf(name))
		known := o.known(f, seen)
		v := o.arena.new()
		if r := o.goValue(v, m[name], known, depth+1); r != nil {
			return r.field(name)
		}
		if r := o.add(s, f, known, seen, v); r != nil {
			return r
		}
	}
	return nil
}

func (o *observer) goSlice(s *shape, list []any, f *field, depth int) *refusal {
	var known *field
	if f != nil {
		if f.kind != kindList {
			return nil
		}
		known = f.children[0]
	}
	s.kind = shapeList
	for i, e := range list {
		v := o.arena.new()
		if r := o.goValue(v, e, known, depth+1); r != nil {
			return r.index(i)
		}
		if r := o.join(s, v); r != nil {
			return r.index(i)
		}
	}
	return nil
}

// integer classifies a Go integer, which is a long under every policy.
func (o *observer) integer(s *shape, v int64) {
	s.kind, s.traits = shapeNumber, numberWhole
	if !int64Exact(v, float64(v)) {
		s.traits |= numberNotDouble
	}
}

// double classifies a Go float, which is a double even where it is whole.
func (o *observer) double(s *shape, v float64) {
	s.kind, s.traits = shapeNumber, numberFraction
	if v != math.Trunc(v) || !int64Exact(int64(v), v) {
		s.traits |= numberNotLong
	}
}
