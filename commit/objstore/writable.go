package objstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// CheckWritable reports why objects below key cannot be written: on local disk, a
// folder on the way that is a file or that this user may not write to. Nothing is
// made. On other stores it knows nothing and returns nil.
func (s *Store) CheckWritable(_ context.Context, key string) error {
	for {
		name, local := s.LocalPath(key)
		if !local {
			return nil
		}
		info, err := os.Stat(name)
		switch {
		case err == nil && !info.IsDir():
			return fmt.Errorf("%s is a file where a folder is needed; move it away, or choose another name", name)
		case err == nil:
			if err := unix.Access(name, unix.W_OK|unix.X_OK); err != nil {
				return fmt.Errorf("the folder %s cannot be written to by this user; change its permissions, or choose another name: %w", name, err)
			}
			return nil
		case !isNotExist(err) && !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, fs.ErrPermission):
			return err
		}
		if key == "" {
			return nil
		}
		if key = path.Dir(key); key == "." {
			key = ""
		}
	}
}
