// Package deltalog keeps a Delta Lake log that mirrors an Iceberg table: the
// same Parquet files, one Delta version for each Iceberg snapshot.
//
// It promises:
//   - A version is a pure function of the log before it and of one Iceberg
//     snapshot: its bytes do not depend on who writes it or when. Any number of
//     projectors may work at once; each version is put if absent, one wins, and
//     the others read the winner and go on from there.
//   - Version k names its snapshot: a txn action whose appId holds the Iceberg
//     table's UUID and whose version is the sequence number, and the snapshot id
//     in commitInfo. What is missing is found by walking the snapshots after
//     that one, so a crash at any point heals by the ordinary path.
//   - Where the walk is not possible (history expired, table rolled back or made
//     anew, a version written by somebody else) one version holds the difference
//     of the live file sets.
//   - A state that Delta cannot express by column name and whole files is not
//     projected: [Status.Held] says why, the mirror stays at its last equal
//     version, and the next state that can be expressed resumes it.
//
// The order of a projection: decide what comes next (plan.go, pure); read the
// manifests of that snapshot, or take the files that the caller has just
// committed; make the actions (projection.go, pure); put the version if it is absent. The tail
// of the log is remembered between calls, so that an append whose files are
// known costs one request and no listing.
//
// Checkpoints (classic, one Parquet file) and log cleanup are apart from the
// projection, in [Mirror.Tidy], so that no acknowledgement waits for them.
//
// The log lies in <root>/_delta_log; data files lie under <root>, and a live
// file outside of it holds the mirror back. The Delta table has no partitions:
// each file's statistics prune as well, and Delta's string partition values
// cannot hold all that Iceberg's can.
package deltalog
