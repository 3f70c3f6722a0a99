package icebergtable

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/apache/iceberg-go/table"
	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"
)

// isManifestList recognises a manifest list by the name that iceberg-go gives it.
func isManifestList(key string) bool {
	base := path.Base(key)
	return strings.HasPrefix(base, "snap-") && strings.HasSuffix(base, ".avro")
}

// rawManifestList replaces the root that manifest paths begin with: from encoded to
// raw. All else stays, the file's own metadata included.
func rawManifestList(data []byte, encoded, raw string) ([]byte, error) {
	r, err := ocf.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("manifest list: %w", err)
	}
	defer r.Close()
	meta := map[string][]byte{}
	var schemaText []byte
	for k, v := range r.Metadata() {
		switch {
		case k == "avro.schema":
			schemaText = v
		case !strings.HasPrefix(k, "avro."):
			meta[k] = v
		}
	}
	schema, err := avro.Parse(string(schemaText))
	if err != nil {
		return nil, fmt.Errorf("manifest list: schema: %w", err)
	}
	var out bytes.Buffer
	w, err := ocf.NewWriter(&out, schema, ocf.WithSchema(string(schemaText)), ocf.WithMetadata(meta), ocf.WithCodec(ocf.DeflateCodec(-1)))
	if err != nil {
		return nil, fmt.Errorf("manifest list: %w", err)
	}
	for {
		var entry map[string]any
		if err := r.Decode(&entry); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("manifest list: %w", err)
		}
		if p, ok := entry["manifest_path"].(string); ok {
			entry["manifest_path"] = rawLocation(p, encoded, raw)
		}
		if err := w.Encode(entry); err != nil {
			return nil, fmt.Errorf("manifest list: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("manifest list: %w", err)
	}
	return out.Bytes(), nil
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
