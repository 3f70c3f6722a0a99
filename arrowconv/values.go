package arrowconv

import (
	"encoding/base64"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// This file decides whether one scalar fits one column, for every entry alike:
// a JSON number, a JSON string, a boolean. What fits is appended; what does not
// comes back as a refusal and leaves the column as it was.

// putNumber appends a number given in JSON's grammar.
func (c *column) putNumber(s []byte) *refusal {
	switch c.kind {
	case kindLong:
		if v, end, ok := quickInt(s, 0); ok && end == len(s) {
			c.putInt64(v)
			return nil
		}
		v, exact, ok := parseDecimal(s).shifted(0)
		if r := c.checkInteger(s, exact, ok); r != nil {
			return r
		}
		c.putInt64(v)
	case kindInt:
		v, exact, ok := parseDecimal(s).shifted(0)
		if r := c.checkInteger(s, exact, ok && int64(int32(v)) == v); r != nil {
			return r
		}
		c.putInt32(int32(v))
	case kindDouble:
		if v, end, ok := quickDouble(s, 0); ok && end == len(s) {
			c.putFloat64(v)
			return nil
		}
		v, problem := parseDouble(s, 64)
		if problem != numberOK {
			return c.refuseDouble(s, problem)
		}
		c.putFloat64(v)
	case kindFloat:
		v, problem := parseDouble(s, 32)
		if problem != numberOK {
			return c.refuseDouble(s, problem)
		}
		c.putFloat32(float32(v))
	case kindDecimal:
		v, r := c.toDecimal(s, s)
		if r != nil {
			return r
		}
		c.putDecimal(v)
	case kindTimestamp, kindTimestampTZ, kindDate:
		return c.putEpoch(s)
	case kindString:
		if !c.storesText() {
			return c.mismatch(clip(s), c.textHint())
		}
		c.putBytes(s)
	default:
		return c.mismatch(clip(s), c.textHint())
	}
	return nil
}

// checkInteger refuses a number that an integer column would change.
func (c *column) checkInteger(s []byte, exact, ok bool) *refusal {
	switch {
	case ok && exact:
		return nil
	case !exact:
		return &refusal{expected: c.typeName(), got: clip(s), reason: ReasonInexact, hint: c.unlessDeclared("declared double, the column would take it")}
	}
	hint := ""
	if c.kind == kindInt {
		hint = c.unlessDeclared("declared long, the column would take it")
	} else if d := parseDecimal(s); d.exp >= 0 && d.digits+d.exp <= 38 {
		hint = c.unlessDeclared("declared decimal(38,0), the column would take it")
	}
	return &refusal{expected: c.typeName(), got: clip(s), reason: ReasonOutOfRange, hint: hint}
}

func (c *column) refuseDouble(s []byte, problem numberProblem) *refusal {
	r := &refusal{expected: c.typeName(), got: clip(s), reason: ReasonOutOfRange}
	if problem == numberInexact {
		r.reason = ReasonInexact
		r.hint = c.typeName() + " cannot hold this integer exactly"
		if _, _, ok := parseDecimal(s).shifted(0); ok {
			r.hint += "; declared long, the column would take it"
		} else {
			r.hint += "; declared decimal(38,0), the column would take it"
		}
	}
	return r
}

// toDecimal reads number as a value of the decimal column; shown is how an
// error shows it.
func (c *column) toDecimal(number, shown []byte) (decimal128.Num, *refusal) {
	v, exact, ok := parseDecimal(number).decimal128(c.precision, c.scale)
	switch {
	case !exact:
		return v, &refusal{expected: c.typeName(), got: clip(shown), reason: ReasonInexact, hint: "more than " + strconv.Itoa(int(c.scale)) + " digits after the point"}
	case !ok:
		return v, &refusal{expected: c.typeName(), got: clip(shown), reason: ReasonOutOfRange, hint: "more than " + strconv.Itoa(int(c.precision-c.scale)) + " digits before the point"}
	}
	return v, nil
}

// putEpoch appends a number of the declared unit to a time column.
func (c *column) putEpoch(s []byte) *refusal {
	if c.unit == unitNone {
		r := c.mismatch(clip(s), "a number needs a declared `unit` here: s, ms, us or ns")
		if c.kind == kindDate {
			r.hint = "a number needs a declared `unit` here: d"
		}
		return r
	}
	n := parseDecimal(s)
	if c.kind == kindDate {
		v, exact, ok := n.shifted(0)
		if !exact || !ok || v < minDay || v > maxDay {
			return &refusal{expected: "date, as days since 1970-01-01", got: clip(s), reason: ReasonOutOfRange}
		}
		c.putInt32(int32(v))
		return nil
	}
	v, problem := epochMicros(n, c.unit, c.truncates())
	if problem != timeOK {
		return c.refuseTime(clip(s), problem)
	}
	c.putInt64(v)
	return nil
}

// putBool appends a boolean.
func (c *column) putBoolean(v bool) *refusal {
	switch {
	case c.kind == kindBool:
		c.putBool(v)
	case c.storesText():
		c.putText(strconv.FormatBool(v))
	default:
		return c.mismatch(strconv.FormatBool(v), c.textHint())
	}
	return nil
}

// putString appends a string, given without quotes or escapes.
func (c *column) putString(s []byte) *refusal {
	switch c.kind {
	case kindString:
		c.putBytes(s)
		return nil
	case kindTimestampTZ, kindTimestamp:
		v, problem := parseTimestamp(s, c.kind == kindTimestampTZ, c.truncates())
		if problem != timeOK {
			return c.refuseTime(quote(s), problem)
		}
		c.putInt64(v)
		return nil
	case kindDate:
		v, problem := parseDate(s)
		if problem != timeOK {
			return c.refuseTime(quote(s), problem)
		}
		c.putInt32(v)
		return nil
	case kindBinary:
		return c.putBase64(s)
	case kindDecimal, kindLong, kindInt, kindDouble, kindFloat:
		if c.parsesStrings() && isNumber(s) {
			if r := c.putNumber(s); r != nil {
				r.got = quote(s)
				return r
			}
			return nil
		}
	}
	return c.mismatch(quote(s), c.unlessDeclared("declared string, the column would take it"))
}

// putBase64 appends the bytes that a base64 text stands for (RFC 4648 section
// 4, padded, without line breaks and stray bits).
func (c *column) putBase64(s []byte) *refusal {
	dst := c.room(base64.StdEncoding.DecodedLen(len(s)))
	n, err := base64.StdEncoding.Strict().Decode(dst, s)
	if err != nil || base64.StdEncoding.EncodedLen(n) != len(s) {
		return c.mismatch(quote(s), "binary is written as base64, with padding")
	}
	c.endEntry(c.used() + n)
	return nil
}

// putNothing appends NULL if it is allowed.
func (c *column) putNothing() *refusal {
	if c.required() {
		return &refusal{expected: c.typeName() + ", required", got: "null", reason: ReasonNull}
	}
	c.putNull()
	return nil
}

func (c *column) typeName() string { return typeName(c.Type) }

// parsesStrings tells whether a string may stand for a number: in a decimal,
// whose values JSON numbers lose in many producers, and where it was declared.
func (c *column) parsesStrings() bool { return c.kind == kindDecimal || c.declared }

func (c *column) truncates() bool { return c.opts.TimestampPrecision == TruncateFiner }

// storesText tells whether the column takes the JSON text of any value.
func (c *column) storesText() bool {
	return c.kind == kindString && c.opts.OnTypeConflict == ConflictsAsText
}

// mismatch refuses a value of another type; got is its text, cut short.
func (c *column) mismatch(got, hint string) *refusal {
	if c.kind == kindUnsupported {
		return &refusal{expected: "null", got: got, reason: ReasonUnsupported, hint: "this output cannot write a column of type " + c.typeName()}
	}
	return &refusal{expected: c.typeName(), got: got, reason: ReasonTypeMismatch, hint: hint}
}

// unlessDeclared is the hint to declare another type, pointless where the
// user chose this one.
func (c *column) unlessDeclared(hint string) string {
	if c.declared {
		return ""
	}
	return hint
}

// textHint names the way to keep values of any type in one column.
func (c *column) textHint() string {
	if c.kind == kindString {
		return "on_type_conflict: string would store its JSON text"
	}
	return c.unlessDeclared("declared string, with on_type_conflict: string, the column would take it")
}

func (c *column) refuseTime(got string, problem timeProblem) *refusal {
	r := &refusal{expected: c.typeName(), got: got, reason: ReasonTypeMismatch}
	switch problem {
	case timeNoZone:
		r.hint = "it has no offset from UTC; declared timestamp, the column would take it"
	case timeHasZone:
		r.hint = "it has an offset from UTC; declared timestamptz, the column would take it"
	case timeFiner:
		r.reason = ReasonPrecision
		r.hint = "finer than a microsecond; timestamp_precision: truncate would drop the digits"
	case timeRange:
		r.reason = ReasonOutOfRange
		r.hint = "outside the years 0000 to 9999"
	default:
		switch c.kind {
		case kindDate:
			r.hint = "a date is written yyyy-mm-dd"
		case kindTimestampTZ:
			r.hint = "a timestamptz is written as RFC 3339 has it, 2006-01-02T15:04:05.999999Z"
		default:
			r.hint = "a timestamp is written 2006-01-02T15:04:05.999999"
		}
	}
	return r
}

// quote shows a string in an error, cut short.
func quote[T ~string | ~[]byte](s T) string { return strconv.Quote(clip(s)) }
