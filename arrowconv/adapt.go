package arrowconv

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// adapt makes an Arrow array one of the plan's field: the same buffers where
// the layouts are equal, else a copy by value in which every value is exact. It
// gives the entry refused, if one is. parent is the struct that holds the array,
// whose NULLs excuse NULLs here; nil at the top.
func (c *converter) adapt(a arrow.Array, f *field, parent arrow.Array) (data arrow.ArrayData, at int, r *refusal) {
	if f.required() && a.NullN() > 0 {
		for i := range a.Len() {
			if a.IsNull(i) && (parent == nil || parent.IsValid(i)) {
				return nil, i, &refusal{expected: typeName(f.Type) + ", required", got: "null", reason: ReasonNull}
			}
		}
	}
	if a.DataType().ID() == arrow.NULL {
		return nullData(f.Type, a.Len(), c.mem), 0, nil
	}
	if a.Data().Offset() != 0 || !sameLayout(a.DataType(), f) {
		return c.copied(a, f, parent)
	}
	buffers := a.Data().Buffers()
	switch a := a.(type) {
	case *array.Struct:
		return c.adaptStruct(a, f)
	case *array.Map:
		return c.adaptMap(a, f)
	case *array.List:
		if err := a.ValidateFull(); err != nil {
			return nil, 0, c.unreadable(err)
		}
		child, at, r := c.adapt(a.ListValues(), f.children[0], nil)
		if r != nil {
			entry, inner := entryOf(a.Offsets(), at)
			return nil, entry, r.index(inner)
		}
		defer child.Release()
		return array.NewData(f.Type, a.Len(), buffers, []arrow.ArrayData{child}, a.NullN(), 0), 0, nil
	case *array.String:
		if err := a.ValidateFull(); err != nil {
			for i := range a.Len() {
				if a.IsValid(i) && !utf8.ValidString(a.Value(i)) {
					return nil, i, notUTF8(f, a.Value(i))
				}
			}
			return nil, 0, c.unreadable(err)
		}
	case *array.Binary:
		if err := a.ValidateFull(); err != nil {
			return nil, 0, c.unreadable(err)
		}
	case *array.Timestamp:
		for i, v := range a.Values() {
			if (int64(v) < minMicros || int64(v) > maxMicros) && a.IsValid(i) {
				return nil, i, &refusal{expected: typeName(f.Type), got: fmt.Sprint(int64(v)), reason: ReasonOutOfRange, hint: "outside the years 0000 to 9999"}
			}
		}
	case *array.Decimal128:
		for i, v := range a.Values() {
			if !v.FitsInPrecision(f.precision) && a.IsValid(i) {
				return nil, i, &refusal{expected: typeName(f.Type), got: a.ValueStr(i), reason: ReasonOutOfRange}
			}
		}
	}
	return array.NewData(f.Type, a.Len(), buffers, nil, a.NullN(), 0), 0, nil
}

func notUTF8(f *field, v string) *refusal {
	return &refusal{expected: typeName(f.Type), got: fmt.Sprintf("%+q", clip(v)), reason: ReasonInvalidUTF8, hint: "not UTF-8"}
}

// sameLayout tells whether an array of the type has the buffers of the field's.
func sameLayout(t arrow.DataType, f *field) bool {
	if kindOf(t) != f.kind || f.kind == kindUnsupported {
		return false
	}
	if d, ok := t.(*arrow.Decimal128Type); ok {
		return d.Scale == f.scale
	}
	return true
}

// entryOf finds the list entry that holds a child, and its place there.
func entryOf(offsets []int32, child int) (entry, inner int) {
	for i := 0; i+1 < len(offsets); i++ {
		if child < int(offsets[i+1]) {
			return i, child - int(offsets[i])
		}
	}
	return 0, child
}

func (c *converter) adaptStruct(a *array.Struct, f *field) (arrow.ArrayData, int, *refusal) {
	from, r := sources(f, a.DataType().(*arrow.StructType).Fields())
	if r != nil {
		return nil, 0, r
	}
	children := make([]arrow.ArrayData, 0, len(from))
	defer func() {
		for _, d := range children {
			d.Release()
		}
	}()
	for j, child := range f.children {
		var data arrow.ArrayData
		if from[j] < 0 {
			if child.required() && a.NullN() < a.Len() {
				return nil, firstValid(a), (&refusal{expected: typeName(child.Type) + ", required", got: "nothing", reason: ReasonNull}).field(child.Name)
			}
			data = nullData(child.Type, a.Len(), c.mem)
		} else {
			var at int
			var r *refusal
			if data, at, r = c.adapt(a.Field(from[j]), child, a); r != nil {
				return nil, at, r.field(child.Name)
			}
		}
		children = append(children, data)
	}
	return array.NewData(f.Type, a.Len(), a.Data().Buffers()[:1:1], children, a.NullN(), 0), 0, nil
}

func firstValid(a arrow.Array) int {
	for i := range a.Len() {
		if a.IsValid(i) {
			return i
		}
	}
	return 0
}

func (c *converter) adaptMap(a *array.Map, f *field) (arrow.ArrayData, int, *refusal) {
	if err := a.ValidateFull(); err != nil {
		return nil, 0, c.unreadable(err)
	}
	keys, at, r := c.adapt(a.Keys(), f.children[0], nil)
	if r != nil {
		entry, inner := entryOf(a.Offsets(), at)
		return nil, entry, r.index(inner)
	}
	defer keys.Release()
	items, at, r := c.adapt(a.Items(), f.children[1], nil)
	if r != nil {
		entry, inner := entryOf(a.Offsets(), at)
		return nil, entry, r.index(inner)
	}
	defer items.Release()
	entries := array.NewData(f.Type.(*arrow.MapType).Elem(), keys.Len(), []*memory.Buffer{nil}, []arrow.ArrayData{keys, items}, 0, 0)
	defer entries.Release()
	return array.NewData(f.Type, a.Len(), a.Data().Buffers(), []arrow.ArrayData{entries}, a.NullN(), 0), 0, nil
}

// copied makes the array by value.
func (c *converter) copied(a arrow.Array, f *field, parent arrow.Array) (arrow.ArrayData, int, *refusal) {
	col := newColumn(f, &c.cells)
	col.reserve(a.Len(), c.mem)
	for i := range a.Len() {
		if a.IsNull(i) {
			if col.required() && parent != nil {
				col.putFiller() // below a NULL
				continue
			}
			if r := col.putNothing(); r != nil {
				col.drop()
				return nil, i, r
			}
			continue
		}
		c.cells = 0
		if r := c.copyValue(col, a, i); r != nil {
			col.drop()
			return nil, i, r
		}
	}
	return col.finish(), 0, nil
}

// copyEntry appends one entry of an array, which may be NULL.
func (c *converter) copyEntry(col *column, a arrow.Array, i int) *refusal {
	if a.IsNull(i) {
		return col.putNothing()
	}
	return c.copyValue(col, a, i)
}

// copyValue appends one value that is not NULL.
func (c *converter) copyValue(col *column, a arrow.Array, i int) *refusal {
	d := &c.structured
	switch a := a.(type) {
	case *array.Dictionary:
		return c.copyEntry(col, a.Dictionary(), a.GetValueIndex(i))
	case *array.Boolean:
		return col.putBoolean(a.Value(i))
	case *array.Int8:
		return d.integer(col, int64(a.Value(i)))
	case *array.Int16:
		return d.integer(col, int64(a.Value(i)))
	case *array.Int32:
		return d.integer(col, int64(a.Value(i)))
	case *array.Int64:
		return d.integer(col, a.Value(i))
	case *array.Uint8:
		return d.integer(col, int64(a.Value(i)))
	case *array.Uint16:
		return d.integer(col, int64(a.Value(i)))
	case *array.Uint32:
		return d.integer(col, int64(a.Value(i)))
	case *array.Uint64:
		return d.value(col, a.Value(i))
	case *array.Float32:
		return d.double(col, float64(a.Value(i)), 32)
	case *array.Float64:
		return d.double(col, a.Value(i), 64)
	case *array.Date32:
		if col.kind == kindDate {
			col.putInt32(int32(a.Value(i)))
			return nil
		}
	case *array.Timestamp:
		return copyTimestamp(col, a, i)
	case *array.Binary:
		return d.value(col, a.Value(i))
	case *array.LargeBinary:
		return d.value(col, a.Value(i))
	case *array.BinaryView:
		return d.value(col, a.Value(i))
	case *array.List, *array.LargeList, *array.FixedSizeList:
		if col.kind == kindList {
			return c.copyList(col, a.(array.ListLike), i)
		}
	case *array.Map:
		if col.kind == kindMap {
			return c.copyMap(col, a, i)
		}
	case *array.Struct:
		if col.kind == kindStruct {
			return c.copyStruct(col, a, i)
		}
	case stringArray:
		if v := a.Value(i); col.kind == kindString {
			if !utf8.ValidString(v) {
				return notUTF8(col.field, v)
			}
			col.putText(v)
			return nil
		}
	case *array.Decimal128, *array.Decimal256, *array.Decimal64, *array.Decimal32:
		if text := a.ValueStr(i); isNumber(bytesOf(text)) { // exact, and in JSON's grammar
			return col.putNumber(bytesOf(text))
		}
	}
	if col.storesText() {
		if text, err := json.Marshal(a.GetOneForMarshal(i)); err == nil {
			col.putBytes(text)
			return nil
		}
	}
	return col.mismatch(clip(a.ValueStr(i))+" of type "+a.DataType().String(), "")
}

type stringArray interface {
	arrow.Array
	Value(int) string
}

// copyTimestamp appends a time of any unit, if the column's unit holds it.
func copyTimestamp(col *column, a *array.Timestamp, i int) *refusal {
	t := a.DataType().(*arrow.TimestampType)
	switch {
	case col.kind == kindTimestampTZ && t.TimeZone == "":
		return col.refuseTime(a.ValueStr(i), timeNoZone)
	case col.kind == kindTimestamp && t.TimeZone != "":
		return col.refuseTime(a.ValueStr(i), timeHasZone)
	case col.kind != kindTimestamp && col.kind != kindTimestampTZ:
		return col.mismatch(a.ValueStr(i)+" of type "+t.String(), "")
	}
	v := int64(a.Value(i))
	micros, problem := v, timeOK
	switch t.Unit {
	case arrow.Second:
		micros = v * 1_000_000
		if v < minMicros/1_000_000 || v > maxMicros/1_000_000 {
			problem = timeRange
		}
	case arrow.Millisecond:
		micros = v * 1000
		if v < minMicros/1000 || v > maxMicros/1000 {
			problem = timeRange
		}
	case arrow.Nanosecond:
		micros = v / 1000
		if rest := v % 1000; rest != 0 {
			if !col.truncates() {
				problem = timeFiner
			}
			if rest < 0 {
				micros-- // towards the past, as everywhere
			}
		}
	}
	if problem == timeOK && (micros < minMicros || micros > maxMicros) {
		problem = timeRange
	}
	if problem != timeOK {
		return col.refuseTime(a.ValueStr(i), problem)
	}
	col.putInt64(micros)
	return nil
}

func (c *converter) copyList(col *column, a array.ListLike, i int) *refusal {
	from, to := a.ValueOffsets(i)
	elem := col.children[0]
	for j := from; j < to; j++ {
		if r := col.checkRoom(); r != nil {
			return r
		}
		if r := c.copyEntry(elem, a.ListValues(), int(j)); r != nil {
			return r.index(int(j - from))
		}
	}
	col.endEntry(elem.n)
	return nil
}

func (c *converter) copyMap(col *column, a *array.Map, i int) *refusal {
	from, to := a.ValueOffsets(i)
	for j := from; j < to; j++ {
		if r := col.checkRoom(); r != nil {
			return r
		}
		if r := c.copyEntry(col.children[0], a.Keys(), int(j)); r != nil {
			return r.index(int(j - from))
		}
		if r := c.copyEntry(col.children[1], a.Items(), int(j)); r != nil {
			return r.index(int(j - from))
		}
	}
	col.endEntry(col.children[0].n)
	return nil
}

func (c *converter) copyStruct(col *column, a *array.Struct, i int) *refusal {
	entry := col.n
	from, r := sources(col.field, a.DataType().(*arrow.StructType).Fields())
	if r != nil {
		return r
	}
	for j, child := range col.children {
		if from[j] < 0 {
			continue
		}
		if r := c.copyEntry(child, a.Field(from[j]), i); r != nil {
			return r.field(child.Name)
		}
	}
	return col.endStruct(entry)
}
