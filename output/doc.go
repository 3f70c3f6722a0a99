// Package output is the Benthos batch output managed_lakehouse. Importing it, in any
// build of Benthos, registers it and nothing else.
//
// It promises:
//   - A row is acknowledged when the Iceberg snapshot that holds it is durable, and
//     not before. A row that is in a table is never reported as failed.
//   - A row that cannot be written is reported alone, with the reason; the other rows
//     of its batch are not held back. A failure that may pass is not reported at all:
//     it is tried again until the outcome is known, or the pipeline is stopped.
//   - Rows of many writes share a commit. When one is made is decided by pure code
//     ([trigger]) from five rules: rows, interval, saturated, idle, drain.
//   - What is accepted and not committed stays within memory_limit, by the estimate
//     of [heldBytes]; only a batch that is larger by itself is let in beyond it.
//   - One table never holds up another.
//
// The way of a row:
//
//  1. [Output.WriteBatch] routes messages to tables and captures their payloads.
//  2. The [group] takes a slot, waits for room in the budget, and converts the rows on
//     the goroutine of the write, under the table's plan.
//  3. Records join the table's open [epoch] and are streamed to storage in records of
//     the batch size that the backpressure profile asks for. Rows that bring
//     something new are only observed; they wait for the seal as messages.
//  4. A decision seals the epoch. The table's committer plans the schema over all
//     rows observed, converts and writes what is left, and commits. Another epoch
//     fills meanwhile.
//  5. The epoch resolves, and each write returns whose rows are all resolved.
//
// After a schema conflict, a lost file, or a cancelled write, the epoch is written
// anew from its messages, which Benthos holds anyway until they are acknowledged.
package output
