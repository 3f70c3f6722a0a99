package icebergtable

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore"
)

func TestErrorClasses(t *testing.T) {
	meta, err := table.NewMetadata(testSchema, nil, table.UnsortedSortOrder, "file:///w/ns/t/iceberg", nil)
	require.NoError(t, err)
	id := int64(7)
	wrap := func(err error) error { return fmt.Errorf("committing: %w", errors.Join(errors.New("beside"), err)) }

	conflicts := map[string]error{
		"typed":          table.ErrCommitFailed,
		"rest":           fmt.Errorf("REST error: %w", table.ErrCommitFailed),
		"data files":     table.ErrConflictingDataFiles,
		"ours":           conflict(table.ErrCommitFailed),
		"branch moved":   table.AssertRefSnapshotID("main", &id).Validate(meta),
		"schema moved":   table.AssertCurrentSchemaID(5).Validate(meta),
		"field ids":      table.AssertLastAssignedFieldID(9).Validate(meta),
		"spec moved":     table.AssertDefaultSpecID(3).Validate(meta),
		"partition ids":  table.AssertLastAssignedPartitionID(5000).Validate(meta),
		"sort order":     table.AssertDefaultSortOrderID(3).Validate(meta),
		"made anew":      table.AssertTableUUID(uuid.New()).Validate(meta),
		"gone meanwhile": table.AssertTableUUID(uuid.New()).Validate(nil),
	}
	for name, err := range conflicts {
		require.Error(t, err, name)
		require.True(t, IsConflict(err), "%s: %v", name, err)
		require.True(t, IsConflict(wrap(err)), "%s: %v", name, err)
		require.False(t, IsDefiniteRefusal(wrap(err)), "%s: %v", name, err)
	}
	require.NotErrorIs(t, conflicts["ours"], table.ErrCommitFailed, "iceberg-go replays what is typed so")

	refusals := map[string]error{
		"name":       catalog.ErrInvalidIdentifier,
		"no table":   noSuchTable([]string{"a", "b"}),
		"there":      catalog.ErrTableAlreadyExists,
		"occupied":   ErrOccupied,
		"argument":   iceberg.ErrInvalidArgument,
		"schema":     iceberg.ErrInvalidSchema,
		"properties": CheckProperties(iceberg.Properties{"format-version": "3"}),
		"key":        objstore.CheckKey("../x"),
	}
	for name, err := range refusals {
		require.Error(t, err, name)
		require.True(t, IsDefiniteRefusal(wrap(err)), "%s: %v", name, err)
		require.False(t, IsConflict(wrap(err)), "%s: %v", name, err)
	}
	require.False(t, IsConflict(table.AssertCreate().Validate(meta)), "a table that is there is no lost race of a commit")

	for name, err := range map[string]error{
		"nil":        nil,
		"unknown":    errors.New("connection reset by peer"),
		"rest 500":   errors.New("REST error: commit failed due to unknown reason"),
		"cancelled":  fmt.Errorf("%w: %w", iceberg.ErrInvalidArgument, context.Canceled),
		"timed out":  context.DeadlineExceeded,
		"upload":     fmt.Errorf("writing: %w", errors.New("no space left on device")),
		"only words": errors.New("it is not known: requirement failed"),
	} {
		require.False(t, IsConflict(err), name)
		require.False(t, IsDefiniteRefusal(err), name)
	}
}

func TestCheckProperties(t *testing.T) {
	require.NoError(t, CheckProperties(nil))
	require.NoError(t, CheckProperties(iceberg.Properties{
		"format-version": "2", "owner": "me", "write.metadata.delete-after-commit.enabled": "false",
		"write.metadata.compression-codec": "none", "commit.manifest.min-count-to-merge": "10",
	}))
	for key, value := range map[string]string{
		"format-version": "1", "write.data.path": "/elsewhere", "write.metadata.path": "/elsewhere", "write.metadata.location": "x",
		"write.metadata.delete-after-commit.enabled": "true", "write.metadata.compression-codec": "gzip", "uuid": "x",
	} {
		err := CheckProperties(iceberg.Properties{key: value})
		require.ErrorContains(t, err, key)
		require.ErrorContains(t, err, value)
	}
	props := newProperties(iceberg.Properties{"commit.manifest.min-count-to-merge": "10", "write.data.path": "lost"}, "file:///w/t/delta")
	require.Equal(t, "10", props["commit.manifest.min-count-to-merge"], "the user's own wins")
	require.Equal(t, "file:///w/t/delta", props["write.data.path"])
	require.Equal(t, "50", newTable["commit.manifest.min-count-to-merge"], "the defaults are not changed")
}
