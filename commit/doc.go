// Package commit turns Arrow records into one Iceberg snapshot and one Delta
// version over the same Parquet files.
//
// It promises:
//   - When [Draft.Commit] returns nil, the snapshot that holds the rows is
//     durable, and holds them once, whatever was retried.
//   - An outcome that is not known is looked up (by the commit id in the
//     snapshot's summary) until it is; it is never reported as a failure.
//   - A definite refusal ([RefusedError]) has committed nothing, and leaves
//     no file behind.
//   - A file is committed only under the schema it was written with: where
//     another writer moved the schema, [ErrSchemaChanged] asks for the rows
//     again.
//   - The Delta table is a projection of the Iceberg table and of nothing else.
//     Where it cannot be written the rows are safe in Iceberg, the result tells
//     the lag, and any later commit, or [Warehouse.Close], catches up.
//
// The order of a commit: data files durable; schema change, append and
// properties in one Iceberg transaction; then the Delta log is brought up to
// the Iceberg history.
package commit
