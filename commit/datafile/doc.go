// Package datafile turns Arrow records into Parquet data files in the object
// store, and describes each finished file as an Iceberg data file.
//
// It promises:
//   - A file is visible under its name only when it is whole and durable; an
//     aborted one leaves nothing.
//   - Every leaf column carries its Iceberg field id and its own name,
//     unsanitised: Iceberg resolves columns by id, Delta by name, and both must
//     find the same one.
//   - Statistics never exclude a row: a column of floats that holds a NaN or an
//     infinity has no bounds, and the number of NaNs is always recorded.
//   - Memory is bounded by the open row groups, one for each lane of a [Set].
//
// The steps: [Set.Write] conforms a record to the set's schema, takes a free
// lane (one Parquet file that is being written), and encodes; [Set.Close]
// finishes all files, side by side.
package datafile
