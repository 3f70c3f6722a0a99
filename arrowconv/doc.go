// Package arrowconv turns messages into Arrow records of a table's schema:
// every value exact, every bad row alone.
//
// A Plan is the target: what the table has, what is declared, what was inferred
// so far. Convert takes the messages of one write through it:
//
//  1. A message comes as JSON bytes or as Go values, and goes straight into the
//     columns of a sink (typed slices in the layout of Arrow's buffers). JSON is
//     never made into maps, nor maps into JSON.
//  2. A row is all or nothing. One that does not fit is cut off again, from
//     every column, and reported with its path, what was expected and what came.
//     A message of many rows (NDJSON, Arrow IPC, Parquet) is refused whole if one
//     of its rows is, and the error names the row. Arrow payloads pass as the
//     buffers that they are wherever the types agree.
//  3. A row that holds more than the plan (a new field, at any depth) makes the
//     whole chunk wait: its shape goes into an Observation. When the caller has
//     the observations of all rows pending, Extend chooses the types that fit
//     all of them, and Convert runs again under the extended plan.
//
// What is promised:
//
//   - No silent change. Integers, decimals and times are exact or refused; a
//     fraction becomes the nearest double; nothing becomes 0 or NULL instead of
//     a value.
//   - JSON is read strictly (RFC 8259, UTF-8, no lone surrogates); of repeated
//     names the last counts, and nothing is left of the earlier ones.
//   - null, {} and [] have no type: a field that holds nothing else is deferred.
//     Rows before its first typed value read NULL.
//   - Records carry the field metadata (field ids) of the table's schema.
//
// Two decoders read JSON. The scanner is led by the plan and fast, and gives a row
// up at any surprise; the strict decoder then has the word, on top of jsontext,
// and it alone refuses. Both write by the same rules into the same columns, and
// tests hold them equal. Go values take the same rules by a type switch.
//
// Plans are immutable and safe for concurrent use; everything else belongs to
// one goroutine.
package arrowconv
