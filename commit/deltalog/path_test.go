package deltalog

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRelativePath(t *testing.T) {
	for _, c := range []struct{ root, location, want string }{
		{"file:///w/t/delta", "file:///w/t/delta/a.parquet", "a.parquet"},
		{"file:///w/t/delta", "/w/t/delta/x/a.parquet", "x/a.parquet"},
		{"file:///w/t/delta/", "file:/w/t/delta/a.parquet", "a.parquet"},
		{"/w/t/delta", "file:///w/t/delta/a.parquet", "a.parquet"},
		{"s3://b/t/delta", "s3a://b/t/delta/d=1/a.parquet", "d=1/a.parquet"},
		{"file:///w/t/delta", "file:///w/t/delta2/a.parquet", ""},
		{"file:///w/t/delta", "file:///w/t/delta", ""},
		{"file:///w/t/delta", "file:///w/t/delta/", ""},
		{"s3://b/t/delta", "s3://other/t/delta/a.parquet", ""},
		{"file:///w/t/delta", "file:///w/t/delta/day=1%2F2/é x.parquet", "day=1%2F2/é x.parquet"},
	} {
		got, ok := relativePath(c.root, c.location)
		require.Equal(t, c.want != "", ok, "%+v", c)
		if ok {
			require.Equal(t, c.want, got)
		}
	}
}

// Iceberg's path is raw, Delta's a URI: encoded exactly once.
func TestEncodePath(t *testing.T) {
	for raw, want := range map[string]string{
		"d=1/part-0_1.parquet": "d=1/part-0_1.parquet",
		"d=1%2F2/x.parquet":    "d=1%252F2/x.parquet",
		"é x+y:z?.parquet":     "%C3%A9%20x%2By%3Az%3F.parquet",
	} {
		require.Equal(t, want, encodePath(raw))
		require.Equal(t, raw, decodePath("file:///w", want))
	}
	require.Equal(t, "a/b.parquet", decodePath("file:///w", "file:///w/a/b.parquet"))
	require.Equal(t, "100%", decodePath("file:///w", "100%"))
}
