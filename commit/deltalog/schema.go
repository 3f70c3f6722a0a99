package deltalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/apache/iceberg-go"
)

// Delta's schema JSON (Delta protocol, "Schema Serialization Format"). A type is
// a name, or one of the structures below.
type (
	deltaStruct struct {
		Type   string       `json:"type"` // struct
		Fields []deltaField `json:"fields"`
	}
	deltaField struct {
		Name     string        `json:"name"`
		Type     any           `json:"type"`
		Nullable bool          `json:"nullable"`
		Metadata fieldMetadata `json:"metadata"`
	}
	fieldMetadata struct {
		Comment string `json:"comment,omitempty"`
		// The Iceberg field id. Delta gives it no meaning; the mirror reads it to tell
		// a renamed or replaced column from one that stayed.
		FieldID *int `json:"iceberg.fieldId,omitempty"`
		// Set under column mapping only (Delta protocol, "Column Mapping"). The name in
		// the data files is Iceberg's own, so the mapping maps each name to itself: what
		// it brings is that names may hold what Delta otherwise forbids.
		MappingID    *int   `json:"delta.columnMapping.id,omitempty"`
		PhysicalName string `json:"delta.columnMapping.physicalName,omitempty"`
	}
	deltaArray struct {
		Type         string `json:"type"` // array
		ElementType  any    `json:"elementType"`
		ContainsNull bool   `json:"containsNull"`
	}
	deltaMap struct {
		Type              string `json:"type"` // map
		KeyType           any    `json:"keyType"`
		ValueType         any    `json:"valueType"`
		ValueContainsNull bool   `json:"valueContainsNull"`
	}
)

// tableSchema is an Iceberg schema in Delta's form.
type tableSchema struct {
	JSON         string
	TimestampNtz bool // some column is a timestamp without zone
	Mapped       bool // under column mapping
	MaxID        int  // highest field id
	root         deltaStruct
	stats        []statNode
	iceberg      *iceberg.Schema
}

// SchemaError says which column Delta cannot hold, and why.
type SchemaError struct {
	Path   string // dotted
	Reason string
}

func (e *SchemaError) Error() string { return fmt.Sprintf("column %s: %s", e.Path, e.Reason) }

// CheckSchema tells whether a Delta table without column mapping can hold the
// schema. The error is a [*SchemaError].
func CheckSchema(s *iceberg.Schema) error {
	_, err := convertSchema(s, false)
	return err
}

// convertSchema is the Delta form of an Iceberg schema: same order, same names.
// The error is a [*SchemaError].
func convertSchema(s *iceberg.Schema, mapped bool) (*tableSchema, error) {
	c := &schemaConverter{mapped: mapped}
	fields, err := c.fields(nil, s.Fields(), true)
	if err != nil {
		return nil, err
	}
	root := deltaStruct{Type: "struct", Fields: fields}
	text, err := marshalPlain(root)
	if err != nil {
		return nil, err
	}
	return &tableSchema{JSON: text, TimestampNtz: c.ntz, Mapped: mapped, MaxID: s.HighestFieldID(), root: root, stats: statsPlan(s), iceberg: s}, nil
}

type schemaConverter struct{ mapped, ntz bool }

// fields converts the fields of one struct. present says that the struct itself
// is never NULL: only then may a required field be declared as not nullable. In
// Iceberg, required means "where the struct is there"; Delta takes it for a
// constraint on every row, and has none inside of arrays and maps.
func (c *schemaConverter) fields(path []string, in []iceberg.NestedField, present bool) ([]deltaField, error) {
	out := make([]deltaField, 0, len(in))
	seen := make(map[string]string, len(in))
	for _, f := range in {
		at := append(path[:len(path):len(path)], f.Name)
		if err := checkName(at, f.Name, c.mapped); err != nil {
			return nil, err
		}
		low := strings.ToLower(f.Name)
		if other, ok := seen[low]; ok {
			return nil, &SchemaError{strings.Join(at, "."), fmt.Sprintf("differs from column %q only in case; Delta's names are the same without regard to case", other)}
		}
		seen[low] = f.Name
		if f.InitialDefault != nil {
			return nil, &SchemaError{strings.Join(at, "."), "has an initial default value, which Delta would read as NULL from older files"}
		}
		typ, err := c.typ(at, f.Type, present && f.Required)
		if err != nil {
			return nil, err
		}
		id := f.ID
		md := fieldMetadata{Comment: f.Doc, FieldID: &id}
		if c.mapped {
			md.MappingID, md.PhysicalName = &id, f.Name
		}
		out = append(out, deltaField{Name: f.Name, Type: typ, Nullable: !f.Required || !present, Metadata: md})
	}
	return out, nil
}

// checkName refuses what a Delta table cannot hold, without column mapping or with it.
func checkName(path []string, name string, mapped bool) error {
	if name == "" {
		return &SchemaError{strings.Join(path, "."), "has an empty name"}
	}
	for _, r := range name {
		if mapped && unicode.IsControl(r) {
			return &SchemaError{strings.Join(path, "."), fmt.Sprintf("has %q in its name, which Delta never holds", r)}
		}
		if !mapped && (unicode.IsControl(r) || strings.ContainsRune(" ,;{}()=", r)) {
			return &SchemaError{strings.Join(path, "."), fmt.Sprintf("has %q in its name, which Delta holds only with column mapping", r)}
		}
	}
	return nil
}

func (c *schemaConverter) typ(path []string, t iceberg.Type, present bool) (any, error) {
	switch t := t.(type) {
	case iceberg.BooleanType:
		return "boolean", nil
	case iceberg.Int32Type:
		return "integer", nil
	case iceberg.Int64Type:
		return "long", nil
	case iceberg.Float32Type:
		return "float", nil
	case iceberg.Float64Type:
		return "double", nil
	case iceberg.DecimalType:
		return fmt.Sprintf("decimal(%d,%d)", t.Precision(), t.Scale()), nil
	case iceberg.DateType:
		return "date", nil
	case iceberg.TimestampTzType:
		return "timestamp", nil
	case iceberg.TimestampType:
		c.ntz = true
		return "timestamp_ntz", nil
	case iceberg.StringType:
		return "string", nil
	case iceberg.BinaryType:
		return "binary", nil
	case *iceberg.StructType:
		fields, err := c.fields(path, t.FieldList, present)
		if err != nil {
			return nil, err
		}
		return deltaStruct{Type: "struct", Fields: fields}, nil
	case *iceberg.ListType:
		elem, err := c.typ(append(path[:len(path):len(path)], "element"), t.Element, false)
		if err != nil {
			return nil, err
		}
		return deltaArray{Type: "array", ElementType: elem, ContainsNull: !t.ElementRequired}, nil
	case *iceberg.MapType:
		key, err := c.typ(append(path[:len(path):len(path)], "key"), t.KeyType, false)
		if err != nil {
			return nil, err
		}
		value, err := c.typ(append(path[:len(path):len(path)], "value"), t.ValueType, false)
		if err != nil {
			return nil, err
		}
		return deltaMap{Type: "map", KeyType: key, ValueType: value, ValueContainsNull: !t.ValueRequired}, nil
	default:
		return nil, &SchemaError{strings.Join(path, "."), fmt.Sprintf("Delta has no type for %s", t)}
	}
}

// parseSchema reads a Delta schema back.
func parseSchema(text string) (deltaStruct, error) {
	var raw rawStruct
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		return deltaStruct{}, fmt.Errorf("the Delta schema is not readable: %w", err)
	}
	return raw.resolve()
}

type rawStruct struct {
	Type   string `json:"type"`
	Fields []struct {
		Name     string          `json:"name"`
		Type     json.RawMessage `json:"type"`
		Nullable bool            `json:"nullable"`
		Metadata json.RawMessage `json:"metadata"`
	} `json:"fields"`
}

func (r rawStruct) resolve() (deltaStruct, error) {
	out := deltaStruct{Type: "struct", Fields: make([]deltaField, 0, len(r.Fields))}
	for _, f := range r.Fields {
		typ, err := parseType(f.Type)
		if err != nil {
			return deltaStruct{}, fmt.Errorf("column %s: %w", f.Name, err)
		}
		var md fieldMetadata
		// Somebody else's metadata may hold anything under these keys.
		if json.Unmarshal(f.Metadata, &md) != nil {
			md = fieldMetadata{}
		}
		out.Fields = append(out.Fields, deltaField{Name: f.Name, Type: typ, Nullable: f.Nullable, Metadata: md})
	}
	return out, nil
}

func parseType(text json.RawMessage) (any, error) {
	var name string
	if json.Unmarshal(text, &name) == nil {
		return name, nil
	}
	var kind struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(text, &kind); err != nil {
		return nil, err
	}
	switch kind.Type {
	case "struct":
		var raw rawStruct
		if err := json.Unmarshal(text, &raw); err != nil {
			return nil, err
		}
		return raw.resolve()
	case "array":
		var raw struct {
			ElementType  json.RawMessage `json:"elementType"`
			ContainsNull bool            `json:"containsNull"`
		}
		if err := json.Unmarshal(text, &raw); err != nil {
			return nil, err
		}
		elem, err := parseType(raw.ElementType)
		return deltaArray{Type: "array", ElementType: elem, ContainsNull: raw.ContainsNull}, err
	case "map":
		var raw struct {
			KeyType           json.RawMessage `json:"keyType"`
			ValueType         json.RawMessage `json:"valueType"`
			ValueContainsNull bool            `json:"valueContainsNull"`
		}
		if err := json.Unmarshal(text, &raw); err != nil {
			return nil, err
		}
		key, err := parseType(raw.KeyType)
		if err != nil {
			return nil, err
		}
		value, err := parseType(raw.ValueType)
		return deltaMap{Type: "map", KeyType: key, ValueType: value, ValueContainsNull: raw.ValueContainsNull}, err
	default:
		return nil, fmt.Errorf("unknown type %q", kind.Type)
	}
}

// marshalPlain is JSON without the escapes that are meant for HTML.
func marshalPlain(v any) (string, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", err
	}
	return strings.TrimSuffix(buf.String(), "\n"), nil
}
