package readback

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Delta is the Delta side of a table at one version.
type Delta struct {
	Version  int64
	Commits  []int64 // versions whose JSON entry lies in the log, ascending
	Protocol deltaProtocol
	MetaData deltaMetaData
	Txns     map[string]int64 // appId to version
	Columns  []string         // in the notation of this package
	Files    []File
	Adds     []deltaAdd // of Files, in order
	Removed  []string   // absolute paths of tombstones
	Rows     []Row
	FileRows [][]Row  // of Files, in order
	Physical []string // per file, what its columns are where they differ from Columns
}

type deltaProtocol struct {
	MinReaderVersion int      `json:"minReaderVersion"`
	MinWriterVersion int      `json:"minWriterVersion"`
	ReaderFeatures   []string `json:"readerFeatures"`
	WriterFeatures   []string `json:"writerFeatures"`
}

type deltaMetaData struct {
	ID               string   `json:"id"`
	SchemaString     string   `json:"schemaString"`
	PartitionColumns []string `json:"partitionColumns"`
}

type deltaAdd struct {
	Path             string `json:"path"`
	Size             int64  `json:"size"`
	ModificationTime int64  `json:"modificationTime"`
	DataChange       bool   `json:"dataChange"`
	Stats            string `json:"stats"`
}

type deltaAction struct {
	Protocol *deltaProtocol `json:"protocol"`
	MetaData *deltaMetaData `json:"metaData"`
	Add      *deltaAdd      `json:"add"`
	Remove   *struct {
		Path string `json:"path"`
	} `json:"remove"`
	Txn *struct {
		AppID   string `json:"appId"`
		Version int64  `json:"version"`
	} `json:"txn"`
}

var logEntry = regexp.MustCompile(`^(\d{20})\.json$`)

// ReadDelta reads the latest version of the table below dir (its `delta` folder),
// from the last checkpoint on if there is one.
func ReadDelta(ctx context.Context, dir string) (*Delta, error) {
	return readDelta(ctx, dir, true)
}

// ReadDeltaFromZero reads it without the checkpoint: the two must be equal.
func ReadDeltaFromZero(ctx context.Context, dir string) (*Delta, error) {
	return readDelta(ctx, dir, false)
}

func readDelta(ctx context.Context, dir string, checkpoints bool) (*Delta, error) {
	root := filepath.Join(dir, "delta")
	d := &Delta{Version: -1, Txns: map[string]int64{}}
	entries, err := os.ReadDir(filepath.Join(root, "_delta_log"))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if m := logEntry.FindStringSubmatch(e.Name()); m != nil {
			v, err := strconv.ParseInt(m[1], 10, 64)
			if err != nil {
				return nil, err
			}
			d.Commits = append(d.Commits, v)
		}
	}
	state := replay{adds: map[string]deltaAdd{}, removed: map[string]bool{}, d: d}
	if checkpoints {
		if err := state.checkpoint(ctx, root); err != nil {
			return nil, err
		}
	}
	for _, v := range d.Commits {
		if v <= d.Version {
			continue
		}
		if v != d.Version+1 {
			return nil, fmt.Errorf("the log jumps from version %d to %d", d.Version, v)
		}
		if err := state.entry(filepath.Join(root, "_delta_log", fmt.Sprintf("%020d.json", v))); err != nil {
			return nil, err
		}
		d.Version = v
	}
	if d.MetaData.SchemaString == "" || d.Protocol.MinWriterVersion == 0 {
		return nil, fmt.Errorf("version %d has no metaData or no protocol", d.Version)
	}
	var schema deltaStruct
	if err := json.Unmarshal([]byte(d.MetaData.SchemaString), &schema); err != nil {
		return nil, fmt.Errorf("schemaString: %w", err)
	}
	if d.Columns, err = schema.columns(); err != nil {
		return nil, err
	}
	return d, d.load(ctx, root, &state)
}

// load reads the live files.
func (d *Delta) load(ctx context.Context, root string, state *replay) error {
	types := map[string]string{}
	for _, c := range d.Columns {
		name, typ, _ := strings.Cut(c, ": ")
		types[name] = strings.ReplaceAll(typ, " required", "")
	}
	for _, path := range slices.Sorted(maps.Keys(state.adds)) {
		add := state.adds[path]
		local := filepath.Join(root, path)
		schema, rows, err := readParquet(ctx, local)
		if err != nil {
			return err
		}
		for _, f := range schema.Fields() {
			want, ok := types[f.Name]
			if !ok {
				d.Physical = append(d.Physical, fmt.Sprintf("%s: column %s is not in the schema", path, f.Name))
			} else if got := arrowType(f.Type); !storedAs(got, want) {
				d.Physical = append(d.Physical, fmt.Sprintf("%s: column %s is %s, the schema says %s", path, f.Name, got, want))
			}
		}
		d.Files = append(d.Files, File{Path: local, Size: add.Size, Rows: int64(len(rows))})
		d.Adds = append(d.Adds, add)
		d.FileRows = append(d.FileRows, rows)
		d.Rows = append(d.Rows, rows...)
	}
	for path := range state.removed {
		d.Removed = append(d.Removed, filepath.Join(root, path))
	}
	slices.Sort(d.Removed)
	return nil
}

// storedAs tells whether a file's column can be read as the schema's type. A
// struct in a file may lack fields that the schema gained later.
func storedAs(file, schema string) bool {
	return file == schema || strings.Contains(schema, "struct<")
}

// replay is the state of the log while it is read.
type replay struct {
	d       *Delta
	adds    map[string]deltaAdd
	removed map[string]bool
}

func (r *replay) apply(a deltaAction) error {
	switch {
	case a.Protocol != nil:
		r.d.Protocol = *a.Protocol
	case a.MetaData != nil:
		r.d.MetaData = *a.MetaData
	case a.Txn != nil:
		r.d.Txns[a.Txn.AppID] = a.Txn.Version
	case a.Add != nil:
		path, err := url.PathUnescape(a.Add.Path)
		if err != nil {
			return fmt.Errorf("add.path %q: %w", a.Add.Path, err)
		}
		r.adds[path] = *a.Add
		delete(r.removed, path)
	case a.Remove != nil:
		path, err := url.PathUnescape(a.Remove.Path)
		if err != nil {
			return fmt.Errorf("remove.path %q: %w", a.Remove.Path, err)
		}
		delete(r.adds, path)
		r.removed[path] = true
	}
	return nil
}

func (r *replay) entry(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, len(data)+1)
	for n := 1; lines.Scan(); n++ {
		var kinds map[string]json.RawMessage
		var a deltaAction
		if err := errors.Join(json.Unmarshal(lines.Bytes(), &kinds), json.Unmarshal(lines.Bytes(), &a)); err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
		if len(kinds) != 1 {
			return fmt.Errorf("%s:%d: one action a line, not %d", path, n, len(kinds))
		}
		if err := r.apply(a); err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	return lines.Err()
}

// checkpoint starts from the checkpoint that _last_checkpoint names, if any.
func (r *replay) checkpoint(ctx context.Context, root string) error {
	data, err := os.ReadFile(filepath.Join(root, "_delta_log", "_last_checkpoint"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	var last struct {
		Version int64 `json:"version"`
		Size    int64 `json:"size"`
	}
	if err := json.Unmarshal(data, &last); err != nil {
		return fmt.Errorf("_last_checkpoint: %w", err)
	}
	path := filepath.Join(root, "_delta_log", fmt.Sprintf("%020d.checkpoint.parquet", last.Version))
	_, rows, err := readParquet(ctx, path)
	if err != nil {
		return err
	}
	if int64(len(rows)) != last.Size {
		return fmt.Errorf("%s holds %d actions, _last_checkpoint says %d", path, len(rows), last.Size)
	}
	for i, row := range rows {
		var a deltaAction
		if err := json.Unmarshal([]byte(row.Text()), &a); err != nil {
			return fmt.Errorf("%s: action %d: %w", path, i, err)
		}
		if err := r.apply(a); err != nil {
			return fmt.Errorf("%s: action %d: %w", path, i, err)
		}
	}
	r.d.Version = last.Version
	return nil
}
