// Package backpressure turns the time that commits take into the size of the
// records that are written.
//
// It promises:
//   - The level and the batch size are a pure function of the average commit
//     latency ([For]), exact at both boundaries: below 2 s is normal, 2 s to 5 s
//     (both included) is moderate, above 5 s is heavy. Recovery uses the same
//     table; there is no hysteresis.
//   - The average ([Tracker]) is an exponentially weighted mean of recent commits:
//     a new commit weighs [Weight]. While warming up, the n-th commit weighs 1/n,
//     so that the first commits are averaged evenly and the first one does not
//     start from zero.
//
// The package knows nothing of tables or pipelines; whoever commits reports each
// latency, and whoever appends asks for the profile at each append.
package backpressure
