package datafile

import (
	"context"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore"
)

// Options say how files are encoded. The zero value is the default.
type Options struct {
	// Compression is zstd (the default), snappy, gzip or none.
	Compression string
	// Level is the codec's level; 0 is the codec's default (zstd: 1, which is
	// as small as 3 on row data, and faster).
	Level int
	// RowGroupRows bounds a row group; 0 is 131,072.
	RowGroupRows int64
	// Lanes bounds the files that one [Set] writes at once; 0 is 1.
	Lanes int
	// PartitionRows is how many rows of a partitioned table are held before
	// their files are written; 0 is 262,144.
	PartitionRows int
	// Memory is the allocator; nil is the default one.
	Memory memory.Allocator
}

const (
	defaultRowGroupRows = 128 << 10
	// rowGroupBytes closes a row group of wide rows before its row limit:
	// an open group is held in memory.
	rowGroupBytes = 32 << 20
)

// Codecs maps the names users write to Parquet codecs.
var Codecs = map[string]compress.Compression{
	"zstd":   compress.Codecs.Zstd,
	"snappy": compress.Codecs.Snappy,
	"gzip":   compress.Codecs.Gzip,
	"none":   compress.Codecs.Uncompressed,
}

func (o Options) mem() memory.Allocator {
	if o.Memory == nil {
		return memory.DefaultAllocator
	}
	return o.Memory
}

func (o Options) properties() ([]parquet.WriterProperty, error) {
	name := o.Compression
	if name == "" {
		name = "zstd"
	}
	codec, ok := Codecs[name]
	if !ok {
		return nil, fmt.Errorf("unknown Parquet compression %q (zstd, snappy, gzip or none)", name)
	}
	level := o.Level
	if level == 0 && codec == compress.Codecs.Zstd {
		level = 1
	}
	rows := o.RowGroupRows
	if rows <= 0 {
		rows = defaultRowGroupRows
	}
	props := []parquet.WriterProperty{
		parquet.WithAllocator(o.mem()),
		parquet.WithVersion(parquet.V2_LATEST),
		parquet.WithCompression(codec),
		parquet.WithMaxRowGroupLength(rows),
		parquet.WithStats(true),
		// The Iceberg specification (Appendix A, Parquet) stores small decimals as integers.
		parquet.WithStoreDecimalAsInteger(true),
		parquet.WithCreatedBy("managed-lakehouse"),
	}
	if level != 0 {
		props = append(props, parquet.WithCompressionLevel(level))
	}
	return props, nil
}

// File is one finished, durable Parquet file.
type File struct {
	Key  string // key in the store
	Size int64  // bytes
	Rows int64

	partition map[int]any // partition field id -> value; nil: unpartitioned

	meta   *metadata.FileMetaData
	floats floatStats
}

// DataFile describes f for an Iceberg manifest. schema is the one that the file
// was written with, field ids included.
func (f *File) DataFile(location string, schema *iceberg.Schema, spec iceberg.PartitionSpec, props iceberg.Properties, formatVersion int) (iceberg.DataFile, error) {
	df, err := table.DataFileFromMetadata(table.DataFileArgs{
		Schema:          schema,
		Spec:            spec,
		Format:          iceberg.ParquetFile,
		Metadata:        f.meta,
		FilePath:        location,
		FileSize:        f.Size,
		Content:         iceberg.EntryContentData,
		Properties:      props,
		FormatVersion:   formatVersion,
		PartitionValues: f.partition,
	})
	if err != nil {
		return nil, fmt.Errorf("describing data file %s: %w", f.Key, err)
	}
	return f.floats.apply(df, spec, logicalTypes(spec, schema))
}

// writer is one Parquet file being written. It is used by one goroutine at a time.
type writer struct {
	key    string
	out    *objstore.Writer
	pq     *pqarrow.FileWriter
	floats floatStats
	rows   int64
	encode time.Duration
}

// newWriter opens the file. The first record, which decides the encodings, is not written yet.
func newWriter(ctx context.Context, store *objstore.Store, key string, first arrow.RecordBatch, opts Options) (*writer, error) {
	props, err := opts.properties()
	if err != nil {
		return nil, err
	}
	props = append(props, encodings(first)...)
	out, err := store.Create(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("creating data file %s: %w", key, err)
	}
	pq, err := pqarrow.NewFileWriter(first.Schema(), keepOpen{out}, parquet.NewWriterProperties(props...),
		pqarrow.NewArrowWriterProperties(pqarrow.WithAllocator(opts.mem()), pqarrow.WithStoreSchema()))
	if err != nil {
		return nil, fmt.Errorf("starting data file %s: %w", key, errorsJoinAbort(err, out))
	}
	return &writer{key: key, out: out, pq: pq, floats: newFloatStats()}, nil
}

// keepOpen hides Close: the Parquet writer closes what it writes to, while the
// object must become visible only after the footer is known to be written.
type keepOpen struct{ w *objstore.Writer }

func (k keepOpen) Write(p []byte) (int, error) { return k.w.Write(p) }

func errorsJoinAbort(err error, out *objstore.Writer) error {
	out.Abort()
	return err
}

func (w *writer) write(rec arrow.RecordBatch) (err error) {
	defer recoverTo(&err)
	start := time.Now()
	defer func() { w.encode += time.Since(start) }()
	w.floats.observe(rec.Schema().Fields(), rec.Columns())
	if w.pq.RowGroupTotalBytesWritten() >= rowGroupBytes {
		if err := w.pq.NewBufferedRowGroupChecked(); err != nil {
			return fmt.Errorf("writing data file %s: %w", w.key, err)
		}
	}
	if err := w.pq.WriteBuffered(rec); err != nil {
		return fmt.Errorf("writing data file %s: %w", w.key, err)
	}
	w.rows += rec.NumRows()
	return nil
}

// close makes the file durable and visible.
func (w *writer) close() (f *File, err error) {
	defer recoverTo(&err)
	if err := w.pq.Close(); err != nil {
		w.out.Abort()
		return nil, fmt.Errorf("finishing data file %s: %w", w.key, err)
	}
	meta, err := w.pq.FileMetadata()
	if err != nil {
		w.out.Abort()
		return nil, fmt.Errorf("reading back the footer of data file %s: %w", w.key, err)
	}
	size := w.out.Size()
	if err := w.out.Close(); err != nil {
		return nil, fmt.Errorf("storing data file %s: %w", w.key, err)
	}
	return &File{Key: w.key, Size: size, Rows: w.rows, meta: meta, floats: w.floats}, nil
}

func (w *writer) abort() {
	w.out.Abort()
	_ = w.pq.Close() // releases its buffers; what it writes goes nowhere
}

// recoverTo turns a panic of the Parquet library into an error: one bad value
// must not end the process with rows of other tables in flight.
func recoverTo(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("parquet: %v", r)
	}
}
