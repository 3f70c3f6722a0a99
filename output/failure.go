package output

import (
	"errors"
	"fmt"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// failure is one message that is not in its table.
type failure struct {
	message int    // index in the batch of its write
	reason  string // label of the metric of refused rows; empty where the row was not refused
	err     error
}

// rowFailure is the error of one message of a batch. It unwraps to the batch's
// own error: with output batching on, Benthos acknowledges whole input batches
// from a merged one, hands each of them the first message error it finds, and
// looks in that error for the batch error that tells which messages failed. If it
// finds none, it takes the whole input batch to have failed, and rows that are
// committed are sent to the dead letters or written again.
type rowFailure struct {
	err   error
	batch *service.BatchError
}

func (f *rowFailure) Error() string { return f.err.Error() }

func (f *rowFailure) Unwrap() []error { return []error{f.err, f.batch} }

// batchError is the result of a write: nil if nothing failed; otherwise an error
// that marks the failed messages and no others.
func batchError(batch service.MessageBatch, failures []failure) error {
	if len(failures) == 0 {
		return nil
	}
	// A message that belongs to no table twice over still has one cause: the first.
	first := make(map[int]error, len(failures))
	for _, f := range failures {
		if _, ok := first[f.message]; !ok {
			first[f.message] = f.err
		}
	}
	headline := failures[0].err
	if len(first) > 1 || len(batch) > 1 {
		headline = fmt.Errorf("%d of %d messages were not written, the first: %w", len(first), len(batch), failures[0].err)
	}
	out := service.NewBatchError(batch, headline)
	for i, err := range first {
		_ = out.Failed(i, &rowFailure{err: err, batch: out})
	}
	return out
}

// errStopped is given to rows that were let go because the pipeline stopped
// before their commit began: they are not in the table, and not acknowledged.
var errStopped = errors.New("the pipeline was stopped before these rows were committed; they are not in the table")
