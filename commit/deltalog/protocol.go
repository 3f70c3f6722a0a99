package deltalog

import "slices"

// Table features by their names in the Delta protocol.
const (
	featureAppendOnly  = "appendOnly"
	featureInvariants  = "invariants"
	featureTimestampNz = "timestampNtz"
	featureMapping     = "columnMapping"
)

// guardFeature is a writer feature that no other writer has. A table whose
// protocol lists it is readable by all, and a lawful writer (and its vacuum)
// refuses it: writer features that a client does not know forbid it to write, and
// only that (Delta protocol, "Table Features").
const guardFeature = "managedLakehouseMirror"

// protocolFor is the protocol that a table needs: (1,2), unless a column is a
// timestamp without zone or names are mapped, which are features of readers, or the
// mirror is guarded, which is a feature of writers only. Nothing that prev lists is taken
// back: older versions of the table may stand on it.
//
// appendOnly and invariants are what writer version 2 implies and what version 7
// must therefore list (Delta protocol, "Table Features").
func protocolFor(prev *Protocol, timestampNtz, mapped, guard bool) Protocol {
	var readers, writers []string
	if timestampNtz {
		readers = append(readers, featureTimestampNz)
		writers = append(writers, featureTimestampNz)
	}
	if mapped {
		readers = append(readers, featureMapping)
		writers = append(writers, featureMapping)
	}
	if guard {
		writers = append(writers, guardFeature)
	}
	if prev != nil {
		readers = append(readers, prev.ReaderFeatures...)
		writers = append(writers, prev.WriterFeatures...)
	}
	p := Protocol{MinReaderVersion: 1, MinWriterVersion: 2}
	if prev != nil {
		p.MinReaderVersion = max(p.MinReaderVersion, prev.MinReaderVersion)
		p.MinWriterVersion = max(p.MinWriterVersion, prev.MinWriterVersion)
	}
	if len(readers) > 0 {
		p.MinReaderVersion = 3
		p.ReaderFeatures = sortedSet(readers)
	}
	if len(writers) > 0 || p.MinReaderVersion == 3 {
		p.MinWriterVersion = 7
		p.WriterFeatures = sortedSet(append(writers, featureAppendOnly, featureInvariants))
	}
	return p
}

// equal tells whether two protocols ask for the same.
func (p Protocol) equal(o Protocol) bool {
	return p.MinReaderVersion == o.MinReaderVersion && p.MinWriterVersion == o.MinWriterVersion &&
		slices.Equal(sortedSet(p.ReaderFeatures), sortedSet(o.ReaderFeatures)) &&
		slices.Equal(sortedSet(p.WriterFeatures), sortedSet(o.WriterFeatures))
}

// unsupported names a feature that this package can neither keep nor write, or "".
func (p *Protocol) unsupported() string {
	if p == nil {
		return "there is none"
	}
	for _, f := range append(slices.Clone(p.ReaderFeatures), p.WriterFeatures...) {
		switch f {
		case featureAppendOnly, featureInvariants, featureTimestampNz, featureMapping, guardFeature:
		default:
			return f
		}
	}
	if p.MinWriterVersion > 2 && p.MinWriterVersion < 7 {
		return "writer version above 2"
	}
	return ""
}

func sortedSet(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return slices.Compact(s)
}
