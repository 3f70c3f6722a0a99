package output

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func named(t *testing.T, name string) tier {
	t.Helper()
	got, err := tierNamed(name)
	require.NoError(t, err)
	return got
}

func TestTiersBoundTheTablesOfTheProcess(t *testing.T) {
	for name, most := range map[string]int{"professional": 2, "premium": 10} {
		t.Run(name, func(t *testing.T) {
			r := newTableRegistry()
			for i := range most {
				require.NoError(t, r.count(named(t, name), fmt.Sprint(i)))
			}
			require.ErrorContains(t, r.count(named(t, name), "more"), fmt.Sprintf("%s allows %d streaming tables", name, most))
			require.NoError(t, r.count(named(t, name), "0"), "a table that counts already")
		})
	}
	for _, name := range []string{"enterprise", "unlimited"} {
		r := newTableRegistry()
		for i := range 1000 {
			require.NoError(t, r.count(named(t, name), fmt.Sprint(i)))
		}
	}
}

func TestAClaimIsForTheLifeOfItsOutput(t *testing.T) {
	r := newTableRegistry()
	pro := named(t, "professional")
	releaseA, err := r.claim(pro, "a")
	require.NoError(t, err)
	_, err = r.claim(pro, "b")
	require.NoError(t, err)
	_, err = r.claim(pro, "c")
	require.ErrorContains(t, err, "c would be one more beside a, b")
	_, err = r.claim(pro, "a")
	require.NoError(t, err, "two outputs to one table")
	releaseA()
	releaseA()
	_, err = r.claim(pro, "c")
	require.Error(t, err, "the other output still has it")
}

func TestACountedTableCountsUntilTheEnd(t *testing.T) {
	r := newTableRegistry()
	pro := named(t, "professional")
	release, err := r.claim(pro, "a")
	require.NoError(t, err)
	require.NoError(t, r.count(pro, "a"))
	release()
	require.NoError(t, r.count(pro, "b"))
	_, err = r.claim(pro, "c")
	require.Error(t, err)
}
