package objstore

import (
	"context"
	"os"
)

// localWriter streams into a temporary file, which is renamed when complete.
type localWriter struct {
	l    *local
	path string
	temp string
	f    File
}

func (l *local) create(_ context.Context, key string) (writerBackend, error) {
	f, temp, err := l.temp()
	if err != nil {
		return nil, err
	}
	return &localWriter{l: l, path: l.path(key), temp: temp, f: f}, nil
}

func (w *localWriter) write(p []byte) (int, error) { return w.f.Write(p) }

func (w *localWriter) commit() error {
	err := w.f.Sync()
	if cerr := w.f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = w.l.place(w.temp, w.path, w.l.fs.Rename)
	}
	if err != nil {
		_ = w.l.fs.Remove(w.temp)
	}
	return err
}

func (w *localWriter) abort() {
	_ = w.f.Close()
	_ = w.l.fs.Remove(w.temp)
}

// localReader is an open file with the size that it had when it was opened.
type localReader struct {
	*os.File
	size int64
}

func (r localReader) Size() int64 { return r.size }

func (l *local) open(_ context.Context, key string) (Reader, error) {
	f, err := os.Open(l.path(key))
	if err != nil {
		return nil, notFound(err)
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	if info.IsDir() {
		_ = f.Close()
		return nil, notFound(nil)
	}
	return localReader{File: f, size: info.Size()}, nil
}

func (l *local) get(_ context.Context, key string) ([]byte, error) {
	path := l.path(key)
	data, err := os.ReadFile(path)
	if err != nil {
		if info, serr := os.Stat(path); serr == nil && info.IsDir() {
			return nil, notFound(nil)
		}
		return nil, notFound(err)
	}
	return data, nil
}

func (l *local) stat(_ context.Context, key string) (Object, error) {
	info, err := os.Stat(l.path(key))
	if err != nil {
		return Object{}, notFound(err)
	}
	if info.IsDir() {
		return Object{}, notFound(nil)
	}
	return Object{Key: key, Size: info.Size(), ModTime: info.ModTime()}, nil
}
