package objstore

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParsePlace(t *testing.T) {
	here, err := os.Getwd()
	require.NoError(t, err)
	for _, c := range []struct{ url, root string }{
		{"/data/lakehouse", "file:///data/lakehouse"},
		{"/data/lakehouse/", "file:///data/lakehouse"},
		{"/data/../data/./lakehouse", "file:///data/lakehouse"},
		{"./lakehouse", "file://" + filepath.Join(here, "lakehouse")},
		{"lakehouse", "file://" + filepath.Join(here, "lakehouse")},
		{"file:///data/lakehouse", "file:///data/lakehouse"},
		{"file:/data/lakehouse", "file:///data/lakehouse"},
		{"file://localhost/data/lakehouse", "file:///data/lakehouse"},
		{"/data/lake house é 世界", "file:///data/lake house é 世界"},
		{"file:///data/lake%20house%20%C3%A9", "file:///data/lake house é"},
		{"file:///data/lake house", "file:///data/lake house"},
		{"mem://name", "mem://name"},
		{"s3://bucket/some/prefix/?region=x", "s3://bucket/some/prefix"},
		{"s3://bucket", "s3://bucket"},
	} {
		p, err := parsePlace(c.url)
		require.NoError(t, err, c.url)
		require.Equal(t, c.root, p.root(), c.url)
	}
	for _, c := range []struct{ url, says string }{
		{"", "empty"},
		{"  ", "empty"},
		{"/", "root of a file system"},
		{"file://relative/path", "absolute"},
		{"file:///", "root of a file system"},
		{"/data/100%", `'%'`},
		{"/data/a#b", `'#'`},
		{"/data/what?", `'?'`},
		{"/data/*", `'*'`},
		{"/data/[x]", `'['`},
		{`/data/"x`, `'"'`},
		{"/data/a\nb", `'\n'`},
		{"/data/\xff", "UTF-8"},
		{"s3:///prefix", "no bucket"},
		{"s3://bucket/a b", "prefix"},
		{"s3://bucket/../x", "prefix"},
	} {
		_, err := parsePlace(c.url)
		require.ErrorContains(t, err, c.says, c.url)
	}
}

func TestKeyIn(t *testing.T) {
	const root = "file:///data/lake house é"
	for location, want := range map[string]string{
		root:                                 "",
		root + "/":                           "",
		root + "/ns/t":                       "ns/t",
		"file:/data/lake house é/ns/t":       "ns/t",
		"/data/lake house é/ns/t":            "ns/t",
		"file://localhost/data/lake house é": "",
		"file:///data/lake%20house%20%C3%A9/ns/t/c=a%20b/f": "ns/t/c=a%20b/f", // only the root is decoded
		"/data/lake house é/ns/t/c=a%20b/f":                 "ns/t/c=a%20b/f",
	} {
		got, ok := keyIn(root, location)
		require.True(t, ok, location)
		require.Equal(t, want, got, location)
	}
	for _, location := range []string{
		"", "file:", "relative/data", "/data", "/data/lake house", "/data/lake house éx/y", "file://other/data/lake house é/x",
		"s3://data/lake house é/x", "/data/lake house é/../other", "/data/lake house é/a/../../other", "/data/lake house é/.staging/x",
	} {
		got, ok := keyIn(root, location)
		require.False(t, ok, "%s gave %q", location, got)
	}
	got, ok := keyIn("s3://bucket/prefix", "s3://bucket/prefix/ns/t")
	require.True(t, ok)
	require.Equal(t, "ns/t", got)
	for _, location := range []string{"s3://bucket/prefixes/x", "/prefix/ns", "s3://bucket", "file:///prefix/ns"} {
		_, ok := keyIn("s3://bucket/prefix", location)
		require.False(t, ok, location)
	}
}
