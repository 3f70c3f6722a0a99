package readback

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/apache/iceberg-go"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
)

// File is a live data file as one format sees it.
type File struct {
	Path string // absolute, on this machine
	Size int64  // bytes
	Rows int64
}

// Iceberg is the Iceberg side of a table.
type Iceberg struct {
	Table    *table.Table
	Metadata string   // path of the metadata file
	Columns  []string // in the notation of this package
	Files    []File
	Entries  []iceberg.DataFile // of Files, in order
	Rows     []Row
}

// OpenIceberg opens the table below dir (its `iceberg` folder) by the version hint.
func OpenIceberg(ctx context.Context, dir string) (*table.Table, string, error) {
	meta := filepath.Join(dir, "iceberg", "metadata")
	hint, err := os.ReadFile(filepath.Join(meta, "version-hint.text"))
	if err != nil {
		return nil, "", err
	}
	version := strings.TrimSpace(string(hint))
	path := filepath.Join(meta, "v"+version+".metadata.json")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		path = filepath.Join(meta, version+".metadata.json") // catalogs that number their own way
	}
	tbl, err := table.NewFromLocation(ctx, table.Identifier{filepath.Base(dir)}, "file://"+path,
		icebergio.LoadFSFunc(nil, "file://"+path), nil)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", path, err)
	}
	return tbl, path, nil
}

// ReadIceberg reads the whole table below dir.
func ReadIceberg(ctx context.Context, dir string) (*Iceberg, error) {
	tbl, path, err := OpenIceberg(ctx, dir)
	if err != nil {
		return nil, err
	}
	out := &Iceberg{Table: tbl, Metadata: path, Columns: icebergColumns(tbl.Schema().Fields())}
	if tbl.CurrentSnapshot() == nil {
		return out, nil
	}
	tasks, err := tbl.Scan().PlanFiles(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, task := range tasks {
		local, ok := strings.CutPrefix(task.File.FilePath(), "file://")
		if !ok {
			return nil, fmt.Errorf("%s: data file %s is no file: URI", path, task.File.FilePath())
		}
		out.Files = append(out.Files, File{Path: local, Size: task.File.FileSizeBytes(), Rows: task.File.Count()})
		out.Entries = append(out.Entries, task.File)
	}
	_, records, err := tbl.Scan().ToArrowRecords(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for rec, err := range records {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		rows, err := recordRows(rec)
		rec.Release()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		out.Rows = append(out.Rows, rows...)
	}
	return out, nil
}
