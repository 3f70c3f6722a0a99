package output

import (
	"fmt"
	"strings"
)

// maxName bounds one name; file systems allow 255 bytes, and we add suffixes to none.
const maxName = 200

// reservedNames are the folders of a table, in any case: some file systems do
// not tell `Delta` from `delta`.
var reservedNames = map[string]bool{"iceberg": true, "delta": true, "data": true, "metadata": true}

// tableIdent is the identifier of a table from the (interpolated) fields
// `namespace`, whose dots separate levels, and `table`. An error names the field,
// what it holds and what it may hold: such a name could leave its folder, or
// collide with what lies in it.
func tableIdent(namespace, table string) ([]string, error) {
	levels := strings.Split(namespace, ".")
	for _, level := range levels {
		if why := badName(level, false); why != "" {
			return nil, &nameError{Field: "namespace", Value: namespace, Why: why}
		}
	}
	if why := badName(table, true); why != "" {
		return nil, &nameError{Field: "table", Value: table, Why: why}
	}
	return append(levels, table), nil
}

// nameError says why a row's table cannot be written to.
type nameError struct{ Field, Value, Why string }

func (e *nameError) Error() string {
	return fmt.Sprintf("%s: %q is no name for a folder: %s; a name holds letters, digits, `_`, `-` and `.`, begins with a letter or a digit, and is none of iceberg, delta, data, metadata",
		e.Field, e.Value, e.Why)
}

// badName says what is wrong with one name, or nothing.
func badName(s string, dots bool) string {
	switch {
	case s == "":
		return "it is empty"
	case len(s) > maxName:
		return fmt.Sprintf("it is longer than %d bytes", maxName)
	case reservedNames[strings.ToLower(s)]:
		return "it is the name of a folder inside of tables"
	case strings.Contains(s, ".."), strings.HasSuffix(s, "."):
		return "it has dots that are not between other characters"
	}
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		switch {
		case letter:
		case i == 0:
			return fmt.Sprintf("it begins with %q", r)
		case r == '_' || r == '-' || (r == '.' && dots):
		default:
			return fmt.Sprintf("it holds %q", r)
		}
	}
	return ""
}
