// Package readback reads a lakehouse table back the way a stranger would: from
// the files on disk, by the two format specifications, and with nothing of the
// code that wrote it.
//
// The Iceberg side is opened by its version hint and scanned by iceberg-go. The
// Delta side is read by a small log reader of its own (JSON entries, checkpoints)
// over the Parquet files. Both give the same plain form of a row, so that they can
// be compared with each other and with what was sent:
//
//   - boolean and string as in JSON; integers as their digits; doubles in the
//     shortest form that reads back exactly, and NaN, Infinity, -Infinity as strings
//   - decimals as strings with all digits of their scale; dates `2006-01-02`;
//     timestamps with six digits of fraction, and `Z` if they are instants
//   - binary as base64, lists as arrays, maps as arrays of [key, value] sorted by key
//   - NULL is left out of rows and structs, and is null in lists
//
// [Check] holds what must be true of every table, whatever is in it.
package readback
