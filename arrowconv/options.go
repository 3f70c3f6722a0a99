package arrowconv

// Options say how messages become rows. The zero value is the strictest
// reading with no evolution; MaxColumns and MaxDepth of zero take the defaults.
type Options struct {
	// Declared are columns whose type the user fixed. They may describe part
	// of the rows only; the rest is inferred.
	Declared []Column
	// Evolve lets fields that the plan does not know become new optional
	// columns. Off, a row with such a field (and a value in it) is refused.
	Evolve bool
	// InferTimestamps makes a new column whose values are all RFC 3339
	// date-times a timestamptz instead of a string.
	InferTimestamps bool
	// OnTypeConflict says what happens to a value that its column cannot take.
	OnTypeConflict ConflictPolicy
	// MaxColumns bounds the leaf columns of the table, MaxDepth the nesting of
	// an inferred column (a top-level scalar has depth 1).
	MaxColumns, MaxDepth int
	// Numbers says what a JSON integer infers to.
	Numbers NumberPolicy
	// TimestampPrecision says what happens to times finer than a microsecond.
	TimestampPrecision PrecisionPolicy
	// ColumnNames says what happens to names that Delta cannot hold as they are.
	ColumnNames NamePolicy
	// Widen lets a declared type widen the table's column (int to long, float
	// to double, more decimal digits). Set it only if every format kept can.
	Widen bool
	// Format says what the payload of one message holds.
	Format MessageFormat
}

// Defaults of the limits, where Options leaves them zero.
const (
	DefaultMaxColumns = 1000
	DefaultMaxDepth   = 32
)

// Column declares one column, or one field of a struct.
type Column struct {
	Name string
	// Type is the type in Iceberg's words: boolean, int, long, float, double,
	// decimal(p,s), date, timestamp, timestamptz, string, binary, struct, list,
	// map; nested types may be spelled out (list<long>) or described by Fields,
	// Element, Key and Value.
	Type string
	// Required refuses rows whose value is missing or NULL.
	Required bool
	// Unit gives numbers in a time column their meaning: s, ms, us, ns; d for
	// a date. Without it a number is refused there.
	Unit string
	// Doc is stored with the column.
	Doc string

	Fields  []Column // of a struct
	Element *Column  // of a list
	Key     *Column  // of a map; string when nil
	Value   *Column  // of a map
}

// ConflictPolicy says what happens to a value whose type is not its column's.
type ConflictPolicy uint8

const (
	// RejectConflicts refuses the row.
	RejectConflicts ConflictPolicy = iota
	// ConflictsAsText stores the value's JSON text where the column is a
	// string, and makes a new column a string when no type fits all its values.
	ConflictsAsText
)

// NumberPolicy says what a JSON integer infers to.
type NumberPolicy uint8

const (
	// ExactNumbers infers long from integers, double from fractions.
	ExactNumbers NumberPolicy = iota
	// DoubleNumbers infers double from every JSON number.
	DoubleNumbers
)

// PrecisionPolicy says what happens to times finer than a microsecond.
type PrecisionPolicy uint8

const (
	// RejectFiner refuses the row.
	RejectFiner PrecisionPolicy = iota
	// TruncateFiner drops the digits past the microsecond.
	TruncateFiner
)

// NamePolicy says what happens to names that Delta cannot hold as they are:
// empty ones and those with control characters or any of " ,;{}()\n\t=`".
type NamePolicy uint8

const (
	// NormalizeNames puts an underscore for each such character.
	NormalizeNames NamePolicy = iota
	// RejectNames refuses the row.
	RejectNames
	// MapNames keeps them, for tables with Delta column mapping; empty names
	// and control characters are refused all the same.
	MapNames
)

// MessageFormat says what the payload of one message holds.
type MessageFormat uint8

const (
	// JSON is one object a message.
	JSON MessageFormat = iota
	// NDJSON is any number of objects, one a line.
	NDJSON
	// ArrowIPC is an Arrow IPC stream or file.
	ArrowIPC
	// Parquet is a Parquet file.
	Parquet
)

// ArrowTuning is what the backpressure profile turns.
type ArrowTuning struct {
	BatchSize int // most rows of one record
}

// DefaultBatchSize is the record size where ArrowTuning leaves it zero.
const DefaultBatchSize = 10_000
