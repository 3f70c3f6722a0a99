package objstore

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
)

// FileSystem is the file operations by which a local warehouse is changed. Reading
// goes past it. A test may put a layer in between that records the calls, so that
// the order of syncs can be shown, or that fails them. It must be safe for
// concurrent use. Paths are absolute; errors are those of package os.
type FileSystem interface {
	// CreateNew makes a file for writing; one that is there is an error.
	CreateNew(path string) (File, error)
	// Link gives oldpath's file the second name newpath; a taken name is an error.
	Link(oldpath, newpath string) error
	// Rename moves a file, over any that has the new name.
	Rename(oldpath, newpath string) error
	Remove(path string) error
	Mkdir(path string) error
	// SyncDir makes the names in a folder durable.
	SyncDir(path string) error
}

// File is an open file of a [FileSystem].
type File interface {
	io.Writer
	// Sync makes the file's content durable.
	Sync() error
	Close() error
}

// osFiles is the operating system's.
type osFiles struct{}

func (osFiles) CreateNew(path string) (File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
}

func (osFiles) Link(oldpath, newpath string) error   { return os.Link(oldpath, newpath) }
func (osFiles) Rename(oldpath, newpath string) error { return os.Rename(oldpath, newpath) }
func (osFiles) Remove(path string) error             { return os.Remove(path) }
func (osFiles) Mkdir(path string) error              { return os.Mkdir(path, 0o777) }

func (osFiles) SyncDir(path string) error {
	if runtime.GOOS == "windows" {
		return nil // folders cannot be opened for that; names are journalled there
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// OSFiles is the operating system's [FileSystem], for a layer to stand on.
func OSFiles() FileSystem { return osFiles{} }

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }
