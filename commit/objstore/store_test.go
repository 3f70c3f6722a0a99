package objstore_test

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore"
	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore/objstoretest"
)

var memNames atomic.Int64

func mustOpen(t testing.TB, cfg objstore.Config) *objstore.Store {
	t.Helper()
	s, err := objstore.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestLocal(t *testing.T) {
	objstoretest.Run(t, func(t *testing.T) func() *objstore.Store {
		dir := filepath.Join(t.TempDir(), "above", "lake house é 世界")
		return func() *objstore.Store { return mustOpen(t, objstore.Config{URL: dir}) }
	})
}

func TestMem(t *testing.T) {
	objstoretest.Run(t, func(t *testing.T) func() *objstore.Store {
		url := fmt.Sprintf("mem://suite-%d", memNames.Add(1))
		return func() *objstore.Store { return mustOpen(t, objstore.Config{URL: url}) }
	})
}
