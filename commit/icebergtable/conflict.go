package icebergtable

import (
	"context"
	"errors"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore"
)

var (
	// ErrConflict says that another commit came first and nothing was committed:
	// load the table, build the transaction anew, commit again.
	ErrConflict = errors.New("another commit came first")
	// ErrRefused says that the commit can never succeed as it is; nothing was committed.
	ErrRefused = errors.New("refused")
	// ErrOccupied says that a table's folder holds something that is no table of
	// this catalog; nothing was written.
	ErrOccupied = errors.New("the table's folder is in use")
)

// IsConflict reports that another commit came first: nothing was committed, and the
// same files may be committed again on the table's new state. Catalogs say so by
// type or, where a requirement fails before their own swap, only by words.
func IsConflict(err error) bool {
	if err == nil || errors.Is(err, catalog.ErrTableAlreadyExists) {
		return false
	}
	if errors.Is(err, ErrConflict) || errors.Is(err, table.ErrCommitFailed) || errors.Is(err, table.ErrCommitDiverged) {
		return true
	}
	// "requirement failed: branch "main" has changed: expected id 1, found 2"
	for err := range chain(err) {
		if msg := err.Error(); len(msg) > 20 && strings.EqualFold(msg[:20], "requirement failed: ") {
			return !strings.Contains(msg, "table already exists")
		}
	}
	return false
}

// IsDefiniteRefusal reports that nothing was committed and that trying again as it
// is would be in vain. A conflict is none, nor is anything that may pass.
func IsDefiniteRefusal(err error) bool {
	if err == nil || IsConflict(err) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	for _, refusal := range []error{
		ErrRefused, ErrOccupied, objstore.ErrKey,
		catalog.ErrInvalidIdentifier, catalog.ErrNoSuchTable, catalog.ErrNoSuchNamespace,
		catalog.ErrTableAlreadyExists, catalog.ErrViewAlreadyExists,
		iceberg.ErrInvalidArgument, iceberg.ErrInvalidSchema, iceberg.ErrInvalidPartitionSpec,
		iceberg.ErrNotImplemented, table.ErrInvalidOperation,
	} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

// chain yields err and all that it wraps.
func chain(err error) func(yield func(error) bool) {
	return func(yield func(error) bool) { walkChain(err, yield) }
}

func walkChain(err error, yield func(error) bool) bool {
	if err == nil {
		return true
	}
	if !yield(err) {
		return false
	}
	switch e := err.(type) { //nolint:errorlint // this is the walk that errors.Is does
	case interface{ Unwrap() error }:
		return walkChain(e.Unwrap(), yield)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			if !walkChain(inner, yield) {
				return false
			}
		}
	}
	return true
}
