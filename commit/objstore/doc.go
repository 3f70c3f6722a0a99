// Package objstore is the one storage abstraction under both table formats: a
// warehouse as a flat set of named, immutable-by-convention objects.
//
// # What it promises
//
//   - An object is whole or absent. Nothing of a write is visible before
//     [Store.Put], [Store.PutIfAbsent] or [Writer.Close] has put all of it in place.
//   - A write that returned nil is durable: on local disk the file is synced before
//     it is given its name, and the folder (with every folder made for it) after.
//   - [Store.PutIfAbsent] has exactly one winner, among goroutines, processes and
//     machines. The others get [ErrExists]. A store that cannot promise that is
//     refused by [Open].
//   - Any other error of a write leaves its outcome unknown: the object may be there.
//   - [Store.List] yields keys in byte order, each once, and never a temporary file.
//   - A key cannot lead out of the warehouse.
//
// All methods of [Store] are safe for concurrent use. A [Writer] and a [Reader]
// belong to one goroutine at a time, [Reader.ReadAt] excepted.
//
// # Keys and locations
//
// A key names an object inside the warehouse: segments joined by "/", for example
// "web/events/delta/part-1.parquet". Keys to be written use only
// [A-Za-z0-9._=/-], so that the same string serves as raw path (Iceberg) and as URI
// reference (Delta) without any escaping. Keys to be read or deleted may hold what
// other engines chose, as long as they stay inside.
//
// A location is what table metadata holds: the warehouse's root, "/", the key. For
// a folder on local disk the root is "file://" and the absolute path with its
// characters as they are: "file:///data/lake house/web/...". Iceberg readers
// (pyiceberg, DuckDB, Spark) take everything after the scheme literally, so a
// percent-encoded root would name a folder that does not exist. Spaces and letters
// of any script work; the few characters that some reader takes for syntax ("%",
// "?", "#", "*", "[", "]", the double quote, "\", control characters) are refused in the root, because
// no spelling of them is read alike by all.
//
// # Local disk
//
// Put-if-absent is link(2) of a synced temporary file: the one operation that
// local file systems make atomic and exclusive. Replacing is rename(2). Temporary
// files lie in the folder ".staging" at the warehouse's root. That is the same
// file system as the tables (link and rename need that), yet outside of every
// table's folder: the cleanups of both formats list a table's own folder only, so
// none can take a file in flight for an orphan, no engine can take one for data,
// and List skips it. What a killed writer leaves there is never given a name;
// [Open] sweeps out what nobody has written to for seven days. Table and namespace
// names cannot begin with ".", so nothing else can claim the folder.
//
// # Object stores
//
// Everything but local disk is a gocloud.dev bucket: another store is another
// bucket URL. A conditional put is one request whatever its size, an object under
// 8 MiB is one request too.
package objstore
