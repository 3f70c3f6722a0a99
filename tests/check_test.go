package tests

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/managed-lakehouse/managed-lakehouse/tests/internal/readback"
)

// The checks that every case goes through must bite: each of these damages must be
// found, and told as what it is.
func TestCheckFindsDamage(t *testing.T) {
	t.Parallel()
	scratch := t.TempDir()
	log := &logBuffer{}
	for _, input := range []string{"input.ndjson", "input-2.ndjson"} {
		err := runPipeline(t, log, "cases/evolution/pipeline.yaml", map[string]string{
			"WAREHOUSE": scratch, "INPUT": filepath.Join("cases", "evolution", input),
		})
		require.NoError(t, err, "%s", log)
	}
	table := filepath.Join(scratch, "default", "events")
	_, err := readback.Check(t.Context(), table)
	require.NoError(t, err)

	entries, err := filepath.Glob(filepath.Join(table, "delta", "_delta_log", "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, entries)
	last := entries[len(entries)-1]
	hint := filepath.Join(table, "iceberg", "metadata", "version-hint.text")

	replace := func(pattern, with string) func(string) string {
		return func(s string) string { return regexp.MustCompile(pattern).ReplaceAllString(s, with) }
	}
	for name, damage := range map[string]struct {
		file string
		edit func(string) string
		says string
	}{
		"an add is missing":         {last, replace(`(?m)^\{"add".*\n`, ""), "live files differ"},
		"a row count is wrong":      {last, replace(`\\"numRecords\\":2`, `\"numRecords\":3`), "numRecords"},
		"a minimum is too high":     {last, replace(`\\"minValues\\":\{\\"id\\":2`, `\"minValues\":{\"id\":3`), "minValues.id"},
		"a null count is wrong":     {last, replace(`(\\"nullCount\\":\{\\"id\\":)0`, `${1}1`), "nullCount.id"},
		"the txn is missing":        {last, replace(`(?m)^\{"txn".*\n`, ""), "txn of Delta version"},
		"a column has another type": {last, replace(`(\\"name\\":\\"top\\",\\"type\\":)\\"string\\"`, `${1}\"long\"`), "columns differ"},
		"the log has a hole":        {entries[0], nil, "jumps from version -1"},
		"the hint is old":           {hint, func(string) string { return "1" }, ""},
		"a file is stray":           {filepath.Join(table, "delta", "left-behind.parquet"), func(string) string { return "x" }, "stray file"},
		"a temp file stayed":        {filepath.Join(table, "iceberg", "metadata", "x.tmp"), func(string) string { return "x" }, "stray file"},
	} {
		before, err := os.ReadFile(damage.file)
		isNew := os.IsNotExist(err)
		if !isNew {
			require.NoError(t, err, name)
		}
		if damage.edit == nil {
			require.NoError(t, os.Remove(damage.file))
		} else {
			after := damage.edit(string(before))
			require.NotEqual(t, string(before), after, "%s: nothing was damaged in\n%s", name, before)
			require.NoError(t, os.WriteFile(damage.file, []byte(after), 0o644))
		}

		_, err = readback.Check(t.Context(), table)
		require.Error(t, err, name)
		require.ErrorContains(t, err, damage.says, name)

		if isNew {
			require.NoError(t, os.Remove(damage.file))
		} else {
			require.NoError(t, os.WriteFile(damage.file, before, 0o644))
		}
	}
	_, err = readback.Check(t.Context(), table)
	require.NoError(t, err)
}
