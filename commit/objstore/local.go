package objstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// staleAfter is the age at which a temporary file is taken for a dead writer's. A
// writer that streams refreshes it with every write.
const staleAfter = 7 * 24 * time.Hour

// local is a folder on local disk. gocloud's own driver for files is not used: its
// conditional write has several winners, it syncs nothing, and its listing is not
// in order of keys and passes over folders that it cannot read.
type local struct {
	dir     string
	staging string
	fs      FileSystem

	mu      sync.Mutex
	durable map[string]bool // folders known to be there and synced into their parents
}

// openLocal makes the folder where needed, shows that it can be written to and that
// hard links are exclusive there, and sweeps out stale temporary files.
func openLocal(dir string, files FileSystem) (*local, error) {
	l := &local{dir: dir, staging: filepath.Join(dir, stagingDir), fs: files, durable: map[string]bool{}}
	if err := l.makeRoot(); err != nil {
		return nil, err
	}
	if err := l.ensureDir(l.staging); err != nil {
		return nil, unwritable(err)
	}
	if err := l.probe(); err != nil {
		return nil, unwritable(err)
	}
	l.sweep(time.Now().Add(-staleAfter))
	return l, nil
}

func unwritable(err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("the folder cannot be written to by this user; change its permissions or choose another: %w", err)
	}
	return err
}

// makeRoot makes the warehouse's own folder and those above it that are missing.
func (l *local) makeRoot() error {
	info, err := os.Stat(l.dir)
	switch {
	case err == nil && !info.IsDir():
		return errors.New("it is a file; a warehouse is a folder")
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("a part of its path is a file: %w", err)
	case err != nil && !isNotExist(err):
		return unwritable(err)
	case err == nil:
		l.durable[l.dir] = true
		// Whoever made the folder may have died before its name was durable. The
		// folder above is not ours and may be unreadable; then there is no more to do.
		if err := l.fs.SyncDir(filepath.Dir(l.dir)); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
		return nil
	}
	above := l.dir
	var missing []string
	for {
		missing = append(missing, above)
		above = filepath.Dir(above)
		if _, err := os.Stat(above); err == nil || above == filepath.Dir(above) {
			break
		}
	}
	for i := len(missing) - 1; i >= 0; i-- {
		if err := l.fs.Mkdir(missing[i]); err != nil && !errors.Is(err, fs.ErrExist) {
			return unwritable(err)
		}
		if err := l.fs.SyncDir(filepath.Dir(missing[i])); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	l.durable[l.dir] = true
	return nil
}

// probe tries what put-if-absent stands on, so that a file system without it (some
// network and memory-card ones) is refused here and not at the first commit.
func (l *local) probe() error {
	a, b := l.tempName(), l.tempName()
	f, err := l.fs.CreateNew(a)
	if err != nil {
		return err
	}
	_ = f.Close()
	defer func() { _ = l.fs.Remove(a) }()
	if err := l.fs.Link(a, b); err != nil {
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
			return fmt.Errorf("its file system has no hard links, without which two writers could overwrite each other; choose a folder on another one (%s)", err.Error())
		}
		return err
	}
	defer func() { _ = l.fs.Remove(b) }()
	switch err := l.fs.Link(a, b); {
	case errors.Is(err, fs.ErrExist):
	case err == nil:
		return errors.New("its file system lets a hard link replace a file, so two writers could overwrite each other; choose a folder on another one")
	default:
		return fmt.Errorf("it cannot be told whether its file system lets a hard link replace a file: %w", err)
	}
	return nil
}

// sweep removes temporary files that nobody has written to since before. A failure
// does no harm: another start tries again.
func (l *local) sweep(before time.Time) {
	entries, err := os.ReadDir(l.staging)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && info.ModTime().Before(before) {
			_ = l.fs.Remove(filepath.Join(l.staging, e.Name()))
		}
	}
}

func (l *local) close() error { return nil }

func (l *local) path(key string) string { return filepath.Join(l.dir, filepath.FromSlash(key)) }

func (l *local) tempName() string { return filepath.Join(l.staging, rand.Text()) }

// temp makes a temporary file; if the folder has been removed since, again.
func (l *local) temp() (File, string, error) {
	for again := true; ; again = false {
		name := l.tempName()
		f, err := l.fs.CreateNew(name)
		if err != nil && isNotExist(err) && again {
			l.forget(l.staging)
			if err = l.ensureDir(l.staging); err == nil {
				continue
			}
		}
		return f, name, err
	}
}

// stage writes data into a synced temporary file.
func (l *local) stage(data []byte) (string, error) {
	f, name, err := l.temp()
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = l.fs.Remove(name)
		return "", err
	}
	return name, nil
}

// place gives a synced temporary file its name by link or rename, and makes the
// name durable. The folder may have been removed by a cleanup of empty folders
// since it was last seen; then it is made again.
func (l *local) place(temp, path string, by func(oldpath, newpath string) error) error {
	dir := filepath.Dir(path)
	for again := true; ; again = false {
		if err := l.ensureDir(dir); err != nil {
			return err
		}
		err := by(temp, path)
		switch {
		case err == nil:
			return l.fs.SyncDir(dir)
		case errors.Is(err, fs.ErrExist):
			return fmt.Errorf("%w: %w", ErrExists, err)
		case errors.Is(err, syscall.EXDEV):
			return fmt.Errorf("the folder %s is on another file system than the warehouse %s; a warehouse must be on one: %w", dir, l.dir, err)
		case isNotExist(err) && again:
			l.forget(dir)
		default:
			return err
		}
	}
}

// ensureDir makes a folder of the warehouse, and its name durable. Every folder on
// the way is synced into its parent once by each process, also when it is there
// already: the process that made it may have died in between.
func (l *local) ensureDir(dir string) error {
	l.mu.Lock()
	known := l.durable[dir]
	l.mu.Unlock()
	if known {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent == dir {
		return fmt.Errorf("%s is not in the warehouse", dir)
	}
	if err := l.ensureDir(parent); err != nil {
		return err
	}
	err := l.fs.Mkdir(dir)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if errors.Is(err, fs.ErrExist) {
		if info, serr := os.Stat(dir); serr == nil && !info.IsDir() {
			return fmt.Errorf("%s is a file where a folder is needed", dir)
		}
	}
	if err := l.fs.SyncDir(parent); err != nil {
		return err
	}
	l.mu.Lock()
	l.durable[dir] = true
	l.mu.Unlock()
	return nil
}

// forget drops what is known of dir, of those above it (the root excepted) and below.
func (l *local) forget(dir string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for known := range l.durable {
		above := strings.HasPrefix(dir+string(filepath.Separator), known+string(filepath.Separator))
		below := strings.HasPrefix(known, dir+string(filepath.Separator))
		if known != l.dir && (above || below) {
			delete(l.durable, known)
		}
	}
}

func (l *local) put(_ context.Context, key string, data []byte) error {
	temp, err := l.stage(data)
	if err != nil {
		return err
	}
	if err := l.place(temp, l.path(key), l.fs.Rename); err != nil {
		_ = l.fs.Remove(temp)
		return err
	}
	return nil
}

func (l *local) putIfAbsent(_ context.Context, key string, data []byte) error {
	temp, err := l.stage(data)
	if err != nil {
		return err
	}
	err = l.place(temp, l.path(key), l.fs.Link)
	_ = l.fs.Remove(temp) // the first of its two names, or the only one
	return err
}

func (l *local) delete(_ context.Context, key string) error {
	path := l.path(key)
	if info, err := os.Lstat(path); err != nil || info.IsDir() {
		return notFound(err)
	}
	if err := l.fs.Remove(path); err != nil {
		return notFound(err)
	}
	return nil
}

// notFound types the errors that say there is no such object: no such file, a
// folder of that name (err is nil), a file in the place of a folder above it.
func notFound(err error) error {
	switch {
	case err == nil:
		return fmt.Errorf("%w: it is a folder", ErrNotFound)
	case isNotExist(err), errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return err
}
