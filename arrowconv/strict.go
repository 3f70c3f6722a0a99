package arrowconv

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// strict is the reference decoder: it reads a row token by token with jsontext,
// which refuses whatever RFC 8259 does not allow, invalid UTF-8, lone
// surrogates and duplicate names. The fast scanner must do as it does.
//
// Not safe for concurrent use.
type strict struct {
	dec     *jsontext.Decoder
	in      bytes.Buffer
	scratch []byte
	namebuf []byte
	// unknown is set when the row has a field that the plan lacks, and a value
	// in it; what is to be done is found out by the observer.
	unknown bool
}

var (
	uniqueNames   = []jsontext.Options{jsontext.AllowDuplicateNames(false), jsontext.AllowInvalidUTF8(false)}
	repeatedNames = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(false)}
)

func (d *strict) start(text []byte, opts []jsontext.Options) {
	d.in = *bytes.NewBuffer(text)
	if d.dec == nil {
		d.dec = jsontext.NewDecoder(&d.in, opts...)
		return
	}
	d.dec.Reset(&d.in, opts...)
}

// row appends one row to the columns of root, all of it or nothing. It returns
// the text that was decoded in the end: text itself, or a copy without repeated
// names.
func (d *strict) row(root *column, text []byte) ([]byte, *refusal) {
	rows := root.n
	err := d.object(root, text)
	if err == nil {
		return text, nil
	}
	root.truncate(rows)
	// The error may lie in a member that a later one replaces, or may hide that
	// the text is no JSON: look at the whole text first.
	repeated, r := d.check(text)
	if r != nil {
		return text, r
	}
	if repeated {
		text = withoutRepeated(text)
		*root.cells = 0
		if err = d.object(root, text); err == nil {
			return text, nil
		}
		root.truncate(rows)
	}
	if r, ok := errors.AsType[*refusal](err); ok {
		return text, r
	}
	return text, &refusal{got: err.Error(), expected: "JSON", reason: ReasonNotJSON}
}

// object decodes text as one row.
func (d *strict) object(root *column, text []byte) error {
	d.unknown = false
	d.start(text, uniqueNames)
	if err := d.members(root); err != nil {
		return err
	}
	if _, err := d.dec.ReadToken(); !errors.Is(err, io.EOF) {
		if err == nil {
			err = errors.New("more than one value")
		}
		return err
	}
	return nil
}

// check tells what is wrong with a text as a whole, and whether names repeat.
func (d *strict) check(text []byte) (repeated bool, r *refusal) {
	if len(bytes.Trim(text, " \t\r\n")) == 0 {
		return false, &refusal{got: "an empty payload", expected: "a JSON object", reason: ReasonEmpty}
	}
	d.start(text, repeatedNames)
	first := d.dec.PeekKind()
	err := d.dec.SkipValue()
	if err == nil {
		if _, err = d.dec.ReadToken(); errors.Is(err, io.EOF) {
			err = nil
		} else if err == nil {
			err = errors.New("more than one value")
		}
	}
	if err != nil {
		return false, notJSON(text, err)
	}
	if first != '{' {
		return false, &refusal{got: clip(bytes.Trim(text, " \t\r\n")), expected: "a JSON object", reason: ReasonNotObject}
	}
	d.start(text, uniqueNames)
	return d.dec.SkipValue() != nil, nil
}

func notJSON(text []byte, err error) *refusal {
	r := &refusal{expected: "a JSON object", got: clip(bytes.Trim(text, " \t\r\n")), reason: ReasonNotJSON}
	if !utf8.Valid(text) {
		r.reason = ReasonInvalidUTF8
		r.got = fmt.Sprintf("%+q", r.got)
		r.hint = "not UTF-8"
		return r
	}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		r.hint = fmt.Sprintf("%v at byte %d", syntax.Err, syntax.ByteOffset)
	} else {
		r.hint = err.Error()
	}
	return r
}

// members decodes an object into a struct's fields and appends one entry.
func (d *strict) members(c *column) error {
	tok, err := d.dec.ReadToken()
	if err != nil {
		return err
	}
	if tok.Kind() != '{' {
		return &refusal{expected: "a JSON object", reason: ReasonNotObject}
	}
	entry := c.n
	for d.dec.PeekKind() != '}' {
		name, err := d.name()
		if err != nil {
			return err
		}
		at, ok := c.findBytes(name)
		if !ok {
			if err := d.unknownField(c, name); err != nil {
				return err
			}
			continue
		}
		child := c.children[at]
		if child.n > entry {
			return collision(string(name), child.Name)
		}
		if err := d.value(child); err != nil {
			return inField(err, child.Name)
		}
	}
	if _, err := d.dec.ReadToken(); err != nil {
		return err
	}
	if r := c.endStruct(entry); r != nil {
		return r
	}
	return nil
}

// endStruct fills the fields that the object lacks with NULL.
func (c *column) endStruct(entry int) *refusal {
	for _, child := range c.children {
		if child.n > entry {
			continue
		}
		if r := child.putNothing(); r != nil {
			r.got = "nothing"
			return r.field(child.Name)
		}
	}
	c.n++
	return nil
}

func collision(name, stored string) *refusal {
	r := &refusal{expected: "one field for each column", got: "two that are both stored as " + quote(stored), reason: ReasonNameClash}
	return r.field(name)
}

// name reads a member's name; it is valid until the next one.
func (d *strict) name() ([]byte, error) {
	raw, err := d.dec.ReadValue()
	if err != nil {
		return nil, err
	}
	d.namebuf, err = unquote(d.namebuf[:0], raw)
	return d.namebuf, err
}

// unquote appends the text of a JSON string that has been checked.
func unquote(dst, raw []byte) ([]byte, error) {
	if len(raw) < 2 || raw[0] != '"' {
		return dst, errors.New("expected a string")
	}
	if inner := raw[1 : len(raw)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return append(dst, inner...), nil
	}
	return jsontext.AppendUnquote(dst, raw)
}

// unknownField passes over a field that the plan lacks. NULL says nothing.
func (d *strict) unknownField(c *column, name []byte) error {
	if d.dec.PeekKind() == 'n' {
		return d.dec.SkipValue()
	}
	d.unknown = true
	if !c.opts.Evolve {
		return c.unknownName(string(name))
	}
	return d.dec.SkipValue()
}

// unknownName refuses a field that has no column where none may be added.
func (c *column) unknownName(name string) *refusal {
	r := &refusal{expected: "a column of the table", got: "a field that it lacks", reason: ReasonUnknownField, hint: "schema_evolution.enabled is off"}
	if i, ok := c.names.folded[fold(name)]; ok {
		r = &refusal{expected: "names that differ in more than case", got: fmt.Sprintf("%q beside column %q", clip(name), c.children[i].Name), reason: ReasonNameClash}
	}
	return r.field(name)
}

// value decodes one value into a column and appends one entry.
func (d *strict) value(c *column) error {
	kind := d.dec.PeekKind()
	switch kind {
	case '{':
		switch c.kind {
		case kindStruct:
			return d.members(c)
		case kindMap:
			return d.entries(c)
		}
		return d.text(c)
	case '[':
		if c.kind == kindList {
			return d.elements(c)
		}
		return d.text(c)
	}
	raw, err := d.dec.ReadValue()
	if err != nil {
		return err
	}
	var r *refusal
	switch kind {
	case 'n':
		r = c.putNothing()
	case 't', 'f':
		r = c.putBoolean(kind == 't')
	case '"':
		s := raw[1 : len(raw)-1]
		if bytes.IndexByte(s, '\\') >= 0 {
			if d.scratch, err = jsontext.AppendUnquote(d.scratch[:0], raw); err != nil {
				return err
			}
			s = d.scratch
		}
		r = c.putString(s)
	default:
		r = c.putNumber(raw)
	}
	if r != nil {
		return r
	}
	return nil
}

// text stores an object or array as its JSON text, where the column may.
func (d *strict) text(c *column) error {
	raw, err := d.dec.ReadValue()
	if err != nil {
		return err
	}
	if !c.storesText() {
		return c.mismatch(clip(raw), c.textHint())
	}
	d.scratch = append(d.scratch[:0], raw...)
	v := jsontext.Value(d.scratch)
	if err := v.Compact(); err != nil {
		return err
	}
	d.scratch = v
	c.putBytes(v)
	return nil
}

// elements decodes an array into a list column.
func (d *strict) elements(c *column) error {
	if _, err := d.dec.ReadToken(); err != nil {
		return err
	}
	elem := c.children[0]
	start := c.used()
	for d.dec.PeekKind() != ']' {
		if r := c.checkRoom(); r != nil {
			return r
		}
		if err := d.value(elem); err != nil {
			return atIndex(err, elem.n-start)
		}
	}
	if _, err := d.dec.ReadToken(); err != nil {
		return err
	}
	c.endEntry(elem.n)
	return nil
}

// entries decodes an object into a map column.
func (d *strict) entries(c *column) error {
	if _, err := d.dec.ReadToken(); err != nil {
		return err
	}
	key, value := c.children[0], c.children[1]
	for d.dec.PeekKind() != '}' {
		if r := c.checkRoom(); r != nil {
			return r
		}
		name, err := d.name()
		if err != nil {
			return err
		}
		if r := key.putKey(name); r != nil {
			return r.key(string(name))
		}
		at := string(name) // the value may hold names of its own
		if err := d.value(value); err != nil {
			if r, ok := errors.AsType[*refusal](err); ok {
				return r.key(at)
			}
			return err
		}
	}
	if _, err := d.dec.ReadToken(); err != nil {
		return err
	}
	c.endEntry(key.n)
	return nil
}

// putKey appends a map's key, which JSON writes as a string whatever its type.
func (c *column) putKey(name []byte) *refusal {
	switch c.kind {
	case kindLong, kindInt, kindDouble, kindFloat:
		if isNumber(name) {
			return c.putNumber(name)
		}
		return c.mismatch(quote(name), "")
	}
	return c.putString(name)
}

// maxCells bounds the leaf values in the lists and maps of one row, so that a
// small payload such as [{},{},…] cannot claim memory without bound.
const maxCells = 16 << 20

// checkRoom counts one more entry of a list or map.
func (c *column) checkRoom() *refusal {
	if *c.cells += c.width; *c.cells <= maxCells {
		return nil
	}
	return &refusal{expected: fmt.Sprintf("at most %d values in the lists of a row", maxCells), got: "more", reason: ReasonTooLarge}
}

func inField(err error, name string) error {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.field(name)
	}
	return err
}

func atIndex(err error, i int) error {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.index(i)
	}
	return err
}
