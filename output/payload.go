package output

import (
	"bytes"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/managed-lakehouse/managed-lakehouse/arrowconv"
)

// heldPayload is heldBytes for a payload of that format.
func heldPayload(b []byte, format arrowconv.MessageFormat) int64 {
	n := int64(len(b))
	switch format {
	case arrowconv.ArrowIPC:
		// Its buffers may be compressed, and 8- and 16-bit integers are widened.
		return n + 3*n + messageOverhead
	case arrowconv.Parquet:
		return n + max(n, parquetColumns(b)) + messageOverhead
	default:
		return heldBytes(n)
	}
}

// parquetColumns is what the columns of a Parquet file take in memory, as its footer
// tells it; 0 where it cannot be read, which conversion will report.
func parquetColumns(b []byte) (size int64) {
	defer func() {
		if recover() != nil { // the reader panics on some malformed footers
			size = 0
		}
	}()
	r, err := file.NewParquetReader(bytes.NewReader(b))
	if err != nil {
		return 0
	}
	defer r.Close()
	for g := range r.NumRowGroups() {
		group := r.MetaData().RowGroup(g)
		for c := range group.NumColumns() {
			column, err := group.ColumnChunk(c)
			if err != nil {
				return 0
			}
			// A dictionary makes the pages smaller than the values; its strings cannot be
			// told from here.
			size += max(column.TotalUncompressedSize(), column.NumValues()*int64(width(column.Type())))
		}
	}
	return max(size, 0)
}

// width is the size of a value in a column, in bytes; of a string, of its offset and
// a few characters.
func width(t parquet.Type) int {
	switch t {
	case parquet.Types.Boolean:
		return 1
	case parquet.Types.Int32, parquet.Types.Float:
		return 4
	case parquet.Types.Int64, parquet.Types.Double, parquet.Types.Int96:
		return 8
	default:
		return 16
	}
}
