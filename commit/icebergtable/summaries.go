package icebergtable

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/apache/iceberg-go"
	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"
)

// A manifest list sums up the partitions of each manifest: whether there are NULLs,
// the lowest value, the highest one. iceberg-go writes the empty string, as one of
// these two, as if there were none. Without bounds a manifest holds nothing but NULLs
// (Iceberg specification, Manifest Lists, field_summary), so readers would leave out
// its files when they look for a value, and lose rows. This file puts the empty
// bounds back.

// wholeSummaries is a manifest list with the empty bounds in it that are missing, and
// data itself where none are. manifest gives the content of a manifest by its location.
func wholeSummaries(data []byte, manifest func(location string) ([]byte, error)) ([]byte, error) {
	entries, r, err := decodeList(data)
	if err != nil {
		return nil, err
	}
	meta := r.Metadata()
	snapshot, _ := strconv.ParseInt(string(meta["snapshot-id"]), 10, 64)
	changed := false
	for _, entry := range entries {
		partitions, _ := entry["partitions"].([]any)
		for i, p := range partitions {
			summary, ok := p.(map[string]any)
			if !ok || summary["lower_bound"] != nil {
				continue
			}
			holds := false
			switch {
			case summary["upper_bound"] != nil:
				holds = true // something is below it, or it is the only value
			case summary["contains_null"] == false:
				holds = summary["contains_nan"] == false
			case entry["added_snapshot_id"] == snapshot:
				// NULLs alone, or the empty string too: the summary does not tell. Older
				// manifests were looked at when they were new.
				location, _ := entry["manifest_path"].(string)
				if holds, err = holdsEmpty(data, location, i, manifest); err != nil {
					return nil, fmt.Errorf("manifest %s: %w", location, err)
				}
			}
			if holds {
				summary["lower_bound"], changed = []byte{}, true
				if summary["upper_bound"] == nil {
					summary["upper_bound"] = []byte{}
				}
			}
		}
	}
	if !changed {
		return data, nil
	}
	return encodeList(entries, meta)
}

// holdsEmpty tells whether a manifest without bounds for its i-th partition field has
// values there all the same, which then are empty.
func holdsEmpty(list []byte, location string, i int, manifest func(string) ([]byte, error)) (bool, error) {
	files, err := iceberg.ReadManifestList(bytes.NewReader(list))
	if err != nil {
		return false, err
	}
	for _, f := range files {
		if f.FilePath() != location {
			continue
		}
		data, err := manifest(location)
		if err != nil {
			return false, err
		}
		r, err := iceberg.NewManifestReader(f, bytes.NewReader(data))
		if err != nil {
			return false, err
		}
		defer r.Close()
		spec, err := r.PartitionSpec()
		if err != nil {
			return false, err
		}
		if i >= spec.NumFields() {
			return false, nil
		}
		for {
			e, err := r.ReadEntry()
			if errors.Is(err, io.EOF) {
				return false, nil
			}
			if err != nil {
				return false, err
			}
			switch v := e.DataFile().Partition()[spec.Field(i).FieldID].(type) {
			case string:
				return v == "", nil
			case []byte:
				return len(v) == 0, nil
			}
		}
	}
	return false, nil
}

// decodeList reads a manifest list. Only the metadata of the reader is of use.
func decodeList(data []byte) (entries []map[string]any, r *ocf.Reader, err error) {
	if r, err = ocf.NewReader(bytes.NewReader(data)); err != nil {
		return nil, nil, fmt.Errorf("manifest list: %w", err)
	}
	defer r.Close()
	for {
		var entry map[string]any
		if err := r.Decode(&entry); errors.Is(err, io.EOF) {
			return entries, r, nil
		} else if err != nil {
			return nil, nil, fmt.Errorf("manifest list: %w", err)
		}
		entries = append(entries, entry)
	}
}

// encodeList writes a manifest list with the schema and the metadata of another.
func encodeList(entries []map[string]any, metadata map[string][]byte) ([]byte, error) {
	meta := map[string][]byte{}
	for k, v := range metadata {
		if len(k) < 5 || k[:5] != "avro." {
			meta[k] = v
		}
	}
	text := string(metadata["avro.schema"])
	schema, err := avro.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("manifest list: schema: %w", err)
	}
	var out bytes.Buffer
	w, err := ocf.NewWriter(&out, schema, ocf.WithSchema(text), ocf.WithMetadata(meta), ocf.WithCodec(ocf.DeflateCodec(-1)))
	if err != nil {
		return nil, fmt.Errorf("manifest list: %w", err)
	}
	for _, entry := range entries {
		if err := w.Encode(entry); err != nil {
			return nil, fmt.Errorf("manifest list: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("manifest list: %w", err)
	}
	return out.Bytes(), nil
}
