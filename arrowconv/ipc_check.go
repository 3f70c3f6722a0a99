package arrowconv

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// The IPC reader takes the counts and lengths in a payload's metadata as they
// come and makes room for them, so a damaged one could ask for more memory than
// there is. This file checks them first: every vector in the metadata lies
// within it, every body within the payload (Arrow columnar format,
// "Encapsulated message format" and "IPC file format").

var errMalformed = errors.New("malformed: a length in the metadata leads out of the payload")

const (
	ipcMagic     = "ARROW1"
	continuation = 0xffffffff

	// Kinds of a message's header.
	headerSchema     = 1
	headerDictionary = 2
	headerRecord     = 3
)

// checkIPC checks a stream, or a file, which is a stream between magic words
// with a footer behind it.
func checkIPC(b []byte) error {
	if !bytes.HasPrefix(b, []byte(ipcMagic)) {
		return checkMessages(b)
	}
	if len(b) < 8+4+len(ipcMagic) || !bytes.HasSuffix(b, []byte(ipcMagic)) {
		return errors.New("malformed: the file has no end")
	}
	b = b[:len(b)-len(ipcMagic)]
	n := int(binary.LittleEndian.Uint32(b[len(b)-4:]))
	b = b[:len(b)-4]
	if n > len(b)-8 {
		return errMalformed
	}
	if err := checkFooter(b[len(b)-n:]); err != nil {
		return err
	}
	return checkMessages(b[8 : len(b)-n])
}

// checkMessages checks messages up to the end mark or the end of the text.
func checkMessages(b []byte) error {
	for len(b) >= 4 {
		n := binary.LittleEndian.Uint32(b)
		b = b[4:]
		if n == continuation {
			if len(b) < 4 {
				return errMalformed
			}
			n = binary.LittleEndian.Uint32(b)
			b = b[4:]
		}
		if n == 0 {
			return nil
		}
		if int64(n) > int64(len(b)) {
			return errMalformed
		}
		body, err := checkMessage(b[:n])
		if err != nil {
			return err
		}
		b = b[n:]
		if body < 0 || body > int64(len(b)) {
			return errMalformed
		}
		b = b[body:]
	}
	return nil
}

// flatbuffer reads the tables of a metadata buffer with every offset checked;
// once one leads outside, bad stays set.
type flatbuffer struct {
	b     []byte
	bad   bool
	steps int // tables visited, so that offsets in a circle come to an end
}

func (f *flatbuffer) u32(at int) int {
	if at < 0 || at+4 > len(f.b) {
		f.bad = true
		return 0
	}
	return int(binary.LittleEndian.Uint32(f.b[at:]))
}

func (f *flatbuffer) u16(at int) int {
	if at < 0 || at+2 > len(f.b) {
		f.bad = true
		return 0
	}
	return int(binary.LittleEndian.Uint16(f.b[at:]))
}

// slot gives the place of a table's field, 0 if it is absent.
func (f *flatbuffer) slot(table, n int) int {
	vtable := table - int(int32(f.u32(table)))
	if f.bad || 4+2*n >= f.u16(vtable) {
		return 0
	}
	offset := f.u16(vtable + 4 + 2*n)
	if f.bad || offset == 0 {
		return 0
	}
	return table + offset
}

// table follows a field to its table, 0 if it is absent.
func (f *flatbuffer) table(table, n int) int {
	if f.steps++; f.steps > len(f.b) {
		f.bad = true
	}
	at := f.slot(table, n)
	if at == 0 || f.bad {
		return 0
	}
	return at + f.u32(at)
}

// vector follows a field to its vector of elements of a size in bytes, and
// checks that they are all there.
func (f *flatbuffer) vector(table, n, size int) (at, length int) {
	at = f.slot(table, n)
	if at == 0 || f.bad {
		return 0, 0
	}
	at += f.u32(at)
	length = f.u32(at)
	at += 4
	if f.bad || length*size > len(f.b)-at {
		f.bad = true
		return 0, 0
	}
	return at, length
}

func (f *flatbuffer) err() error {
	if f.bad {
		return errMalformed
	}
	return nil
}

// checkMessage checks a message's metadata and gives the length of its body.
func checkMessage(b []byte) (body int64, err error) {
	f := flatbuffer{b: b}
	root := f.u32(0)
	kind := 0
	if at := f.slot(root, 1); at > 0 && at < len(b) {
		kind = int(b[at])
	}
	header := f.table(root, 2)
	if at := f.slot(root, 3); at > 0 && at+8 <= len(b) {
		body = int64(binary.LittleEndian.Uint64(b[at:]))
	}
	f.vector(root, 4, 4)
	switch kind {
	case headerSchema:
		f.schema(header)
	case headerRecord:
		f.record(header)
	case headerDictionary:
		f.record(f.table(header, 1))
	}
	return body, f.err()
}

func checkFooter(b []byte) error {
	f := flatbuffer{b: b}
	root := f.u32(0)
	f.schema(f.table(root, 1))
	f.vector(root, 2, 24)
	f.vector(root, 3, 24)
	f.vector(root, 4, 4)
	return f.err()
}

func (f *flatbuffer) schema(table int) {
	if f.bad || table == 0 {
		return
	}
	f.fields(table, 1, 0)
	f.vector(table, 2, 4)
	f.vector(table, 3, 8)
}

// maxIPCDepth bounds the nesting of an IPC schema.
const maxIPCDepth = 100

// fields checks a vector of fields and their children.
func (f *flatbuffer) fields(table, n, depth int) {
	if depth > maxIPCDepth {
		f.bad = true
		return
	}
	at, length := f.vector(table, n, 4)
	for i := 0; i < length && !f.bad; i++ {
		if f.steps++; f.steps > len(f.b) {
			f.bad = true
			return
		}
		field := at + 4*i
		field += f.u32(field)
		f.vector(field, 0, 1)
		f.fields(field, 5, depth+1)
		f.vector(field, 6, 4)
	}
}

func (f *flatbuffer) record(table int) {
	if f.bad || table == 0 {
		return
	}
	f.vector(table, 1, 16)
	f.vector(table, 2, 16)
	f.vector(table, 4, 8)
}
