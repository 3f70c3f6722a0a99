package arrowconv

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// kind is the set of column types that rows can be written to.
type kind uint8

const (
	kindUnsupported kind = iota // a column of another engine's that only holds NULL here
	kindBool
	kindInt
	kindLong
	kindFloat
	kindDouble
	kindDecimal
	kindDate
	kindTimestamp   // microseconds, no zone
	kindTimestampTZ // microseconds since the epoch, UTC
	kindString
	kindBinary
	kindStruct
	kindList
	kindMap
)

// Names of the fields inside nested types, as Iceberg's Arrow mapping has them.
const (
	elementName = "element"
	keyName     = "key"
	valueName   = "value"
	docKey      = "doc" // metadata key of a column's comment
)

var (
	typeTimestamp   = &arrow.TimestampType{Unit: arrow.Microsecond}
	typeTimestampTZ = &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
)

// kindOf tells how a column of an Arrow type is written; kindUnsupported for
// types that have no place in this project's tables.
func kindOf(t arrow.DataType) kind {
	switch t := t.(type) {
	case *arrow.BooleanType:
		return kindBool
	case *arrow.Int32Type:
		return kindInt
	case *arrow.Int64Type:
		return kindLong
	case *arrow.Float32Type:
		return kindFloat
	case *arrow.Float64Type:
		return kindDouble
	case *arrow.Decimal128Type:
		return kindDecimal
	case *arrow.Date32Type:
		return kindDate
	case *arrow.TimestampType:
		if t.Unit != arrow.Microsecond {
			return kindUnsupported
		}
		if t.TimeZone == "" {
			return kindTimestamp
		}
		return kindTimestampTZ
	case *arrow.StringType:
		return kindString
	case *arrow.BinaryType:
		return kindBinary
	case *arrow.StructType:
		return kindStruct
	case *arrow.ListType:
		return kindList
	case *arrow.MapType:
		return kindMap
	}
	return kindUnsupported
}

// typeName is the type in the words of the contract (and of Iceberg).
func typeName(t arrow.DataType) string {
	switch t := t.(type) {
	case *arrow.BooleanType:
		return "boolean"
	case *arrow.Int32Type:
		return "int"
	case *arrow.Int64Type:
		return "long"
	case *arrow.Float32Type:
		return "float"
	case *arrow.Float64Type:
		return "double"
	case *arrow.Decimal128Type:
		return fmt.Sprintf("decimal(%d,%d)", t.Precision, t.Scale)
	case *arrow.Date32Type:
		return "date"
	case *arrow.TimestampType:
		if t.Unit == arrow.Microsecond && t.TimeZone == "" {
			return "timestamp"
		} else if t.Unit == arrow.Microsecond {
			return "timestamptz"
		}
	case *arrow.StringType:
		return "string"
	case *arrow.BinaryType:
		return "binary"
	case *arrow.StructType:
		var b strings.Builder
		b.WriteString("struct<")
		for i, f := range t.Fields() {
			if i == 4 {
				b.WriteString(", …")
				break
			}
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(f.Name + ": " + typeName(f.Type))
		}
		return b.String() + ">"
	case *arrow.ListType:
		return "list<" + typeName(t.Elem()) + ">"
	case *arrow.MapType:
		return "map<" + typeName(t.KeyType()) + ", " + typeName(t.ItemType()) + ">"
	}
	return t.String()
}

// ParseType reads a type in the words of the contract, such as decimal(10,2),
// list<long> or struct<lat: double, lon: double>. The error names what may
// stand there, or what to use instead of a type that Delta lacks.
func ParseType(s string) (arrow.DataType, error) {
	p := typeParser{rest: s}
	t, err := p.parse()
	if err == nil && strings.TrimSpace(p.rest) != "" {
		err = fmt.Errorf("unexpected %q after it", p.rest)
	}
	if err != nil {
		return nil, fmt.Errorf("type %q: %w", s, err)
	}
	return t, nil
}

const typeChoice = "boolean, int, long, float, double, decimal(p,s), date, timestamp, timestamptz, string, binary, struct, list or map"

// typeParser is a recursive descent over the spelling of a type.
type typeParser struct{ rest string }

func (p *typeParser) word() string {
	p.rest = strings.TrimLeft(p.rest, " ")
	i := strings.IndexAny(p.rest, "<>(),: ")
	if i < 0 {
		i = len(p.rest)
	}
	w := p.rest[:i]
	p.rest = p.rest[i:]
	return w
}

func (p *typeParser) accept(s string) bool {
	p.rest = strings.TrimLeft(p.rest, " ")
	if !strings.HasPrefix(p.rest, s) {
		return false
	}
	p.rest = p.rest[len(s):]
	return true
}

func (p *typeParser) expect(s string) error {
	if !p.accept(s) {
		return fmt.Errorf("expected %q before %q", s, p.rest)
	}
	return nil
}

func (p *typeParser) parse() (arrow.DataType, error) {
	name := p.word()
	switch strings.ToLower(name) {
	case "boolean":
		return arrow.FixedWidthTypes.Boolean, nil
	case "int":
		return arrow.PrimitiveTypes.Int32, nil
	case "long":
		return arrow.PrimitiveTypes.Int64, nil
	case "float":
		return arrow.PrimitiveTypes.Float32, nil
	case "double":
		return arrow.PrimitiveTypes.Float64, nil
	case "decimal":
		return p.decimal()
	case "date":
		return arrow.FixedWidthTypes.Date32, nil
	case "timestamp":
		return typeTimestamp, nil
	case "timestamptz":
		return typeTimestampTZ, nil
	case "string":
		return arrow.BinaryTypes.String, nil
	case "binary":
		return arrow.BinaryTypes.Binary, nil
	case "list":
		if err := p.expect("<"); err != nil {
			return nil, err
		}
		elem, err := p.parse()
		if err != nil {
			return nil, err
		}
		return listOf(elem), p.expect(">")
	case "map":
		return p.mapType()
	case "struct":
		return p.structType()
	case "time":
		return nil, errors.New("no time of day in Delta: use string, or long with the unit in its name")
	case "uuid":
		return nil, errors.New("no uuid in Delta: use string")
	case "fixed":
		return nil, errors.New("no fixed in Delta: use binary")
	case "timestamp_ns":
		return nil, errors.New("no nanoseconds in Delta: use timestamp")
	case "timestamptz_ns":
		return nil, errors.New("no nanoseconds in Delta: use timestamptz")
	}
	return nil, fmt.Errorf("unknown type %q: it may be %s", name, typeChoice)
}

func (p *typeParser) decimal() (arrow.DataType, error) {
	if err := p.expect("("); err != nil {
		return nil, fmt.Errorf("a decimal needs its digits, as in decimal(10,2): %w", err)
	}
	precision, err := strconv.Atoi(p.word())
	if err != nil {
		return nil, fmt.Errorf("a decimal needs its digits, as in decimal(10,2)")
	}
	if err := p.expect(","); err != nil {
		return nil, err
	}
	scale, err := strconv.Atoi(p.word())
	if err != nil {
		return nil, fmt.Errorf("a decimal needs its digits, as in decimal(10,2)")
	}
	if precision < 1 || precision > 38 || scale < 0 || scale > precision {
		return nil, fmt.Errorf("decimal(%d,%d): 1 to 38 digits, of which 0 to all after the point", precision, scale)
	}
	return &arrow.Decimal128Type{Precision: int32(precision), Scale: int32(scale)}, p.expect(")")
}

func (p *typeParser) mapType() (arrow.DataType, error) {
	if err := p.expect("<"); err != nil {
		return nil, err
	}
	key, err := p.parse()
	if err != nil {
		return nil, err
	}
	if err := p.expect(","); err != nil {
		return nil, err
	}
	value, err := p.parse()
	if err != nil {
		return nil, err
	}
	return mapOf(key, value), p.expect(">")
}

func (p *typeParser) structType() (arrow.DataType, error) {
	if err := p.expect("<"); err != nil {
		return nil, err
	}
	var fields []arrow.Field
	for {
		name := p.word()
		if err := p.expect(":"); err != nil {
			return nil, err
		}
		t, err := p.parse()
		if err != nil {
			return nil, err
		}
		fields = append(fields, arrow.Field{Name: name, Type: t, Nullable: true})
		if p.accept(">") {
			return arrow.StructOf(fields...), nil
		}
		if err := p.expect(","); err != nil {
			return nil, err
		}
	}
}

func listOf(elem arrow.DataType) arrow.DataType {
	return arrow.ListOfField(arrow.Field{Name: elementName, Type: elem, Nullable: true})
}

func mapOf(key, value arrow.DataType) arrow.DataType {
	return arrow.MapOfFields(
		arrow.Field{Name: keyName, Type: key},
		arrow.Field{Name: valueName, Type: value, Nullable: true})
}
