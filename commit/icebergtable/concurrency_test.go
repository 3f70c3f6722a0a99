package icebergtable

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore"
)

// warehouse is where a test's tables lie: what another process needs to open them.
type warehouse struct {
	url  string
	kind string // filesystem or sql
	dsn  string
}

func newWarehouse(t *testing.T, kind string) warehouse {
	dir := t.TempDir()
	return warehouse{url: filepath.Join(dir, "lake house é"), kind: kind, dsn: filepath.Join(dir, "catalog.db")}
}

func (w warehouse) config() Config {
	if w.kind == "sql" {
		return Config{SQL: &SQLConfig{Driver: "sqlite", DSN: w.dsn, Name: "lake"}}
	}
	return Config{Filesystem: &FilesystemConfig{}}
}

func (w warehouse) open(ctx context.Context) (*Catalog, func() error, error) {
	store, err := objstore.Open(ctx, objstore.Config{URL: w.url})
	if err != nil {
		return nil, nil, err
	}
	c, err := Open(ctx, w.config(), store)
	if err != nil {
		return nil, nil, err
	}
	return c, func() error {
		if err := c.Close(); err != nil {
			return err
		}
		return store.Close()
	}, nil
}

func (w warehouse) mustOpen(t *testing.T) *Catalog {
	t.Helper()
	c, done, err := w.open(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, done()) })
	return c
}

var kinds = []string{"filesystem", "sql"}

func eachKind(t *testing.T, test func(t *testing.T, w warehouse)) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) { test(t, newWarehouse(t, kind)) })
	}
}

var events = table.Identifier{"web", "events"}

const (
	committers = 4
	commits    = 20

	envCommitter = "ICEBERGTABLE_TEST_COMMITTER" // number, url, kind, dsn
)

func TestMain(m *testing.M) {
	if spec := os.Getenv(envCommitter); spec != "" {
		if err := committer(context.Background(), strings.Split(spec, "\x1f")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// committer is another process: it makes the table, or finds it made, and commits.
func committer(ctx context.Context, spec []string) error {
	n, err := strconv.Atoi(spec[0])
	if err != nil {
		return err
	}
	c, done, err := warehouse{url: spec[1], kind: spec[2], dsn: spec[3]}.open(ctx)
	if err != nil {
		return err
	}
	if _, err := c.CreateTable(ctx, events, testSchema, CreateOptions{}); err != nil && !isExists(err) {
		return err
	}
	total := 0
	for i := range commits {
		conflicts, err := appendRows(ctx, c, events, commitID(n, i), int64(n*1000+i))
		if err != nil {
			return fmt.Errorf("commit %d: %w", i, err)
		}
		total += conflicts
	}
	fmt.Println(total)
	return done()
}

func commitID(n, i int) string { return fmt.Sprintf("%d-%d", n, i) }

func allCommits() []string {
	var ids []string
	for n := range committers {
		for i := range commits {
			ids = append(ids, commitID(n, i))
		}
	}
	return ids
}

func isExists(err error) bool {
	return strings.Contains(err.Error(), catalog.ErrTableAlreadyExists.Error())
}

func TestGoroutinesLoseNothing(t *testing.T) {
	eachKind(t, func(t *testing.T, w warehouse) {
		shared, other := w.mustOpen(t), w.mustOpen(t)
		_, err := shared.CreateTable(t.Context(), events, testSchema, CreateOptions{})
		require.NoError(t, err)
		var wg sync.WaitGroup
		var conflicts atomic.Int64
		errs := make([]error, committers)
		for n := range committers {
			wg.Go(func() {
				c := shared
				if n == 0 {
					c = other
				}
				for i := range commits {
					lost, err := appendRows(t.Context(), c, events, commitID(n, i), int64(n*1000+i))
					conflicts.Add(int64(lost))
					if err != nil {
						errs[n] = err
						return
					}
				}
			})
		}
		wg.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
		checkCommits(t, w.mustOpen(t), events, allCommits())
		t.Logf("%d conflicts", conflicts.Load())
	})
}

func TestProcessesLoseNothing(t *testing.T) {
	eachKind(t, func(t *testing.T, w warehouse) {
		self, err := os.Executable()
		require.NoError(t, err)
		var wg sync.WaitGroup
		outs := make([]string, committers)
		errs := make([]error, committers)
		for n := range committers {
			wg.Go(func() {
				cmd := exec.CommandContext(t.Context(), self)
				cmd.Env = append(os.Environ(), envCommitter+"="+strings.Join([]string{strconv.Itoa(n), w.url, w.kind, w.dsn}, "\x1f"))
				out, err := cmd.CombinedOutput()
				outs[n], errs[n] = string(out), err
			})
		}
		wg.Wait()
		for n, err := range errs {
			require.NoError(t, err, outs[n])
		}
		checkCommits(t, w.mustOpen(t), events, allCommits())
		t.Logf("conflicts: %q", outs)
	})
}
