package icebergtable

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore"
)

// leftover is what a create that was cut off can leave where the catalog itself is
// elsewhere: the first metadata file, which nothing refers to.
var leftover = regexp.MustCompile(`^iceberg/metadata/00000-[0-9a-f-]{36}\.metadata\.json$`)

// checkFree reports why a table cannot be made as ident: its folder holds something
// already, or one of the folders above it is a table's. It wraps [ErrOccupied].
func checkFree(ctx context.Context, store *objstore.Store, ident []string, isTable func(ident []string) (bool, error)) error {
	for i := 2; i < len(ident); i++ {
		is, err := isTable(ident[:i])
		if err != nil {
			return err
		}
		if is {
			return fmt.Errorf("%w: %s cannot be made inside of the table %s; choose another namespace", ErrOccupied, shown(ident), shown(ident[:i]))
		}
	}
	prefix := TableKey(ident) + "/"
	for o, err := range store.List(ctx, prefix, "") {
		if err != nil {
			return err
		}
		if rel := strings.TrimPrefix(o.Key, prefix); !leftover.MatchString(rel) {
			return fmt.Errorf("%w: %s cannot be made in %s, which already holds %s and is no table of this catalog; choose another name, or move that folder away",
				ErrOccupied, shown(ident), folderName(store, TableKey(ident)), rel)
		}
	}
	return nil
}

// folderName is a folder for a message to a person.
func folderName(store *objstore.Store, key string) string {
	if p, ok := store.LocalPath(key); ok {
		return p
	}
	return store.Location(key)
}
