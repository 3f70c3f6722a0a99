package objstore

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

// place is where a warehouse lies, read from its URL without any I/O.
type place struct {
	scheme string // "file", "mem", "s3", ...
	dir    string // absolute folder; scheme "file" only
	host   string // bucket, container or name; not for "file"
	prefix string // within the bucket, no slash at either end; not for "file"
	query  string // options for the bucket's driver; never part of a location
}

// parsePlace reads a warehouse URL: a folder, file:///..., or scheme://bucket/prefix.
func parsePlace(raw string) (place, error) {
	if strings.TrimSpace(raw) == "" {
		return place{}, errors.New("warehouse: it is empty; give a folder or a URL such as file:///data/lakehouse")
	}
	scheme, rest, isURL := strings.Cut(raw, "://")
	if !isURL {
		if after, ok := strings.CutPrefix(raw, "file:"); ok {
			scheme, rest, isURL = "file", after, true
		}
	}
	switch {
	case !isURL:
		return localPlace(raw)
	case scheme == "file":
		path, err := url.PathUnescape(strings.TrimPrefix(rest, "localhost"))
		if err != nil {
			return place{}, fmt.Errorf("warehouse %q: %w", raw, err)
		}
		if !strings.HasPrefix(path, "/") {
			return place{}, fmt.Errorf("warehouse %q: a file URL needs an absolute path, as in file:///data/lakehouse", raw)
		}
		return localPlace(path)
	}
	u, err := url.Parse(raw)
	if err != nil {
		return place{}, fmt.Errorf("warehouse %q: %w", raw, err)
	}
	if u.Host == "" {
		return place{}, fmt.Errorf("warehouse %q: no bucket is named; write %s://bucket/prefix", raw, scheme)
	}
	prefix := strings.Trim(u.Path, "/")
	if prefix != "" {
		if err := CheckNewKey(prefix); err != nil {
			return place{}, fmt.Errorf("warehouse %q: its prefix: %w", raw, err)
		}
	}
	return place{scheme: u.Scheme, host: u.Host, prefix: prefix, query: u.RawQuery}, nil
}

func localPlace(path string) (place, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return place{}, fmt.Errorf("warehouse %q: %w", path, err)
	}
	if abs == filepath.Dir(abs) {
		return place{}, fmt.Errorf("warehouse %q: the root of a file system cannot be a warehouse; name a folder in it", path)
	}
	if !utf8.ValidString(abs) {
		return place{}, fmt.Errorf("warehouse %q: the path is not valid UTF-8, which table metadata must be", path)
	}
	for _, r := range filepath.ToSlash(abs) {
		// Each of these is syntax to some reader: URI parsing ("%", "?", "#"),
		// globbing ("*", "[", "]", "?"), quoting (the double quote), another system's
		// separator ("\").
		if unicode.IsControl(r) || strings.ContainsRune(`%?#*[]"\`, r) {
			return place{}, fmt.Errorf("warehouse %q: the path %s holds %q, which engines read in different ways; choose a folder without it", path, abs, r)
		}
	}
	return place{scheme: "file", dir: abs}, nil
}

// root is the location of the warehouse itself, without a trailing slash.
func (p place) root() string {
	if p.scheme == "file" {
		return localRoot(p.dir)
	}
	root := p.scheme + "://" + p.host
	if p.prefix != "" {
		root += "/" + p.prefix
	}
	return root
}

// localRoot is the one place that decides how a local folder is written in table
// metadata. The characters stay as they are; the package comment says why.
func localRoot(dir string) string {
	slash := filepath.ToSlash(dir)
	if !strings.HasPrefix(slash, "/") {
		slash = "/" + slash // a drive letter
	}
	return "file://" + slash
}

// keyIn is the key that location names under root, or false where it names
// nothing in there. Besides the canonical spelling it takes the ones that other
// tools give to a local path: "file:/x", "file://localhost/x", "/x", and the
// root (only) percent-encoded. The key itself is never decoded: an engine that
// names a folder "a%20b" means these very characters.
func keyIn(root, location string) (string, bool) {
	if dir, ok := strings.CutPrefix(root, "file://"); ok {
		location = localPart(location)
		if location == "" {
			return "", false
		}
		root = dir
		if !within(root, location) {
			root = (&url.URL{Path: dir}).EscapedPath()
		}
	}
	if !within(root, location) {
		return "", false
	}
	key := strings.Trim(location[len(root):], "/")
	if key != "" && CheckKey(key) != nil {
		return "", false
	}
	return key, true
}

func within(root, location string) bool {
	rest, ok := strings.CutPrefix(location, root)
	return ok && (rest == "" || rest[0] == '/')
}

// localPart is the path of a local location, or "" for another scheme's.
func localPart(location string) string {
	if rest, ok := strings.CutPrefix(location, "file:"); ok {
		if after, ok := strings.CutPrefix(rest, "//"); ok {
			rest = strings.TrimPrefix(after, "localhost")
		}
		location = rest
	}
	if !strings.HasPrefix(location, "/") {
		return ""
	}
	return location
}
