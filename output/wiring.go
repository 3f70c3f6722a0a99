package output

import (
	"log/slog"
	"runtime"

	"github.com/managed-lakehouse/managed-lakehouse/arrowconv"
	"github.com/managed-lakehouse/managed-lakehouse/commit"
	"github.com/managed-lakehouse/managed-lakehouse/commit/datafile"
	"github.com/managed-lakehouse/managed-lakehouse/commit/icebergtable"
	"github.com/managed-lakehouse/managed-lakehouse/commit/objstore"
)

// commitConfig is the configuration of the commit engine.
func (c *config) commitConfig(log *slog.Logger) commit.Config {
	cfg := commit.Config{
		Store: objstore.Config{URL: c.warehouse},
		Delta: c.delta,
		Files: datafile.Options{
			Compression:  c.parquet.compression,
			Level:        c.parquet.level,
			RowGroupRows: int64(c.parquet.rowGroupRows),
			Lanes:        runtime.GOMAXPROCS(0),
		},
		Logger: log,
	}
	if c.sql != nil {
		cfg.Catalog.SQL = &icebergtable.SQLConfig{Driver: c.sql.driver, DSN: c.sql.dsn, Name: c.sql.name}
	} else {
		cfg.Catalog.Filesystem = &icebergtable.FilesystemConfig{}
	}
	return cfg
}

func (c *config) tableOptions() commit.TableOptions {
	return commit.TableOptions{
		Properties:     c.properties,
		PartitionBy:    c.partition,
		MapColumnNames: c.convert.ColumnNames == arrowconv.MapNames,
	}
}
