// Package bench holds the benchmarks that compare with another engine. They are
// run by run.sh: nothing here is a test, and no time is ever asserted.
package bench
