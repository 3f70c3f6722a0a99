package output

import (
	"fmt"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/managed-lakehouse/managed-lakehouse/arrowconv"
)

// columnFields is the config of one declared column. Nested columns have the same
// fields; the specification cannot say so, hence the free form of fields, element,
// key and value.
func columnFields() []*service.ConfigField {
	return []*service.ConfigField{
		service.NewStringField(fName).
			Description("The column's name."),
		service.NewStringField(fType).
			Description("`boolean`, `int`, `long`, `float`, `double`, `decimal(p,s)`, `date`, `timestamp`, `timestamptz`, `string`, `binary`, or a `struct`, `list` or `map` of these: spelled out (`list<long>`, `struct<lat: double, lon: double>`, `map<string, long>`), or described by `fields`, `element`, `key` and `value`.").
			Examples("long", "decimal(10,2)", "timestamptz", "list<string>"),
		service.NewBoolField(fRequired).
			Description("Whether a row without a value is refused.").Default(false),
		service.NewStringAnnotatedEnumField(fUnit, map[string]string{
			"s": "Seconds.", "ms": "Milliseconds.", "us": "Microseconds.", "ns": "Nanoseconds.", "d": "Days, for a date.",
		}).Description("What a number in a column of times counts, since 1970. Without it a number is refused there.").Optional().LintRule(enumLint("unit", []string{"s", "ms", "us", "ns", "d"})),
		service.NewStringField(fDoc).
			Description("A comment that is stored with the column.").Default(""),
		service.NewAnyListField(fFields).
			Description("The columns of a `struct`, described as these are.").Optional(),
		service.NewAnyField(fElement).
			Description("The elements of a `list`: an object with `type` and so on.").Optional(),
		service.NewAnyField(fKey).
			Description("The keys of a `map`; strings where it is left out.").Optional(),
		service.NewAnyField(fValue).
			Description("The values of a `map`.").Optional(),
	}
}

// Names of the config fields of nested columns.
const (
	fFields  = "fields"
	fElement = "element"
	fKey     = "key"
	fValue   = "value"
)

// parseColumns reads the declared columns of a config. Their types are checked by
// the first plan that is made from them.
func parseColumns(conf *service.ParsedConfig) ([]arrowconv.Column, error) {
	list, err := conf.FieldObjectList(fSchema)
	if err != nil {
		return nil, err
	}
	out := make([]arrowconv.Column, 0, len(list))
	for i, c := range list {
		raw, err := c.FieldAny()
		if err != nil {
			return nil, err
		}
		col, err := columnOf(fmt.Sprintf("%s[%d]", fSchema, i), raw, true)
		if err != nil {
			return nil, err
		}
		out = append(out, *col)
	}
	return out, nil
}

// columnOf reads one column; where is the path of its field.
func columnOf(where string, v any, named bool) (*arrowconv.Column, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("field %s: it must be an object that describes a column, got %v", where, v)
	}
	col := &arrowconv.Column{}
	var err error
	text := func(name string, into *string) {
		if v, ok := m[name]; ok && v != nil && err == nil {
			if *into, ok = v.(string); !ok {
				err = fmt.Errorf("field %s.%s: it must be text, got %v", where, name, v)
			}
		}
	}
	text(fName, &col.Name)
	text(fType, &col.Type)
	text(fUnit, &col.Unit)
	text(fDoc, &col.Doc)
	if err != nil {
		return nil, err
	}
	sub := func(name string) (*arrowconv.Column, error) {
		v, ok := m[name]
		if !ok || v == nil {
			return nil, nil
		}
		return columnOf(where+"."+name, v, false)
	}
	for k, v := range m {
		switch k {
		case fName, fType, fUnit, fDoc:
		case fRequired:
			if col.Required, ok = v.(bool); !ok {
				return nil, fmt.Errorf("field %s.%s: it must be true or false, got %v", where, k, v)
			}
		case fFields:
			list, ok := v.([]any)
			if !ok && v != nil {
				return nil, fmt.Errorf("field %s.%s: it must be a list of columns, got %v", where, k, v)
			}
			for i, f := range list {
				c, err := columnOf(fmt.Sprintf("%s.%s[%d]", where, k, i), f, true)
				if err != nil {
					return nil, err
				}
				col.Fields = append(col.Fields, *c)
			}
		case fElement, fKey, fValue:
		default:
			return nil, fmt.Errorf("field %s.%s: it is not known; a column has name, type, required, unit, doc, fields, element, key, value", where, k)
		}
	}
	if named && col.Name == "" {
		return nil, fmt.Errorf("field %s.name: it is missing; each column needs a name", where)
	}
	if col.Type == "" {
		return nil, fmt.Errorf("field %s.type: it is missing; it may be %s", where, columnTypes)
	}
	if col.Element, err = sub(fElement); err != nil {
		return nil, err
	}
	if col.Key, err = sub(fKey); err != nil {
		return nil, err
	}
	if col.Value, err = sub(fValue); err != nil {
		return nil, err
	}
	return col, nil
}

const columnTypes = "boolean, int, long, float, double, decimal(p,s), date, timestamp, timestamptz, string, binary, struct, list, map"
