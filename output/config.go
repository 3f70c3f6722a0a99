package output

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/managed-lakehouse/managed-lakehouse/arrowconv"
	"github.com/managed-lakehouse/managed-lakehouse/commit"
	"github.com/managed-lakehouse/managed-lakehouse/commit/icebergtable"
)

// config is a checked configuration.
type config struct {
	warehouse  string
	namespace  *service.InterpolatedString
	table      *service.InterpolatedString
	ident      []string // of the only table; nil where a name is interpolated
	delta      bool
	tier       tier
	trigger    triggerConfig
	convert    arrowconv.Options
	sql        *sqlConfig // nil: the filesystem catalog
	properties map[string]string
	partition  []commit.PartitionField
	parquet    parquetConfig
	batching   service.BatchPolicy
}

type sqlConfig struct{ driver, dsn, name string }

type parquetConfig struct {
	compression  string
	level        int
	rowGroupRows int
}

// parseConfig reads and checks a config. Lints find most of what is wrong before;
// but a config may come from code, or be run in spite of its lints, and some
// values are known only now. Each error names the field, what it holds, and what
// it may hold.
func parseConfig(conf *service.ParsedConfig) (*config, error) {
	c := &config{}
	var err error
	if c.warehouse, err = conf.FieldString(fWarehouse); err != nil {
		return nil, err
	}
	if err = checkWarehouse(c.warehouse); err != nil {
		return nil, err
	}
	if c.namespace, err = conf.FieldInterpolatedString(fNamespace); err != nil {
		return nil, err
	}
	if c.table, err = conf.FieldInterpolatedString(fTable); err != nil {
		return nil, err
	}
	if ns, ok := c.namespace.Static(); ok {
		if _, err = tableIdent(ns, "t"); err != nil {
			return nil, fmt.Errorf("field %w", err)
		}
		if name, ok := c.table.Static(); ok {
			if c.ident, err = tableIdent(ns, name); err != nil {
				return nil, fmt.Errorf("field %w", err)
			}
		}
	}
	formats, err := conf.FieldStringList(fFormats)
	if err != nil {
		return nil, err
	}
	if c.delta, err = parseFormats(formats); err != nil {
		return nil, err
	}
	if err = c.parseStreaming(conf); err != nil {
		return nil, err
	}
	if err = c.parseCatalog(conf); err != nil {
		return nil, err
	}
	if err = c.parseConversion(conf); err != nil {
		return nil, err
	}
	if err = c.parsePartition(conf); err != nil {
		return nil, err
	}
	if c.properties, err = conf.FieldStringMap(fTableProperties); err != nil {
		return nil, err
	}
	if err = icebergtable.CheckProperties(c.properties); err != nil {
		return nil, fmt.Errorf("field %s: %w", fTableProperties, err)
	}
	if err = c.parseParquet(conf); err != nil {
		return nil, err
	}
	limit, err := conf.FieldString(fMemoryLimit)
	if err != nil {
		return nil, err
	}
	if c.trigger.Budget, err = parseSize(limit); err != nil {
		return nil, fmt.Errorf("field %s: %w", fMemoryLimit, err)
	}
	if c.trigger.Slots, err = atLeastOne(conf, fMaxInFlight); err != nil {
		return nil, err
	}
	if c.batching, err = conf.FieldBatchPolicy(fBatching); err != nil {
		return nil, err
	}
	// A count without a period never flushes what is left at the end of a bounded
	// input, which then waits for its acks for ever.
	if c.batching.Count > 0 && c.batching.Period == "" {
		c.batching.Period = defaultBatchPeriod
	}
	// A count of messages says little where one may be a file of many rows.
	if c.convert.Format != arrowconv.JSON && c.batching.Count > 0 && c.batching.ByteSize == 0 {
		c.batching.ByteSize = int(min(batchBytes, max(c.trigger.Budget/8, 1)))
	}
	return c, nil
}

// batchBytes is about how large a batch gets of messages that hold many rows.
const batchBytes = 16 << 20

func checkWarehouse(w string) error {
	switch {
	case strings.TrimSpace(w) == "":
		return fmt.Errorf("field %s: it is empty; it must be a folder: ./lakehouse, /data/lakehouse, file:///data/lakehouse", fWarehouse)
	case strings.Contains(w, "://") && !strings.HasPrefix(w, "file:///"):
		return fmt.Errorf("field %s: %q is not known; it may be a folder (./lakehouse, /data/lakehouse) or file:/// with an absolute path", fWarehouse, w)
	}
	return nil
}

func parseFormats(formats []string) (delta bool, err error) {
	for _, f := range formats {
		if !slices.Contains(knownFormats, f) {
			return false, fmt.Errorf("field %s: %q is not known; it may be [iceberg, delta] or [iceberg]", fFormats, f)
		}
	}
	if !slices.Contains(formats, "iceberg") {
		return false, fmt.Errorf("field %s: %v lacks iceberg; it may be [iceberg, delta] or [iceberg], since Delta versions are made from Iceberg snapshots", fFormats, formats)
	}
	return slices.Contains(formats, "delta"), nil
}

func (c *config) parseStreaming(conf *service.ParsedConfig) error {
	name, err := conf.FieldString(fTier)
	if err != nil {
		return err
	}
	if c.tier, err = tierNamed(name); err != nil {
		return err
	}
	s := conf.Namespace(fStreaming)
	if c.trigger.Streaming, err = s.FieldBool(fEnabled); err != nil {
		return err
	}
	c.trigger.Interval = c.tier.defaultInterval()
	if s.Contains(fCommitInterval) {
		if c.trigger.Interval, err = duration(s, fCommitInterval, "streaming."+fCommitInterval); err != nil {
			return err
		}
	}
	switch {
	case c.trigger.Interval <= 0:
		return fmt.Errorf("field streaming.%s: %v is no positive duration; it may be 60s, 5m, 1h", fCommitInterval, c.trigger.Interval)
	case c.trigger.Interval < c.tier.MinInterval:
		return fmt.Errorf("field streaming.%s: %v is under the minimum of tier %s; it must be at least %v", fCommitInterval, c.trigger.Interval, c.tier.Name, c.tier.MinInterval)
	}
	rows, err := s.FieldInt(fRowLimit)
	if err != nil {
		return err
	}
	if rows < 1 {
		return fmt.Errorf("field streaming.%s: %d is too small; it must be at least 1", fRowLimit, rows)
	}
	c.trigger.RowLimit = int64(rows)
	c.trigger.IdleFloor = time.Second
	if !c.trigger.Streaming {
		c.trigger.IdleFloor = 10 * time.Second
	}
	if s.Contains(fIdle) {
		if c.trigger.IdleFloor, err = duration(s, fIdle, "streaming."+fIdle); err != nil {
			return err
		}
		if c.trigger.IdleFloor < 0 {
			return fmt.Errorf("field streaming.%s: %v is negative; it may be 1s, 500ms, or 0s to turn it off", fIdle, c.trigger.IdleFloor)
		}
	}
	return nil
}

func duration(conf *service.ParsedConfig, field, path string) (time.Duration, error) {
	text, err := conf.FieldString(field)
	if err != nil {
		return 0, err
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("field %s: %q is no duration; it may be 1s, 60s, 5m", path, text)
	}
	return d, nil
}

func (c *config) parseCatalog(conf *service.ParsedConfig) error {
	if !conf.Contains(fCatalog, fSQL) {
		return nil
	}
	if conf.Contains(fCatalog, fFilesystem) {
		return fmt.Errorf("field %s: it holds filesystem and sql; it may hold exactly one of filesystem, sql", fCatalog)
	}
	s := conf.Namespace(fCatalog, fSQL)
	c.sql = &sqlConfig{}
	var err error
	if c.sql.driver, err = oneOf(s, fDriver, "catalog.sql.driver", sqlDrivers); err != nil {
		return err
	}
	if c.sql.dsn, err = s.FieldString(fDSN); err != nil {
		return err
	}
	if c.sql.dsn == "" {
		return fmt.Errorf("field catalog.sql.%s: it is missing; it must say how to reach the database, for sqlite the path of its file", fDSN)
	}
	if c.sql.name, err = s.FieldString(fName); err != nil {
		return err
	}
	if c.sql.name == "" {
		return fmt.Errorf("field catalog.sql.%s: it is empty; it must be a name, which readers use as well", fName)
	}
	return nil
}

func (c *config) parseConversion(conf *service.ParsedConfig) error {
	o := &c.convert
	var err error
	if o.Declared, err = parseColumns(conf); err != nil {
		return err
	}
	s := conf.Namespace(fSchemaEvolution)
	if o.Evolve, err = s.FieldBool(fEnabled); err != nil {
		return err
	}
	if o.InferTimestamps, err = s.FieldBool(fInferTimestamps); err != nil {
		return err
	}
	conflict, err := oneOf(s, fOnTypeConflict, "schema_evolution."+fOnTypeConflict, conflictPolicies)
	if err != nil {
		return err
	}
	if conflict == "string" {
		o.OnTypeConflict = arrowconv.ConflictsAsText
	}
	if o.MaxColumns, err = atLeastOne(s, fMaxColumns); err != nil {
		return err
	}
	if o.MaxDepth, err = atLeastOne(s, fMaxDepth); err != nil {
		return err
	}
	numbers, err := oneOf(conf, fNumbers, fNumbers, numberPolicies)
	if err != nil {
		return err
	}
	if numbers == "double" {
		o.Numbers = arrowconv.DoubleNumbers
	}
	precision, err := oneOf(conf, fTimestampPrecision, fTimestampPrecision, precisionPolicies)
	if err != nil {
		return err
	}
	if precision == "truncate" {
		o.TimestampPrecision = arrowconv.TruncateFiner
	}
	names, err := oneOf(conf, fColumnNames, fColumnNames, namePolicies)
	if err != nil {
		return err
	}
	switch names {
	case "reject":
		o.ColumnNames = arrowconv.RejectNames
	case "map":
		o.ColumnNames = arrowconv.MapNames
	}
	format, err := oneOf(conf, fMessageFormat, fMessageFormat, messageFormats)
	if err != nil {
		return err
	}
	switch format {
	case "ndjson":
		o.Format = arrowconv.NDJSON
	case "arrow_ipc":
		o.Format = arrowconv.ArrowIPC
	case "parquet":
		o.Format = arrowconv.Parquet
	}
	// A Delta table that widens a column locks older readers out.
	o.Widen = !c.delta
	if _, err := arrowconv.NewPlan(nil, *o); err != nil {
		return fmt.Errorf("field %s: %w", fSchema, err)
	}
	return nil
}

// parsePartition reads how tables are partitioned, and holds it against the columns
// that are declared.
func (c *config) parsePartition(conf *service.ParsedConfig) error {
	exprs, err := conf.FieldStringList(fPartitionBy)
	if err != nil {
		return err
	}
	for i, expr := range exprs {
		f, err := commit.ParsePartition(expr)
		if err != nil {
			return fmt.Errorf("field %s[%d]: %w", fPartitionBy, i, err)
		}
		c.partition = append(c.partition, f)
	}
	declared, err := arrowconv.NewPlan(nil, c.convert)
	if err != nil {
		return fmt.Errorf("field %s: %w", fSchema, err)
	}
	if err := commit.CheckPartition(c.partition, declared.Schema()); err != nil {
		return fmt.Errorf("field %w", err)
	}
	return nil
}

// topLevel is each codec's highest compression level.
var topLevel = map[string]int{"zstd": 22, "gzip": 9}

func (c *config) parseParquet(conf *service.ParsedConfig) error {
	s := conf.Namespace(fParquet)
	var err error
	if c.parquet.compression, err = oneOf(s, fCompression, "parquet."+fCompression, codecs); err != nil {
		return err
	}
	if c.parquet.level, err = s.FieldInt(fCompressionLevel); err != nil {
		return err
	}
	if top := topLevel[c.parquet.compression]; c.parquet.level < 0 || c.parquet.level > top {
		return fmt.Errorf("field parquet.%s: %d is no level of %s; it must be from 0 to %d", fCompressionLevel, c.parquet.level, c.parquet.compression, top)
	}
	c.parquet.rowGroupRows, err = atLeastOne(s, fRowGroupRows)
	return err
}

func oneOf(conf *service.ParsedConfig, field, path string, options []string) (string, error) {
	v, err := conf.FieldString(field)
	if err != nil {
		return "", err
	}
	if !slices.Contains(options, v) {
		return "", fmt.Errorf("field %s: %q is not known; it may be %s", path, v, strings.Join(options, ", "))
	}
	return v, nil
}

func atLeastOne(conf *service.ParsedConfig, field string) (int, error) {
	n, err := conf.FieldInt(field)
	if err == nil && n < 1 {
		err = fmt.Errorf("field %s: %d is too small; it must be at least 1", field, n)
	}
	return n, err
}

var sizeText = regexp.MustCompile(`^\s*([0-9]+(?:\.[0-9]+)?)\s*(?:([kKmMgGtT])(i?))?[bB]?\s*$`)

// parseSize reads a number of bytes: 268435456, 256MiB, 1GiB, 64MB. A unit with an
// `i` counts in powers of 1024, one without in powers of 1000.
func parseSize(s string) (int64, error) {
	m := sizeText.FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("%q is no size; it may be a number of bytes, or one with a unit: 64MB, 256MiB, 1GiB", s)
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no size: %w", s, err)
	}
	base := 1000.0
	if m[3] != "" {
		base = 1024
	}
	n *= math.Pow(base, float64(strings.Index(" kmgt", strings.ToLower(m[2] + " ")[:1])))
	if n < 1 || n > 1<<60 {
		return 0, fmt.Errorf("%q is out of range; it must be at least one byte", s)
	}
	return int64(n), nil
}
