package readback

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
)

// One notation for the schemas of both formats and of the files, in Iceberg's
// names: `id: long required`, `geo: struct<lat: double, lon: double>`,
// `tags: list<string>`, `labels: map<string, long>`.

// icebergColumns are the columns of an Iceberg schema.
func icebergColumns(fields []iceberg.NestedField) []string {
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i] = f.Name + ": " + icebergType(f.Type)
		if f.Required {
			out[i] += " required"
		}
	}
	return out
}

func icebergType(t iceberg.Type) string {
	switch t := t.(type) {
	case *iceberg.StructType:
		return "struct<" + strings.Join(icebergColumns(t.FieldList), ", ") + ">"
	case *iceberg.ListType:
		return "list<" + element(icebergType(t.Element), t.ElementRequired) + ">"
	case *iceberg.MapType:
		return "map<" + icebergType(t.KeyType) + ", " + element(icebergType(t.ValueType), t.ValueRequired) + ">"
	}
	return strings.ReplaceAll(t.Type(), ", ", ",")
}

func element(t string, required bool) string {
	if required {
		return t + " required"
	}
	return t
}

// deltaStruct is Delta's schema in its JSON form.
type deltaStruct struct {
	Fields []deltaField `json:"fields"`
}

type deltaField struct {
	Name     string          `json:"name"`
	Type     json.RawMessage `json:"type"`
	Nullable bool            `json:"nullable"`
}

func (s deltaStruct) columns() ([]string, error) {
	out := make([]string, len(s.Fields))
	for i, f := range s.Fields {
		t, err := deltaType(f.Type)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		out[i] = f.Name + ": " + element(t, !f.Nullable)
	}
	return out, nil
}

func deltaType(raw json.RawMessage) (string, error) {
	var name string
	if json.Unmarshal(raw, &name) == nil {
		switch name {
		case "integer":
			return "int", nil
		case "timestamp":
			return "timestamptz", nil
		case "timestamp_ntz":
			return "timestamp", nil
		case "string", "long", "float", "double", "boolean", "binary", "date":
			return name, nil
		}
		if strings.HasPrefix(name, "decimal(") {
			return strings.ReplaceAll(name, " ", ""), nil
		}
		return "", fmt.Errorf("no Delta type %q", name)
	}
	var nested struct {
		Type              string          `json:"type"`
		ElementType       json.RawMessage `json:"elementType"`
		ContainsNull      bool            `json:"containsNull"`
		KeyType           json.RawMessage `json:"keyType"`
		ValueType         json.RawMessage `json:"valueType"`
		ValueContainsNull bool            `json:"valueContainsNull"`
		deltaStruct
	}
	if err := json.Unmarshal(raw, &nested); err != nil {
		return "", fmt.Errorf("type %s: %w", raw, err)
	}
	switch nested.Type {
	case "struct":
		cols, err := nested.columns()
		return "struct<" + strings.Join(cols, ", ") + ">", err
	case "array":
		t, err := deltaType(nested.ElementType)
		return "list<" + element(t, !nested.ContainsNull) + ">", err
	case "map":
		k, err := deltaType(nested.KeyType)
		if err != nil {
			return "", err
		}
		v, err := deltaType(nested.ValueType)
		return "map<" + k + ", " + element(v, !nested.ValueContainsNull) + ">", err
	}
	return "", fmt.Errorf("no Delta type %q", nested.Type)
}

// arrowType is the type of a file's column. Parquet says nothing of list
// elements being required that a reader would act on, so only types are told.
func arrowType(t arrow.DataType) string {
	switch t := t.(type) {
	case *arrow.StructType:
		parts := make([]string, t.NumFields())
		for i, f := range t.Fields() {
			parts[i] = f.Name + ": " + arrowType(f.Type)
		}
		return "struct<" + strings.Join(parts, ", ") + ">"
	case *arrow.MapType:
		return "map<" + arrowType(t.KeyType()) + ", " + arrowType(t.ItemType()) + ">"
	case arrow.ListLikeType:
		return "list<" + arrowType(t.Elem()) + ">"
	case *arrow.TimestampType:
		if t.Unit != arrow.Microsecond {
			return t.String()
		}
		if t.TimeZone == "" {
			return "timestamp"
		}
		return "timestamptz"
	case arrow.DecimalType:
		return fmt.Sprintf("decimal(%d,%d)", t.GetPrecision(), t.GetScale())
	}
	switch t.ID() {
	case arrow.BOOL:
		return "boolean"
	case arrow.INT32:
		return "int"
	case arrow.INT64:
		return "long"
	case arrow.FLOAT32:
		return "float"
	case arrow.FLOAT64:
		return "double"
	case arrow.STRING, arrow.LARGE_STRING:
		return "string"
	case arrow.BINARY, arrow.LARGE_BINARY:
		return "binary"
	case arrow.DATE32:
		return "date"
	}
	return t.String()
}
