package icebergtable

import (
	"path/filepath"
	"testing"

	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/catalog/catalogtest"
	"github.com/stretchr/testify/require"

	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore"
)

func openInner(t *testing.T, url string, cfg Config) catalog.Catalog {
	t.Helper()
	store, err := objstore.Open(t.Context(), objstore.Config{URL: url})
	require.NoError(t, err)
	c, err := Open(t.Context(), cfg, store)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, c.Close())
		require.NoError(t, store.Close())
	})
	return c.inner
}

func TestFilesystemConformance(t *testing.T) {
	catalogtest.RunCatalogTests(t, catalogtest.Config{NewCatalog: func(t *testing.T) catalog.Catalog {
		return openInner(t, filepath.Join(t.TempDir(), "lake house é"), Config{})
	}, SupportsNamespaceProperties: true})
}

func TestFilesystemConformanceInMemory(t *testing.T) {
	catalogtest.RunCatalogTests(t, catalogtest.Config{NewCatalog: func(t *testing.T) catalog.Catalog {
		return openInner(t, "mem://"+filepath.Base(t.TempDir())+"-"+filepath.Base(filepath.Dir(t.TempDir())), Config{})
	}, SupportsNamespaceProperties: true})
}

func TestSQLConformance(t *testing.T) {
	catalogtest.RunCatalogTests(t, catalogtest.Config{
		NewCatalog: func(t *testing.T) catalog.Catalog {
			dir := t.TempDir()
			return openInner(t, filepath.Join(dir, "lake house é"), Config{SQL: &SQLConfig{Driver: "sqlite", DSN: filepath.Join(dir, "catalog.db")}})
		},
		SupportsNamespaceProperties: true,
	})
}
