package icebergtable

import (
	"strings"
	"testing"

	"github.com/apache/iceberg-go/catalog"
	"github.com/stretchr/testify/require"
)

func TestNames(t *testing.T) {
	for _, name := range []string{"events", "Events-2024.01", "a", "0", "k=v", "-x", "a_b", "icebergs", "x.y", strings.Repeat("n", 255)} {
		require.NoError(t, CheckName(name), name)
		require.NoError(t, ValidateIdent([]string{"ns", name}), name)
	}
	for name, says := range map[string]string{
		"":                       "empty",
		".":                      "begins with",
		"..":                     "begins with",
		"../x":                   "begins with",
		"x/../y":                 `'/'`,
		"/abs":                   `'/'`,
		"a/b":                    `'/'`,
		`a\b`:                    `'\\'`,
		"%2e%2e":                 `'%'`,
		"a%2Fb":                  `'%'`,
		"_hidden":                "begins with",
		".hidden":                "begins with",
		"iceberg":                "reserved",
		"delta":                  "reserved",
		"data":                   "reserved",
		"metadata":               "reserved",
		"Delta":                  "reserved",
		"two words":              `' '`,
		"é":                      `'é'`,
		"a\x00b":                 `'\x00'`,
		"a:b":                    `':'`,
		"\xff":                   "holds",
		strings.Repeat("n", 256): "256 bytes",
	} {
		err := CheckName(name)
		require.ErrorIs(t, err, catalog.ErrInvalidIdentifier, "%q", name)
		require.ErrorContains(t, err, says, "%q", name)
		require.ErrorIs(t, ValidateIdent([]string{"ns", name}), catalog.ErrInvalidIdentifier, "table %q", name)
		require.ErrorIs(t, ValidateIdent([]string{"ns", name, "t"}), catalog.ErrInvalidIdentifier, "level %q", name)
		require.True(t, IsDefiniteRefusal(ValidateIdent([]string{name, "t"})), "%q", name)
	}
	require.ErrorContains(t, ValidateIdent(nil), "at least one level")
	require.ErrorContains(t, ValidateIdent([]string{"alone"}), "at least one level")
	require.ErrorContains(t, ValidateIdent([]string{"a.b", "t"}), "dots separate levels")
	require.ErrorContains(t, CheckNamespace(nil), "at least one level")

	require.Equal(t, "a/b/t", TableKey([]string{"a", "b", "t"}))
	require.Equal(t, "a/t/iceberg", IcebergKey([]string{"a", "t"}))
	require.Equal(t, "a/t/delta", DeltaKey([]string{"a", "t"}))
}

func TestParseVersion(t *testing.T) {
	for base, want := range map[string]int{
		"v1.metadata.json": 1, "v42.metadata.json": 42,
		"v0.metadata.json": 0, "v01.metadata.json": 0, "v.metadata.json": 0, "v-1.metadata.json": 0, "v1.gz.metadata.json": 0,
		"1.metadata.json": 0, "v1.json": 0, "v99999999999999999999.metadata.json": 0, "version-hint.text": 0,
		"00001-8f6b1c1e-0000-4000-8000-000000000000.metadata.json": 0,
	} {
		require.Equal(t, want, parseVersion(base), base)
	}
	text, order := hintFor("file:///w/ns/t/iceberg/metadata/v12.metadata.json")
	require.Equal(t, "12", text)
	require.Equal(t, 12, order)
	text, order = hintFor("file:///w/ns/t/iceberg/metadata/00007-8f6b1c1e.metadata.json")
	require.Equal(t, "00007-8f6b1c1e", text)
	require.Equal(t, 7, order)
	require.Equal(t, 12, hintOrder("12\n"))
	require.Zero(t, hintOrder("garbage"))
}
