package objstore

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// list walks the folders in byte order of keys. A link to a file counts as a file;
// a link to a folder below the prefix is not followed.
func (l *local) list(ctx context.Context, prefix, startAfter string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		base := "" // the folders of the prefix that are complete, with a trailing slash
		if i := strings.LastIndexByte(prefix, '/'); i >= 0 {
			base = prefix[:i+1]
		}
		l.walk(ctx, base, prefix, startAfter, yield)
	}
}

// walk yields the objects under the folder base and reports whether to go on.
func (l *local) walk(ctx context.Context, base, prefix, startAfter string, yield func(Object, error) bool) bool {
	if err := ctx.Err(); err != nil {
		yield(Object{}, err)
		return false
	}
	entries, err := os.ReadDir(l.path(base))
	if isNotExist(err) || errors.Is(err, syscall.ENOTDIR) {
		return true
	}
	if err != nil {
		yield(Object{}, err)
		return false
	}
	// ReadDir sorts by name, but the keys in folder "a" begin with "a/", and so
	// come after the file "a-b".
	slices.SortFunc(entries, func(x, y fs.DirEntry) int { return strings.Compare(sortName(x), sortName(y)) })
	for _, e := range entries {
		key := base + sortName(e)
		if !strings.HasPrefix(key, prefix) && !strings.HasPrefix(prefix, key) {
			continue
		}
		if e.IsDir() {
			if key == stagingDir+"/" || key < startAfter && !strings.HasPrefix(startAfter, key) {
				continue
			}
			if !l.walk(ctx, key, prefix, startAfter, yield) {
				return false
			}
			continue
		}
		if key <= startAfter || !strings.HasPrefix(key, prefix) {
			continue
		}
		info, err := os.Stat(filepath.Join(l.dir, filepath.FromSlash(key)))
		if isNotExist(err) {
			continue // gone since the folder was read
		}
		if err != nil {
			yield(Object{}, err)
			return false
		}
		if info.Mode().IsRegular() && !yield(Object{Key: key, Size: info.Size(), ModTime: info.ModTime()}, nil) {
			return false
		}
	}
	return true
}

func sortName(e fs.DirEntry) string {
	if e.IsDir() {
		return e.Name() + "/"
	}
	return e.Name()
}

func (l *local) folders(_ context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		entries, err := os.ReadDir(l.path(prefix))
		if isNotExist(err) || errors.Is(err, syscall.ENOTDIR) {
			return
		}
		if err != nil {
			yield("", err)
			return
		}
		for _, e := range entries {
			if e.IsDir() && !yield(e.Name(), nil) {
				return
			}
		}
	}
}
