package arrowconv

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// withoutRepeated gives valid JSON without the object members that a later
// member of the same name replaces, at every depth: only the last counts, and
// nothing is left of the earlier ones.
func withoutRepeated(text []byte) []byte {
	f := repeatFinder{dec: jsontext.NewDecoder(bytes.NewReader(text), repeatedNames...)}
	if err := f.value(); err != nil {
		return text // not reached: the caller has checked the text
	}
	slices.SortFunc(f.replaced, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	out := make([]byte, 0, len(text))
	at := 0
	for _, s := range f.replaced {
		if s.from >= at { // not within one that is gone already
			out = append(out, text[at:s.from]...)
		}
		at = max(at, s.to)
	}
	return append(out, text[at:]...)
}

// span is a stretch of the text, in bytes.
type span struct{ from, to int }

// repeatFinder collects the members to be left out, each from its name to the
// name that follows (a replaced member is never the last of its object).
type repeatFinder struct {
	dec      *jsontext.Decoder
	replaced []span
}

func (f *repeatFinder) value() error {
	switch f.dec.PeekKind() {
	case '{':
		return f.object()
	case '[':
		if _, err := f.dec.ReadToken(); err != nil {
			return err
		}
		for f.dec.PeekKind() != ']' {
			if err := f.value(); err != nil {
				return err
			}
		}
		_, err := f.dec.ReadToken()
		return err
	}
	return f.dec.SkipValue()
}

func (f *repeatFinder) object() error {
	if _, err := f.dec.ReadToken(); err != nil {
		return err
	}
	last := map[string]int{} // by name: its latest member
	var starts []int         // of the members' names
	var gone []int
	for f.dec.PeekKind() != '}' {
		raw, err := f.dec.ReadValue()
		if err != nil {
			return err
		}
		name, err := unquote(nil, raw)
		if err != nil {
			return err
		}
		if earlier, ok := last[string(name)]; ok {
			gone = append(gone, earlier)
		}
		last[string(name)] = len(starts)
		starts = append(starts, int(f.dec.InputOffset())-len(raw))
		if err := f.value(); err != nil {
			return err
		}
	}
	for _, i := range gone {
		f.replaced = append(f.replaced, span{starts[i], starts[i+1]})
	}
	_, err := f.dec.ReadToken()
	return err
}
