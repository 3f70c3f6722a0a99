// Package icebergtable reaches Iceberg tables through their catalog: loading,
// creating and the one commit path that everything takes.
//
// # What it promises
//
//   - [Catalog.CommitTable] is the only way to a new table version, for every kind of
//     catalog. Its steps: current metadata; requirements; updates, with the removal
//     of chosen snapshots; metadata written; barrier; swap; version hint.
//   - Barrier: nothing that the new metadata refers to is still on its way when the
//     swap happens, and all of it is durable. A failed upload fails the commit.
//   - A commit that returned nil is durable and part of the table's history.
//   - An error for which [IsConflict] or [IsDefiniteRefusal] holds means that nothing
//     was committed. Any other leaves the outcome unknown: load the table and look.
//   - The conflict loop is the caller's. The library's own replay never runs under
//     [WithCommit], because between two attempts the data files must be compared
//     with the schema about to be committed.
//   - Metadata files are never deleted by count.
//
// # Where a table lies
//
// A table has its folder, [TableKey], in the warehouse. Its Iceberg location is
// "<folder>/iceberg" and holds metadata only; new data files are directed, by the
// property write.data.path, to "<folder>/delta", which is the root of the Delta
// mirror. A folder that already holds something else is not touched.
//
// # Catalogs
//
// filesystem: nothing but files, in Hadoop layout. Version N is the file
// iceberg/metadata/vN.metadata.json, and putting v(N+1) where there is none is the
// commit. version-hint.text names a version at or before the current one; loading
// reads it and probes forward, and lists the folder only when the hint is missing or
// names a file that is gone. Whoever deletes old metadata files must do it by age
// (more than a day) and the oldest first, and leave the newest alone.
//
// sql: tables of a relational database (SQLite), laid out as other Iceberg
// implementations lay theirs out, so that they can open it: tables and namespaces
// are kept by iceberg-go, the pointer to the current metadata is read and swapped
// here, by one statement. version-hint.text is kept too, and may lag; it holds the
// stem of the metadata file's name, so that readers can open the table by path.
//
// # Locations with spaces and letters of any script
//
// iceberg-go builds the names of manifests through net/url, which percent-encodes
// them, while every Iceberg reader takes them literally. Where the warehouse's own
// path needs encoding, the raw spelling is put back in the two places that hold
// such names: manifest lists and table metadata. See package objstore for the rule.
package icebergtable
