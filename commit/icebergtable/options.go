package icebergtable

import (
	"context"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// CreateOptions are what a new table is made with.
type CreateOptions struct {
	// PartitionSpec is nil for an unpartitioned table.
	PartitionSpec *iceberg.PartitionSpec
	// Properties come on top of those that every table gets; see [CheckProperties].
	Properties iceberg.Properties
}

// CommitOptions travel with one commit; see [WithCommit].
type CommitOptions struct {
	// Wait, if set, is called right before the swap, beside the wait for metadata
	// uploads: the caller's own uploads that the commit refers to must be durable
	// when it returns nil. Its error fails the commit with nothing committed.
	Wait func(context.Context) error
	// Remove, if set, is given the metadata as the commit would leave it and chooses
	// snapshots to remove in the same transaction. It must be pure, and must not
	// choose one that a branch or tag refers to. It may be called more than once.
	Remove func(table.Metadata) []int64
}

type commitOptionsKey struct{}

// WithCommit attaches opts to a commit: the context given to Transaction.Commit
// reaches [Catalog.CommitTable]. It also turns off the library's replay after a
// conflict, which would commit files under a schema they were not checked against:
// the conflict comes back as [ErrConflict].
func WithCommit(ctx context.Context, opts CommitOptions) context.Context {
	return context.WithValue(ctx, commitOptionsKey{}, &opts)
}

func commitOptions(ctx context.Context) *CommitOptions {
	opts, _ := ctx.Value(commitOptionsKey{}).(*CommitOptions)
	return opts
}
