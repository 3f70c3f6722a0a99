package objstore

import (
	"fmt"
	"strings"
)

// stagingDir is the folder of temporary files at the root of a local warehouse.
const stagingDir = ".staging"

// CheckKey reports why key cannot name an object of a warehouse: it would be empty,
// absolute, lead outside, or into the temporary files. The error wraps [ErrKey].
func CheckKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: it is empty", ErrKey)
	case strings.HasPrefix(key, "/"):
		return fmt.Errorf("%w: %q is absolute; keys are relative to the warehouse", ErrKey, key)
	case strings.ContainsAny(key, "\x00\\"):
		return fmt.Errorf("%w: %q holds a NUL or a backslash", ErrKey, key)
	}
	first := true
	for segment := range strings.SplitSeq(key, "/") {
		switch segment {
		case "":
			return fmt.Errorf("%w: %q has an empty segment", ErrKey, key)
		case ".", "..":
			return fmt.Errorf("%w: %q has the segment %q, which could lead out of its folder", ErrKey, key, segment)
		case stagingDir:
			if first {
				return fmt.Errorf("%w: %q lies among the temporary files", ErrKey, key)
			}
		}
		first = false
	}
	return nil
}

// CheckNewKey is [CheckKey] for a key to be written, which may hold only
// [A-Za-z0-9._=/-]: such a key is one string as a path and as a URI.
func CheckNewKey(key string) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	for i := range len(key) {
		if !keyByte(key[i]) {
			return fmt.Errorf("%w: %q holds %q; allowed are A-Z a-z 0-9 . _ = - and / between segments", ErrKey, key, rune(key[i]))
		}
	}
	return nil
}

func keyByte(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return c == '.' || c == '_' || c == '=' || c == '-' || c == '/'
}

// checkPrefix is CheckKey for a listing prefix, which may be empty, end with "/" or
// stop in the middle of a segment.
func checkPrefix(prefix string) error {
	p := strings.TrimSuffix(prefix, "/")
	if p == "" {
		if prefix == "" {
			return nil
		}
		return fmt.Errorf("%w: prefix %q is absolute", ErrKey, prefix)
	}
	return CheckKey(p)
}
