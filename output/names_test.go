package output

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestTableIdent(t *testing.T) {
	ident, err := tableIdent("web.clicks", "events-2_b.v1")
	require.NoError(t, err)
	require.Equal(t, []string{"web", "clicks", "events-2_b.v1"}, ident)
}

func TestNamesThatCouldLeaveTheirFolderAreRefused(t *testing.T) {
	for _, bad := range []string{
		"", ".", "..", "../x", "a/../b", "a/b", "/abs", `a\b`, "%2e%2e", "a%2fb", "_x", ".x", "-x", "a..b", "a.", "iceberg", "DELTA", "Data", "metadata",
		"a b", "a\x00b", "a\nb", "é", "a=b", "a:b", "~", strings.Repeat("x", 201),
	} {
		t.Run(bad, func(t *testing.T) {
			_, err := tableIdent("ns", bad)
			require.ErrorContains(t, err, "table: ")
			_, err = tableIdent("ok."+bad, "t")
			if bad != "" || true {
				require.ErrorContains(t, err, "namespace: ")
			}
		})
	}
}
