package output

import (
	"fmt"
	"strings"
)

// lints is the Bloblang mapping of the lints that look at more than one field, or
// at what a field's text means. It sees only what the config sets; `this` is the
// output's config. What cannot be told from the text alone (an interpolated name,
// a value from elsewhere) is left to the checks at construction.
func lints() string {
	return strings.Join([]string{
		lintDurations,
		`let lints = []`,
		lintWarehouse,
		lintTable,
		lintFormats(),
		lintStreaming(),
		lintCatalog,
		lintSchema,
		lintPartition,
		lintProperties,
		lintParquet,
		`root = $lints.flatten().filter(l -> l != "")`,
	}, "\n")
}

// Durations are read by a mapping of our own: the method that Bloblang has for
// them comes with a package that a build may load after this one.
const lintDurations = `
let duration = "^([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$"
map nanoseconds {
  let units = {"ns": 1, "us": 1000, "µs": 1000, "ms": 1000000, "s": 1000000000, "m": 60000000000, "h": 3600000000000}
  root = this.re_find_all_submatch("([0-9.]+)(ns|us|µs|ms|s|m|h)").fold(0, item -> item.tally + item.value.index(1).number() * $units.get(item.value.index(2)))
}`

// Each part adds to $lints. Bloblang variables can be assigned anew.
const lintWarehouse = `
let warehouse = this.warehouse | null
let lints = $lints.append(if $warehouse.type() == "string" {
  if $warehouse.trim() == "" {
    "field warehouse: it is empty; it must be a folder: ./lakehouse, /data/lakehouse, file:///data/lakehouse"
  } else if $warehouse.contains("://") && !$warehouse.has_prefix("file:///") {
    "field warehouse: %q is not known; it may be a folder (./lakehouse, /data/lakehouse) or file:/// with an absolute path".format($warehouse)
  } else { "" }
} else { "" })`

const lintTable = `
let names = [["table", this.table | null, "^[A-Za-z0-9][A-Za-z0-9_.-]*$"], ["namespace", this.namespace | null, "^[A-Za-z0-9][A-Za-z0-9_-]*([.][A-Za-z0-9][A-Za-z0-9_-]*)*$"]]
let lints = $lints.append($names.map_each(n -> match {
  n.index(1).type() != "string" => "",
  n.index(1).contains("${!") => "",
  n.index(1) == "" => "field %v: it is empty; it must be a name".format(n.index(0)),
  !n.index(1).re_match(n.index(2)) || n.index(1).contains("..") || n.index(1).has_suffix(".") => "field %v: %q is no name for a folder; it may hold letters, digits, ` + "`_`, `-` and `.`" + `, and begins with a letter or a digit".format(n.index(0), n.index(1)),
  n.index(1).lowercase().split(".").any(l -> ["iceberg", "delta", "data", "metadata"].contains(l)) && (n.index(0) == "namespace" || !n.index(1).contains(".")) => "field %v: %q is taken; iceberg, delta, data and metadata are folders inside of tables".format(n.index(0), n.index(1)),
  _ => "",
}))`

func lintFormats() string {
	return `
let formats = if this.exists("formats") { this.formats | [] } else { ["iceberg", "delta"] }
let lints = $lints.append(if $formats.type() == "array" {
  $formats.filter(f -> !["iceberg", "delta"].contains(f)).map_each(f -> "field formats: %v is not known; it may be [iceberg, delta] or [iceberg]".format(f))
} else { [] })
let lints = $lints.append(if $formats.type() == "array" && !$formats.contains("iceberg") {
  "field formats: [%v] lacks iceberg; it may be [iceberg, delta] or [iceberg], since Delta versions are made from Iceberg snapshots".format($formats.map_each(f -> f.string()).join(", "))
} else { "" })`
}

func lintStreaming() string {
	var minima, names []string
	for _, t := range tiers {
		minima = append(minima, fmt.Sprintf("%q: %d", t.Name, t.MinInterval.Nanoseconds()))
		names = append(names, fmt.Sprintf("%q: %q", t.Name, t.MinInterval.String()))
	}
	return `
let tier = this.tier | "` + defaultTier + `"
let minima = {` + strings.Join(minima, ", ") + `}
let minimum_names = {` + strings.Join(names, ", ") + `}
let streaming = if this.streaming.type() == "object" { this.streaming } else { {} }
let interval = ($streaming.commit_interval | "").string()
let interval_ns = if $interval.re_match($duration) { $interval.apply("nanoseconds") } else { -1 }
let lints = $lints.append(match {
  $interval == "" => "",
  $interval_ns <= 0 => "field streaming.commit_interval: %q is no positive duration; it may be 60s, 5m, 1h".format($interval),
  $minima.exists($tier) && $interval_ns < $minima.get($tier) => "field streaming.commit_interval: %v is under the minimum of tier %v; it must be at least %v".format($interval, $tier, $minimum_names.get($tier)),
  _ => "",
})
let idle = ($streaming.idle | "").string()
let lints = $lints.append(if $idle != "" && $idle != "0" && !$idle.re_match($duration) {
  "field streaming.idle: %q is no duration; it may be 1s, 500ms, or 0s to turn it off".format($idle)
} else { "" })
let limit = $streaming.row_limit | 1
let lints = $lints.append(if $limit.type() == "number" && $limit < 1 {
  "field streaming.row_limit: %v is too small; it must be at least 1".format($limit)
} else { "" })`
}

const lintCatalog = `
let catalog = if this.catalog.type() == "object" { this.catalog } else { {} }
let lints = $lints.append(if $catalog.length() > 1 {
  "field catalog: it holds %v; it may hold exactly one of filesystem, sql".format($catalog.keys().sort().join(" and "))
} else { "" })
let lints = $lints.append(if $catalog.sql.type() == "object" && $catalog.sql.dsn == "" {
  "field catalog.sql.dsn: it is missing; it must say how to reach the database, for sqlite the path of its file"
} else { "" })`

// lintSchema looks at the types of declared columns; how their spelling nests is
// left to the check at construction.
const lintSchema = `
map column_lints {
  let where = this.where
  let column = this.column
  let type = ($column.type | "").string().trim()
  let words = $type.re_replace_all("[^<>,:]+:", "").re_find_all("[A-Za-z_][A-Za-z0-9_]*")
  let known = ["boolean", "int", "long", "float", "double", "decimal", "date", "timestamp", "timestamptz", "string", "binary", "struct", "list", "map"]
  let instead = {"time": "string", "uuid": "string", "fixed": "binary", "timestamp_ns": "timestamp", "timestamptz_ns": "timestamptz"}
  let nested = [
    if $column.fields.type() == "array" { $column.fields.enumerated().map_each(f -> {"where": $where + ".fields[" + f.index.string() + "]", "column": f.value}.apply("column_lints")).flatten() } else { [] },
    if $column.element.type() == "object" { {"where": $where + ".element", "column": $column.element}.apply("column_lints") } else { [] },
    if $column.key.type() == "object" { {"where": $where + ".key", "column": $column.key}.apply("column_lints") } else { [] },
    if $column.value.type() == "object" { {"where": $where + ".value", "column": $column.value}.apply("column_lints") } else { [] },
  ]
  let unknown = $words.map_each(w -> match {
    $known.contains(w.lowercase()) => "",
    $instead.exists(w.lowercase()) => "field %v.type: %q is a type that Delta lacks; use %v".format($where, w, $instead.get(w.lowercase())),
    _ => "field %v.type: %q is not known; it may be %v".format($where, w, $known.join(", ")),
  })
  let decimals = $type.re_find_all_submatch("decimal\\(\\s*([0-9]+)\\s*,\\s*([0-9]+)\\s*\\)").map_each(d -> if d.index(1).number() < 1 || d.index(1).number() > 38 || d.index(2).number() > d.index(1).number() {
    "field %v.type: %q does not exist; a decimal has 1 to 38 digits, of which 0 to all after the point".format($where, d.index(0))
  } else { "" })
  root = [$unknown, $decimals, $nested.flatten()].flatten()
}
let lints = $lints.append(if this.schema.type() == "array" {
  this.schema.enumerated().map_each(c -> if c.value.type() == "object" { {"where": "schema[" + c.index.string() + "]", "column": c.value}.apply("column_lints") } else { [] }).flatten()
} else { [] })`

// lintPartition looks at each element of partition_by, and at the types of those of
// its columns that the schema declares field by field; types that are spelled out
// are left to the check at construction.
const lintPartition = `
let transforms = {
  "identity": ["boolean", "int", "long", "float", "double", "decimal", "date", "timestamp", "timestamptz", "string", "binary"],
  "year": ["date", "timestamp", "timestamptz"],
  "month": ["date", "timestamp", "timestamptz"],
  "day": ["date", "timestamp", "timestamptz"],
  "hour": ["timestamp", "timestamptz"],
  "bucket": ["int", "long", "decimal", "date", "timestamp", "timestamptz", "string", "binary"],
  "truncate": ["int", "long", "decimal", "string", "binary"],
}
map partition_type {
  let path = this.path
  let columns = if this.columns.type() == "array" { this.columns.filter(c -> c.type() == "object") } else { [] }
  let same = $columns.filter(c -> c.name == $path)
  let around = $columns.filter(c -> $path.has_prefix(c.name.string() + "."))
  let found = if $same.length() > 0 { $same.index(0) } else if $around.length() > 0 { $around.index(0) } else { {} }
  let kind = ($found.type | "").string().trim().lowercase().re_replace_all("[(<].*$", "")
  root = if $same.length() > 0 || ["list", "map"].contains($kind) { $kind } else if $around.length() > 0 {
    {"path": $path.slice($found.name.length() + 1), "columns": $found.fields | []}.apply("partition_type")
  } else { "" }
}
map partition_lint {
  let where = "field partition_by[" + this.index.string() + "]"
  let expr = this.expr
  let call = $expr.re_find_all_submatch("^\\s*([a-z]+)\\s*\\(\\s*(.*?)\\s*\\)\\s*$")
  let name = if $call.length() > 0 { $call.index(0).index(1) } else { "identity" }
  let args = if $call.length() > 0 { $call.index(0).index(2).split(",").map_each(a -> a.trim()) } else { [$expr.trim()] }
  let source = $args.index(-1)
  let type = {"path": $source, "columns": this.columns}.apply("partition_type")
  root = match {
    $call.length() == 0 && ($source == "" || $source.re_match("[(),]")) => "%v: %q is no partition field; it may be a column, or one of identity, year, month, day, hour, bucket(n, …), truncate(w, …) of one".format($where, $expr),
    !this.transforms.exists($name) => "%v: %q has an unknown transform; it may be one of identity, year, month, day, hour, bucket, truncate".format($where, $expr),
    ["bucket", "truncate"].contains($name) && ($args.length() != 2 || $source == "" || !$args.index(0).re_match("^[0-9]{1,9}$") || $args.index(0).re_match("^0+$")) => "%v: %q lacks a width; it must be %v(n, column) with a whole number n of at least 1".format($where, $expr, $name),
    !["bucket", "truncate"].contains($name) && ($args.length() != 1 || $source == "") => "%v: %q is wrong; %v takes one column".format($where, $expr, $name),
    $type == "struct" => "%v: column %q is a struct; name one of its fields, as in %v.field".format($where, $source, $source),
    ["list", "map"].contains($type) => "%v: column %q is in a list or map, which has no one value for a row; name another column".format($where, $source),
    $type != "" && !this.transforms.get($name).contains($type) => "%v: %v cannot be applied to column %q of type %v; it may be %v".format($where, $name, $source, $type, this.transforms.map_each(t -> t.value.contains($type)).filter(t -> t.value).keys().sort().join(", ")),
    _ => "",
  }
}
let lints = $lints.append(if this.partition_by.type() == "array" {
  this.partition_by.enumerated().map_each(p -> if p.value.type() == "string" { {"index": p.index, "expr": p.value, "columns": this.schema | [], "transforms": $transforms}.apply("partition_lint") } else { "" })
} else { [] })`

// The reasons are in icebergtable.CheckProperties, which is asked at start too.
const lintProperties = `
let properties = this.table_properties | {}
let lints = $lints.append(if $properties.type() == "object" {
  $properties.key_values().map_each(p -> match {
    ["write.data.path", "write.metadata.path", "write.metadata.location"].contains(p.key) => "field table_properties: %v is %v, but where a table's files lie is fixed; leave it out".format(p.key, p.value),
    p.key == "format-version" && p.value.string() != "2" => "field table_properties: format-version is %v, but tables are made in format version 2; leave it out".format(p.value),
    p.key == "write.metadata.compression-codec" && p.value.string() != "none" => "field table_properties: write.metadata.compression-codec is %v, but metadata files are not compressed; leave it out".format(p.value),
    p.key == "write.metadata.delete-after-commit.enabled" && p.value.string() != "false" => "field table_properties: write.metadata.delete-after-commit.enabled is %v, but metadata files are deleted by age; leave it out".format(p.value),
    _ => "",
  })
} else { "" })`

const lintParquet = `
let level = this.parquet.compression_level | 0
let codec = this.parquet.compression | "zstd"
let top = {"zstd": 22, "gzip": 9}.get($codec) | 0
let lints = $lints.append(if $level.type() == "number" && ($level < 0 || $level > $top) {
  "field parquet.compression_level: %v is no level of %v; it must be from 0 to %v".format($level, $codec, $top)
} else { "" })`
