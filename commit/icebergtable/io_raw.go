package icebergtable

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/apache/iceberg-go/table"
)

// isManifestList recognises a manifest list by the name that iceberg-go gives it.
func isManifestList(key string) bool {
	base := path.Base(key)
	return strings.HasPrefix(base, "snap-") && strings.HasSuffix(base, ".avro")
}

// rawManifestList replaces the root that manifest paths begin with: from encoded to
// raw. All else stays, the file's own metadata included.
func rawManifestList(data []byte, encoded, raw string) ([]byte, error) {
	entries, r, err := decodeList(data)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if p, ok := entry["manifest_path"].(string); ok {
			entry["manifest_path"] = rawLocation(p, encoded, raw)
		}
	}
	return encodeList(entries, r.Metadata())
}

func rawLocation(location, encoded, raw string) string {
	if rest, ok := strings.CutPrefix(location, encoded+"/"); ok {
		return raw + "/" + rest
	}
	return location
}

// encode is the metadata file of meta, and meta as that file holds it: they differ
// from what was given only in locations that came percent-encoded.
func (o *IO) encode(meta table.Metadata) ([]byte, table.Metadata, error) {
	data, err := json.Marshal(meta)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: table metadata cannot be written: %w", ErrRefused, err)
	}
	if o.encoded == "" {
		return data, meta, nil
	}
	from, to := jsonPrefix(o.encoded), jsonPrefix(o.store.Root())
	if !bytes.Contains(data, from) {
		return data, meta, nil
	}
	data = bytes.ReplaceAll(data, from, to)
	if meta, err = table.ParseMetadataBytes(data); err != nil {
		return nil, nil, fmt.Errorf("table metadata: %w", err)
	}
	return data, meta, nil
}

// jsonPrefix is how a JSON string that begins with root and a slash begins.
func jsonPrefix(root string) []byte {
	text, _ := json.Marshal(root + "/") // a string always has a JSON form
	return text[:len(text)-1]
}
