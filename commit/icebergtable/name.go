package icebergtable

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/iceberg-go/catalog"
)

// maxName is the longest name in bytes: what file systems take for a folder.
const maxName = 255

// reserved are folders that a table's own layout uses: a table of such a name could
// come to lie inside another one.
var reserved = []string{"iceberg", "delta", "data", "metadata"}

// CheckName reports why name cannot be a table or one level of a namespace. Names
// are folders in the warehouse and parts of object keys: they hold only
// [A-Za-z0-9._=-], do not begin with "_" or "." (hidden from engines, or "..") and
// are not iceberg, delta, data or metadata, in any case. The error wraps
// [catalog.ErrInvalidIdentifier].
func CheckName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: a name is empty", catalog.ErrInvalidIdentifier)
	case len(name) > maxName:
		return fmt.Errorf("%w: name %.40q... is %d bytes long; at most %d are possible", catalog.ErrInvalidIdentifier, name, len(name), maxName)
	case name[0] == '.' || name[0] == '_':
		return fmt.Errorf("%w: name %q begins with %q; names begin with a letter, a digit, \"=\" or \"-\"", catalog.ErrInvalidIdentifier, name, name[:1])
	}
	for _, r := range name {
		if !nameRune(r) {
			return fmt.Errorf("%w: name %q holds %q; allowed are A-Z a-z 0-9 . _ = -", catalog.ErrInvalidIdentifier, name, r)
		}
	}
	if slices.ContainsFunc(reserved, func(r string) bool { return strings.EqualFold(r, name) }) {
		return fmt.Errorf("%w: name %q is reserved for a folder inside tables; choose another", catalog.ErrInvalidIdentifier, name)
	}
	return nil
}

func nameRune(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return true
	}
	return r == '.' || r == '_' || r == '=' || r == '-'
}

// CheckNamespace reports why levels cannot be a namespace: there is none, or one is
// no name or holds a dot (dots separate levels wherever a namespace is one string).
func CheckNamespace(levels []string) error {
	if len(levels) == 0 {
		return fmt.Errorf("%w: a namespace has at least one level", catalog.ErrInvalidIdentifier)
	}
	for _, level := range levels {
		if err := CheckName(level); err != nil {
			return fmt.Errorf("namespace %q: %w", strings.Join(levels, "."), err)
		}
		if strings.Contains(level, ".") {
			return fmt.Errorf("namespace %q: %w: level %q holds a dot; dots separate levels", strings.Join(levels, "."), catalog.ErrInvalidIdentifier, level)
		}
	}
	return nil
}

// ValidateIdent reports why ident cannot name a table: one or more levels of
// namespace, then the table's own name.
func ValidateIdent(ident []string) error {
	if len(ident) < 2 {
		return fmt.Errorf("%w: table %q needs a namespace of at least one level", catalog.ErrInvalidIdentifier, strings.Join(ident, "."))
	}
	if err := CheckNamespace(ident[:len(ident)-1]); err != nil {
		return err
	}
	if err := CheckName(ident[len(ident)-1]); err != nil {
		return fmt.Errorf("table %q: %w", ident[len(ident)-1], err)
	}
	return nil
}

// TableKey is the table's folder in the warehouse. It is one to one with the
// identifier, for one that [ValidateIdent] accepts.
func TableKey(ident []string) string { return strings.Join(ident, "/") }

// IcebergKey is the key of the table's Iceberg location, which holds metadata only.
func IcebergKey(ident []string) string { return TableKey(ident) + "/iceberg" }

// DeltaKey is the key of the table's Delta root, which holds data files and _delta_log.
func DeltaKey(ident []string) string { return TableKey(ident) + "/delta" }

func metadataKey(ident []string) string { return IcebergKey(ident) + "/metadata" }

// shown is a table's name in messages.
func shown(ident []string) string { return strings.Join(ident, ".") }
