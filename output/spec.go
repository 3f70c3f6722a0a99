package output

import (
	"fmt"
	"strings"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// Names of config fields.
const (
	fWarehouse          = "warehouse"
	fNamespace          = "namespace"
	fTable              = "table"
	fFormats            = "formats"
	fStreaming          = "streaming"
	fEnabled            = "enabled"
	fCommitInterval     = "commit_interval"
	fRowLimit           = "row_limit"
	fIdle               = "idle"
	fTier               = "tier"
	fCatalog            = "catalog"
	fFilesystem         = "filesystem"
	fSQL                = "sql"
	fDriver             = "driver"
	fDSN                = "dsn"
	fName               = "name"
	fSchema             = "schema"
	fType               = "type"
	fRequired           = "required"
	fUnit               = "unit"
	fDoc                = "doc"
	fSchemaEvolution    = "schema_evolution"
	fInferTimestamps    = "infer_timestamps"
	fOnTypeConflict     = "on_type_conflict"
	fMaxColumns         = "max_columns"
	fMaxDepth           = "max_depth"
	fNumbers            = "numbers"
	fTimestampPrecision = "timestamp_precision"
	fColumnNames        = "column_names"
	fPartitionBy        = "partition_by"
	fMessageFormat      = "message_format"
	fTableProperties    = "table_properties"
	fParquet            = "parquet"
	fCompression        = "compression"
	fCompressionLevel   = "compression_level"
	fRowGroupRows       = "row_group_rows"
	fMemoryLimit        = "memory_limit"
	fBatching           = "batching"
	fMaxInFlight        = "max_in_flight"
)

// Name is the output's name in configs.
const Name = "managed_lakehouse"

// Version is the release in which the output came.
const Version = "0.1.0"

// Spec is the config specification of the output: the one source of its docs,
// defaults and lints.
func Spec() *service.ConfigSpec {
	return service.NewConfigSpec().
		Beta().
		Version(Version).
		Categories("Services").
		Summary("Writes rows to lakehouse tables: each batch of data is written once, as Parquet, and committed both as an Apache Iceberg snapshot and as a Delta Lake version.").
		Description(description).
		Fields(fields()...).
		LintRule(lints()).
		Example("A stream into one table",
			"Commits every minute, or every 100,000 rows if that comes first; a bounded input ends a second after its last row.", `
output:
  managed_lakehouse:
    warehouse: ./lakehouse
    table: events
    streaming:
      enabled: true
`).
		Example("Rows that do not fit go to a file",
			"A row that does not fit its table is refused alone, with its field, what was expected and what came. Without a fallback the input sends such a row again and again.", `
output:
  fallback:
    - managed_lakehouse:
        warehouse: ./lakehouse
        table: orders
        schema:
          - { name: id, type: long, required: true }
          - { name: price, type: "decimal(10,2)" }
          - { name: placed_at, type: timestamptz, unit: ms }
    - file:
        path: ./refused.ndjson
        codec: lines
      processors:
        - mapping: |
            root.row = content().string()
            root.why = @fallback_error
`).
		Example("Arrow files into a partitioned table",
			"Each file is one message: it is committed whole or refused whole. The rows of a commit are written partition by partition.", `
input:
  file:
    paths: [ ./flights/*.arrow ]
    scanner:
      to_the_end: {}

output:
  managed_lakehouse:
    warehouse: ./lakehouse
    table: flights
    message_format: arrow_ipc
    partition_by: [ "month(departure)", carrier ]
`).
		Example("One stream, many tables",
			"Namespace and table are interpolated; a name that is unfit for a folder is refused by row.", `
output:
  managed_lakehouse:
    warehouse: /data/lakehouse
    namespace: web.${! json("tenant") }
    table: ${! json("kind") }
    streaming:
      enabled: true
      commit_interval: 5m
`)
}

const description = `
Rows are acknowledged when the Iceberg snapshot that holds them is durable, and not before. Rows of many batches
share a commit: it is made when ` + "`row_limit`" + ` rows are pending, when the oldest one is ` + "`commit_interval`" + ` old, when every
write slot or the memory is taken, when the source has gone quiet, or when the process is asked to stop.

A table that does not exist is created by its first commit, with the types that fit all rows pending then; new fields become
new optional columns. A row that does not fit is refused alone and can be sent elsewhere with a ` + "`fallback`" + ` output: values are
never changed to make them fit.

The table lies in ` + "`<warehouse>/<namespace>/<table>`" + `: the Iceberg metadata in ` + "`iceberg`" + `, the data files and the Delta log
in ` + "`delta`" + `. The Delta table is a mirror of the Iceberg table: other programs may read it, and must not write to it.

== Stopping

The output cannot see that its input has ended; it ends a run when the input has been quiet for the ` + "`idle`" + ` time. Keep
` + "`batching.period`" + `, ` + "`idle`" + ` and the time of a commit together under three quarters of ` + "`shutdown_timeout`" + `; 60s is a good value for it.

== Not in this release

Upserts and deletes by key, overwrite, branches and tags.`

func fields() []*service.ConfigField {
	return []*service.ConfigField{
		service.NewStringField(fWarehouse).
			Description("The folder that holds all tables: a path, or `file:///` and an absolute path. It is created where it does not exist.").
			Examples("./lakehouse", "/data/lakehouse", "file:///data/lakehouse"),
		service.NewInterpolatedStringField(fNamespace).
			Description("The namespace of the table; dots separate levels. It may be different for each row.").
			Default("default").
			Examples("default", "web.clicks", `${! json("tenant") }`),
		service.NewInterpolatedStringField(fTable).
			Description("The table. It may be different for each row, so that one output fans out to many tables. Letters, digits, `_`, `-` and `.`, beginning with a letter or a digit; not `iceberg`, `delta`, `data` or `metadata`.").
			Examples("events", `${! json("kind") }`, `${! @topic }`),
		service.NewStringListField(fFormats).
			Description("The table formats to keep. Iceberg is always one of them, since Delta is made from it.").
			Default([]any{"iceberg", "delta"}).
			Example([]any{"iceberg"}),
		service.NewObjectField(fStreaming,
			service.NewBoolField(fEnabled).
				Description("Whether to commit while the source goes on. When off, as few commits are made as the room for unacknowledged rows allows, at best one, when the run completes; do not leave it off for a source without an end.").
				Default(false),
			service.NewDurationField(fCommitInterval).
				Description("At most this long between a row's arrival and the sealing of its commit. The default is 60s, or the tier's minimum where that is larger.").
				Optional().Examples("60s", "5m"),
			service.NewIntField(fRowLimit).
				Description("So many pending rows of a table make a commit. The write that reaches it brings all of its rows: no batch is split.").
				Default(100_000),
			service.NewDurationField(fIdle).
				Description("Once nothing has come for this long, and for three times the source's longest recent pause, what is pending is committed. The default is 1s, and 10s where streaming is off; `0s` turns it off, and then a bounded input ends only at the interval.").
				Optional().Examples("1s", "0s"),
		).Description("When commits are made."),
		service.NewStringAnnotatedEnumField(fTier, map[string]string{
			"professional": "2 streaming tables in a process, shortest interval 5m.",
			"premium":      "10 streaming tables in a process, shortest interval 1m.",
			"enterprise":   "Any number of streaming tables, shortest interval 10s.",
			"unlimited":    "No bounds.",
		}).Description("Bounds `streaming.commit_interval`, and the number of tables that streaming outputs of one process write to.").
			Default(defaultTier).
			LintRule(enumLint("tier", tierNames())).Advanced(),
		service.NewObjectField(fCatalog,
			service.NewObjectField(fFilesystem).
				Description("Nothing but files in the warehouse, in the layout of Hadoop tables. The default.").Optional(),
			service.NewObjectField(fSQL,
				service.NewStringField(fDriver).
					Description("The kind of database.").Default("sqlite").
					LintRule(enumLint("catalog.sql.driver", sqlDrivers)),
				service.NewStringField(fDSN).
					Description("How to reach the database; for `sqlite` the path of its file. It may hold a password and is never logged.").
					Secret().Example("./lakehouse/catalog.db"),
				service.NewStringField(fName).
					Description("The name of the catalog within the database. Readers must use the same.").Default("lakehouse"),
			).Description("Tables are known to a SQL database, in the layout of the Iceberg JDBC catalog.").Optional(),
		).Description("Where tables are known. Exactly one of the fields; `filesystem` if there is none.").
			Default(map[string]any{fFilesystem: map[string]any{}}).
			Example(map[string]any{fSQL: map[string]any{fDriver: "sqlite", fDSN: "./catalog.db"}}).Advanced(),
		service.NewObjectListField(fSchema, columnFields()...).
			Description("Columns whose types are to be declared rather than inferred; others still are inferred.").
			Default([]any{}).
			Example([]any{
				map[string]any{fName: "id", fType: "long", fRequired: true},
				map[string]any{fName: "price", fType: "decimal(10,2)", fDoc: "in euros"},
				map[string]any{fName: "at", fType: "timestamptz", fUnit: "ms"},
				map[string]any{fName: "items", fType: "list<struct<sku: string, count: int>>"},
			}),
		service.NewObjectField(fSchemaEvolution,
			service.NewBoolField(fEnabled).
				Description("Whether new fields become new optional columns. When off, a row with a field that the table lacks is refused.").
				Default(true),
			service.NewBoolField(fInferTimestamps).
				Description("Whether a new column is a timestamp where all of its values are RFC 3339 date-times; otherwise it is a string.").
				Default(false),
			service.NewStringAnnotatedEnumField(fOnTypeConflict, map[string]string{
				"reject": "The row is refused.",
				"string": "The JSON text of the value is stored, where the column is a string; a new column becomes one where no other type fits all values.",
			}).Description("What becomes of a value that does not fit its column.").
				Default("reject").LintRule(enumLint("schema_evolution.on_type_conflict", conflictPolicies)),
			service.NewIntField(fMaxColumns).
				Description("The most columns a table may have, counted as leaves. Data with keys that are values (ids, dates) belongs into a declared `map` or `string`.").
				Default(1000).LintRule(minLint("schema_evolution.max_columns", 1)),
			service.NewIntField(fMaxDepth).
				Description("The deepest nesting of a column.").
				Default(32).LintRule(minLint("schema_evolution.max_depth", 1)),
		).Description("What becomes of fields that are not columns yet.").Advanced(),
		service.NewStringAnnotatedEnumField(fNumbers, map[string]string{
			"exact":  "A JSON integer infers to long.",
			"double": "Every JSON number infers to double.",
		}).Description("What a JSON integer infers to.").Default("exact").
			LintRule(enumLint("numbers", numberPolicies)).Advanced(),
		service.NewStringAnnotatedEnumField(fTimestampPrecision, map[string]string{
			"reject":   "The row is refused.",
			"truncate": "Digits past the microsecond are cut off.",
		}).Description("What becomes of a timestamp that is finer than a microsecond.").Default("reject").
			LintRule(enumLint("timestamp_precision", precisionPolicies)).Advanced(),
		service.NewStringAnnotatedEnumField(fColumnNames, map[string]string{
			"normalize": "Each character that Delta cannot hold becomes `_`; rows whose names then collide are refused.",
			"reject":    "The row is refused.",
			"map":       "The name is kept, by Delta's column mapping, which older readers lack. Fixed when a table is made; empty names and control characters are refused.",
		}).Description("What becomes of a field whose name a Delta column cannot have: one that is empty or holds a space, a control character or one of `,;{}()=`.").Default("normalize").
			LintRule(enumLint("column_names", namePolicies)).Advanced(),
		service.NewStringListField(fPartitionBy).
			Description("How the Iceberg table is partitioned, fixed when a table is made: a list of columns, or of `year`, `month`, `day`, `hour`, `bucket(n, …)` and `truncate(w, …)` of one; dots lead into structs. A table that exists must be partitioned in the same way. The columns must be in the rows of the first commit, or in `schema`. The Delta table is not partitioned, and prunes by statistics. A commit writes a file for each partition that its rows fall into, so choose few of them.").
			Default([]any{}).
			Example([]any{"day(ts)"}).Example([]any{"day(order.placed_at)", "country", "bucket(16, user_id)"}).Advanced(),
		service.NewStringAnnotatedEnumField(fMessageFormat, map[string]string{
			"json":      "One JSON object: a row.",
			"ndjson":    "JSON objects, one a line.",
			"arrow_ipc": "An Arrow IPC stream or file. Columns match by name.",
			"parquet":   "A Parquet file. Columns match by name.",
		}).Description("What the payload of a message holds. Where that is many rows, the message is the unit: all its rows are in one commit, and one row that does not fit refuses the message, with an error that names the row, from 0. Rows are what `row_limit` counts, messages are what `batching.count` and `lakehouse_rows_refused` count.").
			Default("json").LintRule(enumLint("message_format", messageFormats)).Advanced(),
		service.NewStringMapField(fTableProperties).
			Description("Properties of tables that are created, by Iceberg's names.").
			Default(map[string]any{}).Example(map[string]any{"owner": "data-platform"}).Advanced(),
		service.NewObjectField(fParquet,
			service.NewStringAnnotatedEnumField(fCompression, map[string]string{
				"zstd":   "Small and fast.",
				"snappy": "As fast, half as large again.",
				"gzip":   "Slow, for old readers.",
				"none":   "No compression.",
			}).Description("How pages are compressed.").Default("zstd").
				LintRule(enumLint("parquet.compression", codecs)),
			service.NewIntField(fCompressionLevel).
				Description("The codec's level; 0 is its default, which is 1 for zstd: higher ones are slower and hardly smaller on row data.").
				Default(0),
			service.NewIntField(fRowGroupRows).
				Description("The most rows of a row group.").
				Default(131_072).LintRule(minLint("parquet.row_group_rows", 1)),
		).Description("How data files are written.").Advanced(),
		service.NewStringField(fMemoryLimit).
			Description("Bytes of rows that are accepted and not yet committed, with what they take as columns. When it is reached, writes wait and the input stops reading. A batch larger than all of it is let in alone. The batches that wait come on top, at most `max_in_flight` of them; the whole process takes about 200 MiB more than this.").
			Default(defaultMemoryLimit).Examples("256MiB", "1GiB", "64MB").
			LintRule(`root = if this.type() == "string" && !this.re_match("^\\s*[0-9]+(\\.[0-9]+)?\\s*([kKmMgGtT]i?)?[bB]?\\s*$") { [ "field memory_limit: %q is no size; it may be a number of bytes, or one with a unit: 64MB, 256MiB, 1GiB".format(this) ] }`).
			Advanced(),
		service.NewBatchPolicyField(fBatching).
			Default(map[string]any{"count": defaultBatchCount, "period": defaultBatchPeriod, "byte_size": 0, "check": "", "processors": []any{}}),
		service.NewIntField(fMaxInFlight).
			Description("The most batches to be written at once. Since a batch is acknowledged by the commit that holds it, this times `batching.count` bounds the rows of a commit.").
			Default(defaultMaxInFlight).LintRule(minLint("max_in_flight", 1)),
	}
}

const (
	defaultBatchCount  = 1000
	defaultBatchPeriod = "100ms"
	defaultMaxInFlight = 256
	defaultMemoryLimit = "256MiB"
)

// What fields of choice may hold.
var (
	knownFormats      = []string{"iceberg", "delta"}
	sqlDrivers        = []string{"sqlite"}
	conflictPolicies  = []string{"reject", "string"}
	numberPolicies    = []string{"exact", "double"}
	precisionPolicies = []string{"reject", "truncate"}
	namePolicies      = []string{"normalize", "reject", "map"}
	codecs            = []string{"zstd", "snappy", "gzip", "none"}
	messageFormats    = []string{"json", "ndjson", "arrow_ipc", "parquet"}
)

// enumLint is the lint of a field of choice; it says what the field may hold.
func enumLint(field string, options []string) string {
	quoted := make([]string, len(options))
	for i, o := range options {
		quoted[i] = fmt.Sprintf("%q", o)
	}
	return fmt.Sprintf(`root = if !([%s].contains(this)) { [ "field %s: %%v is not known; it may be %s".format(this) ] }`,
		strings.Join(quoted, ", "), field, strings.Join(options, ", "))
}

// minLint is the lint of a number with a least value.
func minLint(field string, least int) string {
	return fmt.Sprintf(`root = if this.type() == "number" && this < %d { [ "field %s: %%v is too small; it must be at least %d".format(this) ] }`, least, field, least)
}

func init() {
	service.MustRegisterBatchOutput(Name, Spec(), construct)
}
