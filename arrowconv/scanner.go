package arrowconv

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// scanner is the fast decoder: it walks a row once, led by the plan, and writes
// into the columns as it goes. It handles what ordinary rows are made of and
// gives up at any surprise (an error, a repeated or unknown name, a spelling it
// does not know); the row is then cut off and the strict decoder has the word.
// So it never refuses a row, and may accept only what the strict decoder
// accepts, with the same values: a fuzz test holds the two equal.
//
// Functions take and return an index into text; gaveUp is the surprise.
//
// Not safe for concurrent use.
type scanner struct {
	text    []byte
	scratch []byte

	// The day read last, since times in a stream are close together.
	day0 uint64
	day1 uint16
	days int
}

const gaveUp = -1

// row appends one row, or reports false and leaves the columns to be truncated.
func (s *scanner) row(root *column, text []byte) bool {
	s.text = text
	i := s.space(0)
	if i >= len(text) || text[i] != '{' {
		return false
	}
	if i = s.object(root, i+1); i < 0 {
		return false
	}
	return s.space(i) == len(text)
}

// space skips white space.
func (s *scanner) space(i int) int {
	for i < len(s.text) {
		switch s.text[i] {
		case ' ', '\n', '\r', '\t':
			i++
		default:
			return i
		}
	}
	return i
}

// label is a member's name with quotes and colon, as it is expected in the text,
// prepared for comparing a word at a time.
type label struct {
	text         string
	word0, mask0 uint64
	word1, mask1 uint64
}

func newLabel(text string) label {
	l := label{text: text}
	var b [16]byte
	copy(b[:], text)
	l.word0, l.mask0 = binary.LittleEndian.Uint64(b[:]), ^uint64(0)
	l.word1, l.mask1 = binary.LittleEndian.Uint64(b[8:]), ^uint64(0)
	if n := len(text); n < 8 {
		l.mask0 = 1<<(8*n) - 1
		l.mask1 = 0
	} else if n < 16 {
		l.mask1 = 1<<(8*(n-8)) - 1
	}
	return l
}

// at tells whether the label stands at b[i:].
func (l *label) at(b []byte, i int) bool {
	if i+16 <= len(b) {
		w0 := binary.LittleEndian.Uint64(b[i:])
		w1 := binary.LittleEndian.Uint64(b[i+8:])
		if (w0^l.word0)&l.mask0|(w1^l.word1)&l.mask1 != 0 {
			return false
		}
		if len(l.text) <= 16 {
			return true
		}
	}
	return i+len(l.text) <= len(b) && string(b[i:i+len(l.text)]) == l.text
}

// object reads the members of an object into a struct column; i is past the
// brace. The member expected next is the one that followed last time.
func (s *scanner) object(c *column, i int) int {
	entry, written, last := c.n, 0, 0
	if i = s.space(i); i < len(s.text) && s.text[i] == '}' {
		i++
		goto done
	}
	for {
		next := c.follows[last]
		tries := 0
		for next != 0 && !c.children[next-1].label.at(s.text, i) {
			if tries++; tries > 3 {
				next = 0
				break
			}
			next = c.follows[next] // it may be left out this time
		}
		if next != 0 {
			i += len(c.children[next-1].label.text)
		} else {
			var known int
			if i, known = s.member(c, i); i < 0 {
				return gaveUp
			}
			if known != 0 {
				c.follows[last] = known
				next = known
			}
		}
		if i < len(s.text) && s.text[i] <= ' ' {
			i = s.space(i)
		}
		if next != 0 {
			child := c.children[next-1]
			if child.n > entry {
				return gaveUp
			}
			if i = s.value(child, i); i < 0 {
				return gaveUp
			}
			written++
			last = next
		} else if i = s.nothing(c, i); i < 0 {
			return gaveUp
		}
		if i < len(s.text) && s.text[i] <= ' ' {
			i = s.space(i)
		}
		if i >= len(s.text) {
			return gaveUp
		}
		if s.text[i] == ',' {
			if i++; i < len(s.text) && s.text[i] <= ' ' {
				i = s.space(i)
			}
			continue
		}
		if s.text[i] == '}' {
			i++
			break
		}
		return gaveUp
	}
done:
	if written < len(c.children) {
		for _, child := range c.children {
			if child.n > entry {
				continue
			}
			if child.required() {
				return gaveUp
			}
			child.putNull()
		}
	}
	c.n++
	return i
}

// member reads a name and its colon the long way; known is the child's place,
// from 1, or 0 for an unknown name.
func (s *scanner) member(c *column, i int) (end, known int) {
	if i >= len(s.text) || s.text[i] != '"' {
		return gaveUp, 0
	}
	from := i + 1
	to, ascii := s.stringEnd(from)
	if to < 0 || !ascii && !utf8.Valid(s.text[from:to]) {
		return gaveUp, 0
	}
	if i = s.space(to + 1); i >= len(s.text) || s.text[i] != ':' {
		return gaveUp, 0
	}
	i++
	name := s.text[from:to]
	at, ok := c.names.exact[string(name)]
	if !ok {
		if at, ok = c.findBytes(name); !ok {
			return i, 0
		}
		// Stored under another name: expect this spelling from now on.
		c.children[at].label = newLabel(string(s.text[from-1:to+1]) + ":")
	}
	return i, at + 1
}

// nothing passes over an unknown member's value if it says nothing.
func (s *scanner) nothing(c *column, i int) int {
	if isNull(s.text, i) {
		return i + 4
	}
	if c.opts.Evolve && i+1 < len(s.text) && (s.text[i] == '{' && s.text[i+1] == '}' || s.text[i] == '[' && s.text[i+1] == ']') {
		return i + 2
	}
	return gaveUp
}

const null = 'n' | 'u'<<8 | 'l'<<16 | 'l'<<24

func isNull(b []byte, i int) bool {
	return i+4 <= len(b) && binary.LittleEndian.Uint32(b[i:]) == null
}

// value reads one value into a column and appends one entry.
func (s *scanner) value(c *column, i int) int {
	if i >= len(s.text) {
		return gaveUp
	}
	first := s.text[i]
	if first == 'n' {
		if !isNull(s.text, i) || c.required() {
			return gaveUp
		}
		c.putNull()
		return i + 4
	}
	switch c.kind {
	case kindString:
		if first == '"' {
			return s.string(c, i+1)
		}
	case kindLong:
		return s.long(c, i)
	case kindDouble:
		return s.double(c, i)
	case kindTimestampTZ, kindTimestamp:
		if first == '"' {
			return s.timestamp(c, i+1)
		}
		return s.number(c, i)
	case kindBool:
		return s.boolean(c, i)
	case kindDecimal:
		if first != '"' {
			return s.decimal(c, i)
		}
		return s.plain(c, i+1)
	case kindStruct:
		if first == '{' {
			return s.object(c, i+1)
		}
	case kindList:
		if first == '[' {
			return s.array(c, i+1)
		}
	case kindMap:
		if first == '{' {
			return s.entries(c, i+1)
		}
	case kindInt, kindFloat, kindDate, kindBinary:
		if first == '"' {
			return s.plain(c, i+1)
		}
		return s.number(c, i)
	}
	return gaveUp
}

func (s *scanner) array(c *column, i int) int {
	elem := c.children[0]
	if i = s.space(i); i < len(s.text) && s.text[i] == ']' {
		c.endEntry(elem.n)
		return i + 1
	}
	for {
		if c.checkRoom() != nil {
			return gaveUp
		}
		if i = s.value(elem, i); i < 0 {
			return gaveUp
		}
		if i < len(s.text) && s.text[i] <= ' ' {
			i = s.space(i)
		}
		if i >= len(s.text) {
			return gaveUp
		}
		switch s.text[i] {
		case ',':
			if i++; i < len(s.text) && s.text[i] <= ' ' {
				i = s.space(i)
			}
		case ']':
			c.endEntry(elem.n)
			return i + 1
		default:
			return gaveUp
		}
	}
}

// entries reads an object into a map column. A repeated key is a surprise,
// which costs a comparison with the keys before it; long maps are left to the
// strict decoder.
func (s *scanner) entries(c *column, i int) int {
	key, value := c.children[0], c.children[1]
	start := c.used()
	if key.kind != kindString {
		return gaveUp
	}
	if i = s.space(i); i < len(s.text) && s.text[i] == '}' {
		c.endEntry(start)
		return i + 1
	}
	for {
		if i >= len(s.text) || s.text[i] != '"' || key.n-start >= maxScannedEntries {
			return gaveUp
		}
		if i = s.string(key, i+1); i < 0 || key.repeats(start) {
			return gaveUp
		}
		if i = s.space(i); i >= len(s.text) || s.text[i] != ':' {
			return gaveUp
		}
		if i = s.value(value, s.space(i+1)); i < 0 {
			return gaveUp
		}
		if i = s.space(i); i >= len(s.text) {
			return gaveUp
		}
		switch s.text[i] {
		case ',':
			i = s.space(i + 1)
		case '}':
			c.endEntry(key.n)
			return i + 1
		default:
			return gaveUp
		}
	}
}

const maxScannedEntries = 32

// repeats tells whether the last of the string column's entries equals one of
// those from start on.
func (c *column) repeats(start int) bool {
	last := c.data[c.offsets[c.n-1]:c.offsets[c.n]]
	for j := start; j < c.n-1; j++ {
		if string(c.data[c.offsets[j]:c.offsets[j+1]]) == string(last) {
			return true
		}
	}
	return false
}

func (s *scanner) boolean(c *column, i int) int {
	b := s.text
	if i+4 <= len(b) && string(b[i:i+4]) == "true" {
		c.putBool(true)
		return i + 4
	}
	if i+5 <= len(b) && string(b[i:i+5]) == "false" {
		c.putBool(false)
		return i + 5
	}
	return gaveUp
}

// Words of eight equal bytes.
const (
	ones    = 0x0101010101010101
	highs   = 0x8080808080808080
	spaces  = 0x20 * ones
	quotes  = '"' * ones
	escapes = '\\' * ones
)

// special finds the first byte at or after i that is a quote, a backslash, a
// control character or not ASCII; len(b) if there is none.
func special(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		q, e := x^quotes, x^escapes
		// A byte's high bit is set where it is below a space, zero in q or e, or
		// high itself; a borrow can only spoil bytes above the first such.
		if m := ((x-spaces)&^x | (q-ones)&^q | (e-ones)&^e | x) & highs; m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return i
		}
	}
	return i
}

// specialASCII is special, but passes over bytes that are not ASCII.
func specialASCII(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		q, e := x^quotes, x^escapes
		if m := ((x-spaces)&^x | (q-ones)&^q | (e-ones)&^e) & highs; m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c < ' ' || c == '"' || c == '\\' {
			return i
		}
	}
	return i
}

// stringEnd finds the closing quote of a string without escapes; ascii tells
// whether it is. Anything else is a surprise.
func (s *scanner) stringEnd(i int) (end int, ascii bool) {
	b := s.text
	ascii = true
	i = special(b, i)
	if i < len(b) && b[i] >= utf8.RuneSelf {
		ascii = false
		i = specialASCII(b, i)
	}
	if i >= len(b) || b[i] != '"' {
		return gaveUp, ascii
	}
	return i, ascii
}

// string reads a string into a string column; i is past the quote.
func (s *scanner) string(c *column, i int) int {
	b := s.text
	end := special(b, i)
	if end >= len(b) {
		return gaveUp
	}
	if b[end] != '"' {
		return s.hardString(c, i, end)
	}
	at := int(c.offsets[c.n])
	to := at + end - i
	if to > len(c.data) {
		c.room(end - i)
	}
	copy(c.data[at:to], b[i:end])
	c.endEntry(to)
	return end + 1
}

// hardString is string where one byte at least is special.
func (s *scanner) hardString(c *column, i, end int) int {
	b := s.text
	s.scratch = s.scratch[:0]
	ascii := true
	for {
		if b[end] >= utf8.RuneSelf {
			ascii = false
			if end = specialASCII(b, end); end >= len(b) {
				return gaveUp
			}
		}
		s.scratch = append(s.scratch, b[i:end]...)
		if b[end] == '"' {
			break
		}
		if b[end] != '\\' {
			return gaveUp
		}
		if i = s.escape(end + 1); i < 0 {
			return gaveUp
		}
		if ascii {
			end = special(b, i)
		} else {
			end = specialASCII(b, i)
		}
		if end >= len(b) {
			return gaveUp
		}
	}
	// Escapes give whole characters, so the text is valid if the parts are.
	if !ascii && !utf8.Valid(s.scratch) {
		return gaveUp
	}
	c.putBytes(s.scratch)
	return end + 1
}

// escape appends what the escape past a backslash stands for to scratch.
func (s *scanner) escape(i int) int {
	b := s.text
	if i >= len(b) {
		return gaveUp
	}
	c := b[i]
	switch c {
	case '"', '\\', '/':
	case 'n':
		c = '\n'
	case 't':
		c = '\t'
	case 'r':
		c = '\r'
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'u':
		r, ok := hex4(b, i+1)
		if !ok {
			return gaveUp
		}
		i += 5
		if r >= 0xd800 && r < 0xe000 {
			low, ok := rune(0), false
			if r < 0xdc00 && i+1 < len(b) && b[i] == '\\' && b[i+1] == 'u' {
				low, ok = hex4(b, i+2)
			}
			if !ok || low < 0xdc00 || low > 0xdfff {
				return gaveUp // a lone surrogate
			}
			r = 0x10000 + (r-0xd800)<<10 + low - 0xdc00
			i += 6
		}
		s.scratch = utf8.AppendRune(s.scratch, r)
		return i
	default:
		return gaveUp
	}
	s.scratch = append(s.scratch, c)
	return i + 1
}

func hex4(b []byte, i int) (rune, bool) {
	if i+4 > len(b) {
		return 0, false
	}
	var r rune
	for _, c := range b[i : i+4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// plain reads a string without escapes into a column of another type.
func (s *scanner) plain(c *column, i int) int {
	end, ascii := s.stringEnd(i)
	if end < 0 || !ascii || c.putString(s.text[i:end]) != nil {
		return gaveUp
	}
	return end + 1
}

// timestamp reads an RFC 3339 string.
func (s *scanner) timestamp(c *column, i int) int {
	b := s.text
	end := special(b, i)
	if end >= len(b) || b[end] != '"' || end-i < 19 {
		return gaveUp
	}
	t := b[i:end]
	day0, day1 := binary.LittleEndian.Uint64(t), binary.LittleEndian.Uint16(t[8:])
	if day0 != s.day0 || day1 != s.day1 {
		days, ok := parseDay(t)
		if !ok {
			return gaveUp
		}
		s.day0, s.day1, s.days = day0, day1, days
	}
	v, problem := parseClock(t, s.days, c.kind == kindTimestampTZ, c.truncates())
	if problem != timeOK {
		return gaveUp
	}
	c.putInt64(v)
	return end + 1
}

// number reads any number by the rules of values.go.
func (s *scanner) number(c *column, i int) int {
	end := numberEnd(s.text, i)
	if end < 0 || c.putNumber(s.text[i:end]) != nil {
		return gaveUp
	}
	return end
}

// long reads an integer of at most 18 digits at once, others the long way.
func (s *scanner) long(c *column, i int) int {
	v, end, ok := quickInt(s.text, i)
	if !ok {
		return s.number(c, i)
	}
	c.putInt64(v)
	return end
}

func (s *scanner) double(c *column, i int) int {
	v, end, ok := quickDouble(s.text, i)
	if !ok {
		return s.number(c, i)
	}
	c.putFloat64(v)
	return end
}

func (s *scanner) decimal(c *column, i int) int {
	v, end, ok := quickDecimal(s.text, i, c.precision, c.scale)
	if !ok {
		return s.number(c, i)
	}
	c.putDecimal(v)
	return end
}
