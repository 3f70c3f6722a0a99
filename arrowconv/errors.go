package arrowconv

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ReasonCode is the kind of a refusal, for metrics and for routing.
type ReasonCode uint8

const (
	ReasonNone           ReasonCode = iota
	ReasonEmpty                     // the payload is empty
	ReasonNotJSON                   // the payload does not parse
	ReasonInvalidUTF8               // the payload is not UTF-8
	ReasonNotObject                 // the payload is JSON, but no object
	ReasonTooLarge                  // a payload or value beyond what one column chunk can hold
	ReasonTypeMismatch              // a value of another type than the column's
	ReasonOutOfRange                // a number or time beyond the column's range
	ReasonInexact                   // a number that the column would round
	ReasonPrecision                 // a time finer than a microsecond
	ReasonNull                      // NULL in a required column
	ReasonUnknownField              // a field without a column, and evolution is off
	ReasonReservedName              // a name that a format keeps for itself
	ReasonNameClash                 // names that differ only in case, or collide once normalised
	ReasonBadName                   // a name that cannot be stored
	ReasonTooManyColumns            // max_columns
	ReasonTooDeep                   // max_depth
	ReasonNoColumns                 // nothing in the row has a type yet, and no table exists
	ReasonUnsupported               // a type that has no place in the tables
	ReasonUnreadable                // an Arrow or Parquet payload that cannot be read
)

var reasonNames = [...]string{
	"none", "empty", "not_json", "invalid_utf8", "not_object", "too_large", "type_mismatch", "out_of_range", "inexact",
	"precision", "null", "unknown_field", "reserved_name", "name_clash", "bad_name", "too_many_columns", "too_deep",
	"no_columns", "unsupported_type", "unreadable",
}

// String is the reason as a metric label.
func (r ReasonCode) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "reason_" + strconv.Itoa(int(r))
}

// RowError says why one row was refused. The row left no trace in any column.
type RowError struct {
	// Message is the index of the message in its Source, Row the row within a
	// message of many rows, from 0; -1 where a message is one row.
	Message, Row int
	// Path leads to the value, as in order.items[3].price; empty for the row.
	Path string
	// Expected is the column's type or a rule, Got the value or what was found.
	Expected, Got string
	Reason        ReasonCode
	// Hint says what would make the row fit; may be empty.
	Hint string
}

// Error is the refusal as text:
//
//	order.items[3].price: expected decimal(10,2), got "abc"
func (e RowError) Error() string {
	var b strings.Builder
	if e.Row >= 0 {
		fmt.Fprintf(&b, "row %d: ", e.Row)
	}
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	switch {
	case e.Expected != "" && e.Got != "":
		b.WriteString("expected " + e.Expected + ", got " + e.Got)
	case e.Expected != "":
		b.WriteString("expected " + e.Expected)
	default:
		b.WriteString(e.Got)
	}
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	return b.String()
}

// refusal is a RowError that gains its path while the decoder unwinds.
type refusal struct {
	path          []step // innermost first
	expected, got string
	reason        ReasonCode
	hint          string
}

// step is one element of a path: a field, a list index or a map key.
type step struct {
	name  string
	index int // of a list element, where name is empty and key is not set
	kind  stepKind
}

type stepKind uint8

const (
	stepField stepKind = iota
	stepIndex
	stepKey
)

func (r *refusal) Error() string { return r.rowError(0, -1).Error() }

func (r *refusal) field(name string) *refusal {
	r.path = append(r.path, step{name: name, kind: stepField})
	return r
}

func (r *refusal) index(i int) *refusal {
	r.path = append(r.path, step{index: i, kind: stepIndex})
	return r
}

func (r *refusal) key(k string) *refusal {
	r.path = append(r.path, step{name: k, kind: stepKey})
	return r
}

func (r *refusal) rowError(message, row int) RowError {
	return RowError{Message: message, Row: row, Path: r.pathString(), Expected: r.expected, Got: r.got, Reason: r.reason, Hint: r.hint}
}

func (r *refusal) pathString() string {
	var b strings.Builder
	for i := len(r.path) - 1; i >= 0; i-- {
		s := r.path[i]
		switch s.kind {
		case stepIndex:
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		case stepKey:
			b.WriteString("[" + strconv.Quote(clip(s.name)) + "]")
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			if s.name == "" || strings.ContainsFunc(s.name, func(r rune) bool { return r == '.' || r == '[' || r == '"' || awkward(r) }) {
				b.WriteString(strconv.Quote(clip(s.name)))
			} else {
				b.WriteString(clip(s.name))
			}
		}
	}
	return b.String()
}

// clipLength bounds how much of a value an error repeats, in bytes.
const clipLength = 80

// clip cuts a value short for an error message, on a character boundary.
func clip[T ~string | ~[]byte](v T) string {
	if len(v) <= clipLength {
		return string(v)
	}
	n := clipLength
	for n > 0 && !utf8.RuneStart(v[n]) {
		n--
	}
	return string(v[:n]) + "…"
}
