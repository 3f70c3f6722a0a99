package deltalog

import "fmt"

// A reader of Delta resolves columns by name, one of Iceberg by field id. The
// two read the same from every file as long as a name keeps its id and its type,
// and as long as a column that a file holds stays in the schema (a name given
// anew would bring old values back).

// evolves says why files written under old do not read the same by name under
// next; "" if next only adds to old.
func evolves(old, next deltaStruct) string { return evolvesFields("", old.Fields, next.Fields) }

func evolvesFields(prefix string, old, next []deltaField) string {
	byName := make(map[string]deltaField, len(next))
	byID := make(map[int]string, len(next))
	for _, f := range next {
		byName[f.Name] = f
		if f.Metadata.FieldID != nil {
			byID[*f.Metadata.FieldID] = f.Name
		}
	}
	for _, o := range old {
		path := prefix + o.Name
		if o.Metadata.FieldID == nil {
			return fmt.Sprintf("it is not known which Iceberg column %s is", path)
		}
		id := *o.Metadata.FieldID
		n, ok := byName[o.Name]
		switch {
		case ok && n.Metadata.FieldID != nil && *n.Metadata.FieldID == id:
			if why := evolvesType(path, o.Type, n.Type); why != "" {
				return why
			}
		case ok:
			return fmt.Sprintf("column %s is not the column that it was: it was dropped and made anew", path)
		case byID[id] != "":
			return fmt.Sprintf("column %s was renamed to %s", path, prefix+byID[id])
		default:
			return fmt.Sprintf("column %s was dropped", path)
		}
	}
	return ""
}

func evolvesType(path string, old, next any) string {
	switch o := old.(type) {
	case string:
		if n, ok := next.(string); !ok || n != o {
			return fmt.Sprintf("the type of column %s was changed from %s to %s", path, typeName(old), typeName(next))
		}
		return ""
	case deltaStruct:
		if n, ok := next.(deltaStruct); ok {
			return evolvesFields(path+".", o.Fields, n.Fields)
		}
	case deltaArray:
		if n, ok := next.(deltaArray); ok {
			return evolvesType(path+".element", o.ElementType, n.ElementType)
		}
	case deltaMap:
		if n, ok := next.(deltaMap); ok {
			if why := evolvesType(path+".key", o.KeyType, n.KeyType); why != "" {
				return why
			}
			return evolvesType(path+".value", o.ValueType, n.ValueType)
		}
	}
	return fmt.Sprintf("the type of column %s was changed from %s to %s", path, typeName(old), typeName(next))
}

func typeName(t any) string {
	switch t := t.(type) {
	case string:
		return t
	case deltaStruct:
		return "struct"
	case deltaArray:
		return "array"
	case deltaMap:
		return "map"
	default:
		return fmt.Sprint(t)
	}
}
