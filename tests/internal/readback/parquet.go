package readback

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// readParquet is a whole Parquet file.
func readParquet(ctx context.Context, path string) (*arrow.Schema, []Row, error) {
	pf, err := file.OpenParquetFile(path, false, file.WithReadProps(parquet.NewReaderProperties(memory.DefaultAllocator)))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	defer pf.Close()
	rd, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	tbl, err := rd.ReadTable(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	defer tbl.Release()
	var rows []Row
	tr := array.NewTableReader(tbl, 4096)
	defer tr.Release()
	for tr.Next() {
		more, err := recordRows(tr.RecordBatch())
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", path, err)
		}
		rows = append(rows, more...)
	}
	return tbl.Schema(), rows, tr.Err()
}
