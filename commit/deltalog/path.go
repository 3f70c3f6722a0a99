package deltalog

import (
	"net/url"
	"strings"
)

// relativePath is the path of a file below root, both raw locations as Iceberg
// writes them. ok is false where the file lies elsewhere.
func relativePath(root, location string) (rel string, ok bool) {
	root, location = plainLocation(root), plainLocation(location)
	rel, ok = strings.CutPrefix(location, strings.TrimSuffix(root, "/")+"/")
	return rel, ok && rel != ""
}

// plainLocation gives the spellings of one place one form: file:///x, file:/x
// and /x; s3, s3a and s3n.
func plainLocation(s string) string {
	scheme, rest, ok := strings.Cut(s, ":")
	if !ok || strings.ContainsAny(scheme, "/.") {
		return s
	}
	switch strings.ToLower(scheme) {
	case "file":
		return "/" + strings.TrimLeft(rest, "/")
	case "s3a", "s3n":
		return "s3:" + rest
	case "abfs", "wasb":
		return strings.ToLower(scheme) + "s:" + rest
	default:
		return s
	}
}

// encodePath makes a raw relative path the URI that Delta wants. Paths of
// letters, digits and ._=/- stay as they are.
func encodePath(raw string) string {
	plain := true
	for i := range len(raw) {
		if !plainByte(raw[i]) {
			plain = false
			break
		}
	}
	if plain {
		return raw
	}
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(raw) {
		if c := raw[i]; plainByte(c) {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}

func plainByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '.' || c == '_' || c == '=' || c == '/' || c == '-' || c == '~'
}

// decodePath is the raw relative path of an action's path, whatever form its
// writer chose. A path that is no URI is taken as it is.
func decodePath(root, path string) string {
	raw, err := url.PathUnescape(path)
	if err != nil {
		raw = path
	}
	if rel, ok := relativePath(root, raw); ok {
		return rel
	}
	return raw
}
