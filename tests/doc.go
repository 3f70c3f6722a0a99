// Package tests runs pipelines as users write them and reads the tables back.
//
// Every folder below cases/ is one test, with nothing in it but configuration and
// data:
//
//	pipeline.yaml     the pipeline; WAREHOUSE, INPUT and REFUSED are set for it
//	input.ndjson      what INPUT names
//	pipeline-2.yaml   a second run over the same warehouse, and so on; one that
//	input-2.ndjson    is absent stays as in the run before
//	expected.json     what must be there at the end (see Expectation in the test)
//
// Each table is read in both formats by code that shares nothing with the writer
// (internal/readback), compared with the expected rows, and held against what is
// true of every table: same columns, files and rows in both, statistics that hold,
// no stray file.
//
// interop/ does the same through the built binary with engines of others.
package tests
