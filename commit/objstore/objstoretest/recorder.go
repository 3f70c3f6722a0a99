package objstoretest

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore"
)

// Op is one file operation, as a [Recorder] saw it.
type Op struct {
	Do   string // create, write, sync, close, link, rename, remove, mkdir, syncdir
	Path string
	To   string // of link and rename
}

// String is the operation in words.
func (o Op) String() string {
	if o.To != "" {
		return o.Do + " " + o.Path + " -> " + o.To
	}
	return o.Do + " " + o.Path
}

// Recorder is a file system that records what is done through it, keeps account of
// what a power cut would leave, and fails operations on demand. It is safe for
// concurrent use.
//
// The account follows what POSIX lets one rely on: content is durable when its file
// was synced after its last write; a name when its folder was synced after it was
// given, and the folder's own name in turn. What was there before is durable.
type Recorder struct {
	under objstore.FileSystem

	mu         sync.Mutex
	fail       func(Op) error
	ops        []Op
	inodes     map[string]*inode // files made through the recorder, by each of their names
	unsynced   map[string]bool   // names given (files and folders) whose folder was not synced since
	violations []string
}

type inode struct{ dirty bool }

// NewRecorder records on top of the operating system's file system.
func NewRecorder() *Recorder {
	return &Recorder{under: objstore.OSFiles(), inodes: map[string]*inode{}, unsynced: map[string]bool{}}
}

// FailWhen has fail asked before each operation: an error it returns is the
// operation's, and nothing is done. Nil fails nothing. fail is called by one operation
// at a time, and must not call the recorder.
func (r *Recorder) FailWhen(fail func(Op) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail = fail
}

// Ops are the operations so far.
func (r *Recorder) Ops() []Op {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ops)
}

// Violations are the moments at which a file came under its final name while its
// content was not durable: a power cut could have left it there empty.
func (r *Recorder) Violations() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.violations)
}

// Durable reports why the file at path might not survive a power cut now.
func (r *Recorder) Durable(path string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	node, ok := r.inodes[path]
	if !ok {
		return fmt.Errorf("%s was not made through the recorder", path)
	}
	if node.dirty {
		return fmt.Errorf("the content of %s was not synced", path)
	}
	for name := path; name != filepath.Dir(name); name = filepath.Dir(name) {
		if r.unsynced[name] {
			return fmt.Errorf("the folder of %s was not synced after it got that name", name)
		}
	}
	return nil
}

// do records op, unless it is to fail.
func (r *Recorder) do(op Op, act func() error, done func()) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		if err := r.fail(op); err != nil {
			return err
		}
	}
	if err := act(); err != nil {
		return err
	}
	r.ops = append(r.ops, op)
	done()
	return nil
}

// CreateNew implements [objstore.FileSystem].
func (r *Recorder) CreateNew(path string) (objstore.File, error) {
	var f objstore.File
	node := &inode{dirty: true}
	err := r.do(Op{Do: "create", Path: path}, func() (err error) {
		f, err = r.under.CreateNew(path)
		return err
	}, func() {
		r.inodes[path] = node
		r.unsynced[path] = true
	})
	if err != nil {
		return nil, err
	}
	return &recordedFile{r: r, f: f, path: path, node: node}, nil
}

// Link implements [objstore.FileSystem].
func (r *Recorder) Link(oldpath, newpath string) error {
	return r.do(Op{Do: "link", Path: oldpath, To: newpath}, func() error { return r.under.Link(oldpath, newpath) }, func() {
		r.name(oldpath, newpath)
	})
}

// Rename implements [objstore.FileSystem].
func (r *Recorder) Rename(oldpath, newpath string) error {
	return r.do(Op{Do: "rename", Path: oldpath, To: newpath}, func() error { return r.under.Rename(oldpath, newpath) }, func() {
		r.name(oldpath, newpath)
		r.drop(oldpath)
	})
}

func (r *Recorder) name(oldpath, newpath string) {
	node := r.inodes[oldpath]
	if node == nil {
		node = &inode{}
	}
	if node.dirty && filepath.Dir(oldpath) != filepath.Dir(newpath) {
		r.violations = append(r.violations, fmt.Sprintf("%s was named before its content was synced", newpath))
	}
	r.inodes[newpath] = node
	r.unsynced[newpath] = true
}

func (r *Recorder) drop(path string) {
	delete(r.inodes, path)
	delete(r.unsynced, path)
}

// Remove implements [objstore.FileSystem].
func (r *Recorder) Remove(path string) error {
	return r.do(Op{Do: "remove", Path: path}, func() error { return r.under.Remove(path) }, func() { r.drop(path) })
}

// Mkdir implements [objstore.FileSystem].
func (r *Recorder) Mkdir(path string) error {
	return r.do(Op{Do: "mkdir", Path: path}, func() error { return r.under.Mkdir(path) }, func() { r.unsynced[path] = true })
}

// SyncDir implements [objstore.FileSystem].
func (r *Recorder) SyncDir(path string) error {
	return r.do(Op{Do: "syncdir", Path: path}, func() error { return r.under.SyncDir(path) }, func() {
		for name := range r.unsynced {
			if filepath.Dir(name) == path {
				delete(r.unsynced, name)
			}
		}
	})
}

type recordedFile struct {
	r    *Recorder
	f    objstore.File
	path string
	node *inode
}

func (f *recordedFile) Write(p []byte) (n int, err error) {
	err = f.r.do(Op{Do: "write", Path: f.path}, func() error {
		n, err = f.f.Write(p)
		return err
	}, func() { f.node.dirty = true })
	return n, err
}

func (f *recordedFile) Sync() error {
	return f.r.do(Op{Do: "sync", Path: f.path}, f.f.Sync, func() { f.node.dirty = false })
}

func (f *recordedFile) Close() error {
	// Closed even when it is to fail, so that no descriptor leaks.
	err := f.r.do(Op{Do: "close", Path: f.path}, func() error { return nil }, func() {})
	return errors.Join(err, f.f.Close())
}

// FailOn is for [Recorder.FailWhen]: it fails the operations of one kind whose path
// (or new name) ends with suffix.
func FailOn(do, suffix string, with error) func(Op) error {
	return func(op Op) error {
		if op.Do == do && (strings.HasSuffix(op.Path, suffix) || op.To != "" && strings.HasSuffix(op.To, suffix)) {
			return with
		}
		return nil
	}
}
