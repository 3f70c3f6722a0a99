package objstore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore"
	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore/objstoretest"
)

// The test binary runs itself as another process; these say as what.
const (
	envRole = "OBJSTORE_TEST_ROLE"
	envDir  = "OBJSTORE_TEST_DIR"
)

func TestMain(m *testing.M) {
	switch os.Getenv(envRole) {
	case "racer":
		os.Exit(racer())
	case "crasher":
		os.Exit(crasher())
	}
	os.Exit(m.Run())
}

const raceNames = 200

// racer tries to win every name, and prints those that it won.
func racer() int {
	ctx := context.Background()
	s, err := objstore.Open(ctx, objstore.Config{URL: os.Getenv(envDir)})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return 1
	}
	for n := range raceNames {
		switch err := s.PutIfAbsent(ctx, fmt.Sprintf("log/%04d", n), fmt.Append(nil, os.Getpid())); {
		case err == nil:
			fmt.Println("won", n)
		case !errors.Is(err, objstore.ErrExists):
			fmt.Println(err)
			return 1
		}
	}
	return 0
}

// crasher leaves a stream half-written and waits to be killed.
func crasher() int {
	ctx := context.Background()
	s, err := objstore.Open(ctx, objstore.Config{URL: os.Getenv(envDir)})
	if err != nil {
		return 1
	}
	w, err := s.Create(ctx, "ns/t/delta/part.parquet")
	if err != nil {
		return 1
	}
	_, _ = w.Write([]byte("half"))
	fmt.Println("ready")
	time.Sleep(time.Minute)
	return 0
}

func again(t *testing.T, role, dir string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), envRole+"="+role, envDir+"="+dir)
	return cmd
}

func TestLocalOneWinnerAmongProcesses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lake")
	winners := map[string]int{}
	type process struct {
		cmd *exec.Cmd
		out *bufio.Scanner
		in  io.WriteCloser
	}
	var all []process
	for range 4 {
		cmd := again(t, "racer", dir)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		p := process{cmd, bufio.NewScanner(out), in}
		require.True(t, p.out.Scan())
		require.Equal(t, "ready", p.out.Text())
		all = append(all, p)
	}
	for _, p := range all {
		_, err := p.in.Write([]byte("\n"))
		require.NoError(t, err)
	}
	sharing := 0
	for _, p := range all {
		won := 0
		for p.out.Scan() {
			name, ok := strings.CutPrefix(p.out.Text(), "won ")
			require.True(t, ok, p.out.Text())
			winners[name]++
			won++
		}
		require.NoError(t, p.cmd.Wait())
		if won > 0 {
			sharing++
		}
	}
	require.Len(t, winners, raceNames)
	for name, n := range winners {
		require.Equal(t, 1, n, "winners of %s", name)
	}
	require.Greater(t, sharing, 1, "the processes never met")
}

func TestLocalCrashedWriterIsHarmless(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lake")
	cmd := again(t, "crasher", dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	scan := bufio.NewScanner(out)
	require.True(t, scan.Scan())
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()

	left := staged(t, dir)
	require.Len(t, left, 1, "the killed writer's temporary file")
	s := mustOpen(t, objstore.Config{URL: dir})
	for o, err := range s.List(t.Context(), "", "") {
		require.NoError(t, err)
		t.Fatalf("listed: %s", o.Key)
	}
	require.Len(t, staged(t, dir), 1, "a young file may be a live writer's")
	_, err = os.Stat(filepath.Join(dir, "ns"))
	require.ErrorIs(t, err, os.ErrNotExist, "no table folder holds anything of it")
	require.NoError(t, s.PutIfAbsent(t.Context(), "ns/t/delta/part.parquet", []byte("whole")))

	old := time.Now().Add(-8 * 24 * time.Hour)
	require.NoError(t, os.Chtimes(left[0], old, old))
	mustOpen(t, objstore.Config{URL: dir})
	require.Empty(t, staged(t, dir), "an old one is swept out")
	data, err := s.Get(t.Context(), "ns/t/delta/part.parquet")
	require.NoError(t, err)
	require.Equal(t, "whole", string(data))
}

func staged(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, ".staging", "*"))
	require.NoError(t, err)
	return names
}

func TestLocalLeavesNoTemporaryFiles(t *testing.T) {
	dir := t.TempDir()
	s, ctx := mustOpen(t, objstore.Config{URL: dir}), t.Context()
	require.NoError(t, s.Put(ctx, "a", nil))
	require.NoError(t, s.Put(ctx, "a", nil))
	require.NoError(t, s.PutIfAbsent(ctx, "b", nil))
	require.Error(t, s.PutIfAbsent(ctx, "b", nil))
	require.Error(t, s.Put(ctx, "a/below-an-object", nil))
	w, err := s.Create(ctx, "c")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	w, err = s.Create(ctx, "d")
	require.NoError(t, err)
	w.Abort()
	w, err = s.Create(ctx, "a/below-an-object")
	require.NoError(t, err)
	require.ErrorContains(t, w.Close(), "is a file where a folder is needed")
	require.Empty(t, staged(t, dir))
}

func TestLocalRefusedAtOpen(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := objstore.Open(t.Context(), objstore.Config{URL: file})
	require.ErrorContains(t, err, "it is a file; a warehouse is a folder")
	require.ErrorContains(t, err, file)
	_, err = objstore.Open(t.Context(), objstore.Config{URL: filepath.Join(file, "below")})
	require.ErrorContains(t, err, "a part of its path is a file")
	_, err = objstore.Open(t.Context(), objstore.Config{URL: "nosuch://bucket"})
	require.ErrorContains(t, err, "nosuch")
	_, err = objstore.Open(t.Context(), objstore.Config{URL: "s3://bucket/x?secret=hunter2"})
	require.Error(t, err)

	for _, c := range []struct {
		name, do string
		with     error
		says     string
	}{
		{"a folder that is not ours", "create", &os.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, "cannot be written to by this user"},
		{"a read-only file system", "create", &os.PathError{Op: "open", Path: "x", Err: syscall.EROFS}, "cannot be written to by this user"},
		{"no hard links", "link", &os.LinkError{Op: "link", Err: syscall.EPERM}, "no hard links"},
		{"hard links not supported", "link", &os.LinkError{Op: "link", Err: syscall.ENOTSUP}, "no hard links"},
		{"a disk that is full", "mkdir", &os.PathError{Op: "mkdir", Err: syscall.ENOSPC}, "no space left"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rec := objstoretest.NewRecorder()
			rec.FailWhen(objstoretest.FailOn(c.do, "", c.with))
			_, err := objstore.Open(t.Context(), objstore.Config{URL: filepath.Join(dir, "lake"), Files: rec})
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestLocalUnwritableFolder(t *testing.T) {
	if os.Getuid() == 0 {
		// Root writes anywhere; TestLocalRefusedAtOpen has the same by injection.
		t.Log("running as root: the permission bits cannot be tried")
		return
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o500))
	_, err := objstore.Open(t.Context(), objstore.Config{URL: dir})
	require.ErrorContains(t, err, "cannot be written to by this user")
	_, err = objstore.Open(t.Context(), objstore.Config{URL: filepath.Join(dir, "below")})
	require.ErrorContains(t, err, "cannot be written to by this user")
}

// TestLocalDurability shows by the recorded operations that what was acknowledged
// survives a power cut, and that nothing is ever under its name without its content.
func TestLocalDurability(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "lake")
	rec := objstoretest.NewRecorder()
	s, ctx := mustOpen(t, objstore.Config{URL: dir, Files: rec}), t.Context()
	durable := func(key string) {
		t.Helper()
		path, ok := s.LocalPath(key)
		require.True(t, ok)
		require.NoError(t, rec.Durable(path), "%v", rec.Ops())
	}
	require.NoError(t, s.Put(ctx, "a/b/c/put", []byte("x")))
	durable("a/b/c/put")
	require.NoError(t, s.Put(ctx, "a/b/c/put", []byte("y")))
	durable("a/b/c/put")
	require.NoError(t, s.PutIfAbsent(ctx, "a/d/once", []byte("x")))
	durable("a/d/once")
	w, err := s.Create(ctx, "e/f/streamed")
	require.NoError(t, err)
	for range 3 {
		_, err = w.Write([]byte("x"))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	durable("e/f/streamed")

	// A folder that another process made, and may not have synced, is synced too.
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "g", "h"), 0o777))
	before := len(rec.Ops())
	require.NoError(t, s.PutIfAbsent(ctx, "g/h/x", nil))
	var synced []string
	for _, op := range rec.Ops()[before:] {
		if op.Do == "syncdir" {
			synced = append(synced, op.Path)
		}
	}
	require.Equal(t, []string{dir, filepath.Join(dir, "g"), filepath.Join(dir, "g", "h")}, synced)

	// A folder that a cleanup removed is made again.
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "g")))
	require.NoError(t, os.RemoveAll(filepath.Join(dir, ".staging")))
	require.NoError(t, s.PutIfAbsent(ctx, "g/h/y", nil))
	durable("g/h/y")
	require.Empty(t, rec.Violations())
}

func TestLocalFailures(t *testing.T) {
	full := &os.PathError{Op: "write", Err: syscall.ENOSPC}
	for _, c := range []struct {
		do     string
		with   error
		exists bool // the outcome is unknown, and here the object is there
	}{
		{"create", full, false},
		{"write", full, false},
		{"sync", full, false},
		{"close", full, false},
		{"link", syscall.EIO, false},
		{"rename", syscall.EIO, false},
		{"syncdir", syscall.EIO, true},
	} {
		t.Run(c.do, func(t *testing.T) {
			dir := t.TempDir()
			rec := objstoretest.NewRecorder()
			s, ctx := mustOpen(t, objstore.Config{URL: dir, Files: rec}), t.Context()
			require.NoError(t, s.Put(ctx, "a/there", []byte("old")))
			rec.FailWhen(objstoretest.FailOn(c.do, "", c.with))

			err := s.PutIfAbsent(ctx, "a/once", []byte("x"))
			if c.do == "rename" {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, c.with)
				require.NotErrorIs(t, err, objstore.ErrExists, "a failure is no definite refusal")
				_, err = s.Stat(ctx, "a/once")
				require.Equal(t, c.exists, err == nil, "%v", err)
			}

			err = s.Put(ctx, "a/there", []byte("new"))
			data, gerr := s.Get(ctx, "a/there")
			require.NoError(t, gerr)
			switch {
			case c.do == "link":
				require.NoError(t, err)
			case c.exists:
				require.Error(t, err)
				require.Equal(t, "new", string(data))
			default:
				require.Error(t, err)
				require.Equal(t, "old", string(data))
			}

			w, err := s.Create(ctx, "a/streamed")
			if err == nil {
				_, werr := w.Write([]byte("x"))
				err = errors.Join(werr, w.Close())
			}
			require.Equal(t, c.do == "link", err == nil, "%v", err)
			require.Empty(t, staged(t, dir))
		})
	}
}

func TestLocalListErrors(t *testing.T) {
	if os.Getuid() == 0 {
		t.Log("running as root: every folder can be read")
		return
	}
	dir := t.TempDir()
	s := mustOpen(t, objstore.Config{URL: dir})
	require.NoError(t, s.Put(t.Context(), "a/b/c", nil))
	require.NoError(t, os.Chmod(filepath.Join(dir, "a", "b"), 0))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "a", "b"), 0o700) })
	var failed bool
	for _, err := range s.List(t.Context(), "", "") {
		failed = failed || err != nil
	}
	require.True(t, failed, "an unreadable folder is not an empty one")
}
