package output

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/managed-lakehouse/managed-lakehouse/arrowconv"
)

// lintsOf are the lints of an output config, given as the fields below its name.
func lintsOf(t *testing.T, fields string) (out []string) {
	t.Helper()
	linter := service.GlobalEnvironment().NewComponentConfigLinter()
	var b strings.Builder
	b.WriteString(Name + ":\n")
	for line := range strings.Lines(fields) {
		b.WriteString("  " + line)
	}
	lints, err := linter.LintOutputYAML([]byte(b.String()))
	require.NoError(t, err)
	for _, l := range lints {
		out = append(out, l.What)
	}
	return out
}

func TestLints(t *testing.T) {
	const ok = "warehouse: ./w\ntable: t\n"
	for name, c := range map[string]struct {
		fields string
		want   []string // parts of the lints, one each
	}{
		"least":                 {ok, nil},
		"missing warehouse":     {"table: t\n", []string{"field warehouse is required"}},
		"missing table":         {"warehouse: ./w\n", []string{"field table is required"}},
		"unknown field":         {ok + "shiny: true\n", []string{"field shiny not recognised"}},
		"empty warehouse":       {"warehouse: \"\"\ntable: t\n", []string{"field warehouse: it is empty"}},
		"a bucket":              {"warehouse: s3://b/p\ntable: t\n", []string{`field warehouse: "s3://b/p" is not known`}},
		"a file URL":            {"warehouse: file:///w\ntable: t\n", nil},
		"interpolated":          {"warehouse: ./w\ntable: '${! json(\"t\") }'\nnamespace: 'a.${! @x }'\n", nil},
		"table leaves":          {"warehouse: ./w\ntable: ../t\n", []string{`field table: "../t" is no name`}},
		"table underscore":      {"warehouse: ./w\ntable: _t\n", []string{`field table: "_t" is no name`}},
		"table reserved":        {"warehouse: ./w\ntable: Delta\n", []string{`field table: "Delta" is taken`}},
		"table with a dot":      {"warehouse: ./w\ntable: events.v2\n", nil},
		"namespace levels":      {ok + "namespace: a.b.c\n", nil},
		"namespace reserved":    {ok + "namespace: a.metadata\n", []string{`field namespace: "a.metadata" is taken`}},
		"namespace empty level": {ok + "namespace: a..b\n", []string{`field namespace: "a..b" is no name`}},
		"iceberg alone":         {ok + "formats: [iceberg]\n", nil},
		"delta alone":           {ok + "formats: [delta]\n", []string{"field formats: [delta] lacks iceberg; it may be [iceberg, delta] or [iceberg]"}},
		"no format":             {ok + "formats: []\n", []string{"lacks iceberg"}},
		"unknown format":        {ok + "formats: [iceberg, hudi]\n", []string{"field formats: hudi is not known"}},
		"unknown tier":          {ok + "tier: gold\n", []string{"field tier: gold is not known; it may be professional, premium, enterprise, unlimited"}},
		"interval under tier":   {ok + "streaming: {enabled: true, commit_interval: 9s}\n", []string{"field streaming.commit_interval: 9s is under the minimum of tier enterprise; it must be at least 10s"}},
		"interval at tier":      {ok + "streaming: {enabled: true, commit_interval: 10s}\n", nil},
		"interval of two units": {ok + "tier: premium\nstreaming: {commit_interval: 1m30s}\n", nil},
		"interval in ms":        {ok + "tier: premium\nstreaming: {commit_interval: 59999ms}\n", []string{"at least 1m0s"}},
		"interval, professional": {ok + "tier: professional\nstreaming: {commit_interval: 4m59s}\n",
			[]string{"at least 5m0s"}},
		"interval, unlimited": {ok + "tier: unlimited\nstreaming: {commit_interval: 50ms}\n", nil},
		"interval of zero":    {ok + "tier: unlimited\nstreaming: {commit_interval: 0s}\n", []string{"is no positive duration"}},
		"interval is no time": {ok + "streaming: {commit_interval: soon}\n", []string{`"soon" is no positive duration`}},
		"idle off":            {ok + "streaming: {idle: 0s}\n", nil},
		"idle negative":       {ok + "streaming: {idle: -1s}\n", []string{"field streaming.idle"}},
		"row limit":           {ok + "streaming: {row_limit: 0}\n", []string{"field streaming.row_limit: 0 is too small"}},
		"two catalogs":        {ok + "catalog: {filesystem: {}, sql: {dsn: x}}\n", []string{"field catalog: it holds filesystem and sql; it may hold exactly one of"}},
		"sql":                 {ok + "catalog: {sql: {driver: sqlite, dsn: ./c.db}}\n", nil},
		"sql driver":          {ok + "catalog: {sql: {driver: oracle, dsn: ./c.db}}\n", []string{"field catalog.sql.driver: oracle is not known; it may be sqlite"}},
		"sql without dsn":     {ok + "catalog: {sql: {}}\n", []string{"field dsn is required"}},
		"unknown catalog":     {ok + "catalog: {nessie: {}}\n", []string{"field nessie not recognised"}},
		"memory limit":        {ok + "memory_limit: much\n", []string{`field memory_limit: "much" is no size`}},
		"max in flight":       {ok + "max_in_flight: 0\n", []string{"field max_in_flight: 0 is too small"}},
		"numbers":             {ok + "numbers: rounded\n", []string{"field numbers: rounded is not known; it may be exact, double"}},
		"names":               {ok + "column_names: shout\n", []string{"field column_names: shout is not known"}},
		"compression":         {ok + "parquet: {compression: lzma}\n", []string{"field parquet.compression: lzma is not known"}},
		"conflicts":           {ok + "schema_evolution: {on_type_conflict: guess}\n", []string{"field schema_evolution.on_type_conflict: guess is not known; it may be reject, string"}},
		"columns": {ok + "schema: [{name: a, type: long}, {name: b, type: 'decimal(10,2)'}, {name: c, type: 'map<string, list<struct<uuid: string, time: timestamptz>>>'}]\n",
			nil},
		"nested columns": {ok + "schema: [{name: a, type: struct, fields: [{name: b, type: list, element: {type: int}}]}, {name: m, type: map, value: {type: date, unit: d}}]\n",
			nil},
		"a type of Iceberg": {ok + "schema: [{name: a, type: uuid}, {name: b, type: 'list<time>'}]\n",
			[]string{`field schema[0].type: "uuid" is a type that Delta lacks; use string`, `field schema[1].type: "time" is a type that Delta lacks; use string`}},
		"an unknown type": {ok + "schema: [{name: a, type: varchar}]\n", []string{`field schema[0].type: "varchar" is not known; it may be boolean, int`}},
		"an unknown type within": {ok + "schema: [{name: a, type: struct, fields: [{name: b, type: list, element: {type: text}}]}]\n",
			[]string{`field schema[0].fields[0].element.type: "text" is not known`}},
		"a decimal too wide":    {ok + "schema: [{name: a, type: 'decimal(39,2)'}]\n", []string{"a decimal has 1 to 38 digits"}},
		"an unknown unit":       {ok + "schema: [{name: a, type: timestamptz, unit: h}]\n", []string{"field unit: h is not known"}},
		"a column without type": {ok + "schema: [{name: a}]\n", []string{"field type is required"}},
		"message format":        {ok + "message_format: avro\n", []string{"field message_format: avro is not known; it may be json, ndjson, arrow_ipc, parquet"}},
		"message formats":       {ok + "message_format: arrow_ipc\n", nil},
		"partitions": {ok + "partition_by: [country, identity(a.b), day(ts), 'bucket(16, id)', 'truncate( 4 , name )']\nschema: [{name: ts, type: date}, {name: name, type: string}]\n",
			nil},
		"partitions, not so": {ok + "partition_by: ['', week(ts), 'bucket(0, id)', bucket(id), 'truncate(x, id)', 'day(a, b)', 'day(', 'bucket(4, )']\n", []string{
			`field partition_by[0]: "" is no partition field`,
			`field partition_by[1]: "week(ts)" has an unknown transform; it may be one of identity, year, month, day, hour, bucket, truncate`,
			`field partition_by[2]: "bucket(0, id)" lacks a width; it must be bucket(n, column) with a whole number n of at least 1`,
			`field partition_by[3]: "bucket(id)" lacks a width`,
			`field partition_by[4]: "truncate(x, id)" lacks a width`,
			`field partition_by[5]: "day(a, b)" is wrong; day takes one column`,
			`field partition_by[6]: "day(" is no partition field`,
			`field partition_by[7]: "bucket(4, )" lacks a width`,
		}},
		"partitions of declared columns": {ok + `partition_by: [o, 'o.l', 'o.l.k', 'day(o.s)', 'hour(d)', 'bucket(4, f)', 'truncate(2, p)', 'spelled', 'spelled.x', o.unknown]
schema:
  - {name: o, type: struct, fields: [{name: l, type: list, element: {type: string}}, {name: s, type: string}]}
  - {name: d, type: date}
  - {name: f, type: double}
  - {name: p, type: "decimal(9,2)"}
  - {name: spelled, type: "struct<x: long>"}
`, []string{
			`field partition_by[0]: column "o" is a struct; name one of its fields, as in o.field`,
			`field partition_by[1]: column "o.l" is in a list or map`,
			`field partition_by[2]: column "o.l.k" is in a list or map`,
			`field partition_by[3]: day cannot be applied to column "o.s" of type string; it may be bucket, identity, truncate`,
			`field partition_by[4]: hour cannot be applied to column "d" of type date; it may be bucket, day, identity, month, year`,
			`field partition_by[5]: bucket cannot be applied to column "f" of type double; it may be identity`,
			`field partition_by[7]: column "spelled" is a struct`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := lintsOf(t, c.fields)
			require.Len(t, got, len(c.want), "%q", got)
			for _, w := range c.want {
				require.Condition(t, func() bool {
					for _, g := range got {
						if strings.Contains(g, w) {
							return true
						}
					}
					return false
				}, "%q lacks %q", got, w)
			}
		})
	}
}

// What lints find, the checks at construction find as well: a config may come from
// code, or be run in spite of its lints.
func TestConstructionChecks(t *testing.T) {
	const ok = "warehouse: ./w\ntable: t\n"
	for name, c := range map[string]struct{ fields, want string }{
		"bucket":           {"warehouse: gs://b\ntable: t\n", `field warehouse: "gs://b" is not known`},
		"empty":            {"warehouse: ' '\ntable: t\n", "field warehouse: it is empty"},
		"table":            {"warehouse: ./w\ntable: a/b\n", `field table: "a/b" is no name for a folder: it holds '/'`},
		"namespace":        {ok + "namespace: a.iceberg\n", "it is the name of a folder inside of tables"},
		"formats":          {ok + "formats: [delta]\n", "lacks iceberg"},
		"tier":             {ok + "tier: gold\n", "field tier: \"gold\" is no tier; it may be professional, premium"},
		"interval":         {ok + "tier: premium\nstreaming: {commit_interval: 59s}\n", "field streaming.commit_interval: 59s is under the minimum of tier premium; it must be at least 1m0s"},
		"interval text":    {ok + "streaming: {commit_interval: soon}\n", `field streaming.commit_interval: "soon" is no duration`},
		"idle":             {ok + "streaming: {idle: -1s}\n", "field streaming.idle: -1s is negative"},
		"row limit":        {ok + "streaming: {row_limit: 0}\n", "field streaming.row_limit: 0 is too small"},
		"catalogs":         {ok + "catalog: {filesystem: {}, sql: {dsn: x}}\n", "exactly one of filesystem, sql"},
		"dsn":              {ok + "catalog: {sql: {dsn: ''}}\n", "field catalog.sql.dsn: it is missing"},
		"memory":           {ok + "memory_limit: lots\n", "field memory_limit: \"lots\" is no size"},
		"column type":      {ok + "schema: [{name: a, type: 'list<long'}]\n", "field schema: "},
		"column name":      {ok + "schema: [{name: '', type: long}]\n", "field schema[0].name: it is missing"},
		"column field":     {ok + "schema: [{name: a, type: struct, fields: [{name: b, type: long, colour: red}]}]\n", "field schema[0].fields[0].colour: it is not known"},
		"nested type":      {ok + "schema: [{name: a, type: struct, fields: [{name: b}]}]\n", "field schema[0].fields[0].type: it is missing"},
		"message format":   {ok + "message_format: avro\n", `field message_format: "avro" is not known; it may be json, ndjson, arrow_ipc, parquet`},
		"transform":        {ok + "partition_by: [a, week(ts)]\n", `field partition_by[1]: partition field "week(ts)": unknown transform "week"`},
		"width":            {ok + "partition_by: ['bucket(0, a)']\n", "whole number n of at least 1"},
		"struct":           {ok + "partition_by: [a]\nschema: [{name: a, type: 'struct<b: long>'}]\n", `field partition_by: column "a" is a struct; name one of its fields, as in a.field`},
		"list":             {ok + "partition_by: [a.b]\nschema: [{name: a, type: 'list<struct<b: long>>'}]\n", `field partition_by: column "a" is a list or map`},
		"spelled out":      {ok + "partition_by: [day(a.b)]\nschema: [{name: a, type: 'struct<b: long>'}]\n", `day cannot be applied to column "a.b" of type long; it may be identity, bucket, truncate`},
		"twice":            {ok + "partition_by: ['bucket(4, a)', 'bucket(8, a)']\n", `"bucket(4, a)" and "bucket(8, a)" would both be called "a_bucket"`},
		"required of text": {ok + "schema: [{name: a, type: struct, fields: [{name: b, type: long, required: yes please}]}]\n", "field schema[0].fields[0].required: it must be true or false"},
	} {
		t.Run(name, func(t *testing.T) {
			conf, err := Spec().ParseYAML(c.fields, nil)
			require.NoError(t, err)
			_, err = parseConfig(conf)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func parsed(t *testing.T, fields string) *config {
	t.Helper()
	conf, err := Spec().ParseYAML(fields, nil)
	require.NoError(t, err)
	c, err := parseConfig(conf)
	require.NoError(t, err)
	return c
}

func TestDefaults(t *testing.T) {
	c := parsed(t, "warehouse: ./w\ntable: t\n")
	require.Equal(t, []string{"default", "t"}, c.ident)
	require.True(t, c.delta)
	require.Equal(t, triggerConfig{
		Interval: time.Minute, RowLimit: 100_000, IdleFloor: 10 * time.Second, Slots: 256, Budget: 256 << 20,
	}, c.trigger)
	require.Nil(t, c.sql)
	require.True(t, c.convert.Evolve)
	require.False(t, c.convert.Widen, "Delta tables are not widened")
	require.Equal(t, 1000, c.batching.Count)
	require.Equal(t, "100ms", c.batching.Period)
	require.Empty(t, warnings(c))

	c = parsed(t, "warehouse: ./w\ntable: t\nstreaming: {enabled: true}\n")
	require.Equal(t, time.Second, c.trigger.IdleFloor)
	require.Empty(t, warnings(c), "the defaults do not warn")

	c = parsed(t, "warehouse: ./w\ntable: t\ntier: professional\nformats: [iceberg]\n")
	require.Equal(t, 5*time.Minute, c.trigger.Interval, "the tier's minimum where it is larger than 60s")
	require.True(t, c.convert.Widen)
}

func TestACountWithoutPeriodGetsOne(t *testing.T) {
	c := parsed(t, "warehouse: ./w\ntable: t\nbatching: {count: 50, period: ''}\n")
	require.Equal(t, "100ms", c.batching.Period, "or every bounded input hangs")
	c = parsed(t, "warehouse: ./w\ntable: t\nbatching: {count: 0, period: ''}\n")
	require.True(t, c.batching.IsNoop())
}

func TestMessagesOfManyRows(t *testing.T) {
	c := parsed(t, "warehouse: ./w\ntable: t\nmessage_format: parquet\nstreaming: {enabled: true}\nmax_in_flight: 1\npartition_by: ['day(ts)', a.b]\n")
	require.Equal(t, arrowconv.Parquet, c.convert.Format)
	require.Equal(t, 16<<20, c.batching.ByteSize, "a thousand files are no batch")
	require.Empty(t, warnings(c), "nobody knows how many rows are in a message")
	require.Len(t, c.tableOptions().PartitionBy, 2)
	c = parsed(t, "warehouse: ./w\ntable: t\nmessage_format: ndjson\nmemory_limit: 8MiB\nbatching: {count: 10}\n")
	require.Equal(t, 1<<20, c.batching.ByteSize)
	c = parsed(t, "warehouse: ./w\ntable: t\nmessage_format: ndjson\nbatching: {count: 0, period: ''}\n")
	require.True(t, c.batching.IsNoop())
	c = parsed(t, "warehouse: ./w\ntable: t\nmessage_format: ndjson\nbatching: {count: 10, byte_size: 1000}\n")
	require.Equal(t, 1000, c.batching.ByteSize)
}

func TestWarnings(t *testing.T) {
	c := parsed(t, "warehouse: ./w\ntable: t\nstreaming: {enabled: true}\nmax_in_flight: 100\n")
	require.Len(t, warnings(c), 1)
	require.Contains(t, warnings(c)[0], "lets 100000 rows be unacknowledged, fewer than twice the row_limit of 100000")
	c = parsed(t, "warehouse: ./w\ntable: t\nstreaming: {enabled: true, idle: 5m}\n")
	require.Len(t, warnings(c), 1)
}

func TestWarningsOfTheMainConfig(t *testing.T) {
	main := func(change func(m map[string]any)) []string {
		m := map[string]any{
			"input":            map[string]any{"file": map[string]any{}},
			"buffer":           map[string]any{"none": map[string]any{}},
			"shutdown_timeout": "20s",
			"output": map[string]any{"fallback": []any{map[string]any{Name: map[string]any{
				fStreaming: map[string]any{fEnabled: true}, fBatching: map[string]any{"period": "100ms"}, fTier: "enterprise",
			}}}},
		}
		change(m)
		return NewMainConfig(m).Warnings()
	}
	require.Empty(t, main(func(map[string]any) {}))
	for name, c := range map[string]struct {
		change func(m map[string]any)
		want   string
	}{
		"memory buffer": {func(m map[string]any) { m["buffer"] = map[string]any{"memory": map[string]any{}} }, "buffer.memory acknowledges rows before"},
		"shutdown":      {func(m map[string]any) { m["shutdown_timeout"] = "5s" }, "shutdown_timeout of 5s is short"},
		"http": {func(m map[string]any) {
			m["input"] = map[string]any{"http_server": map[string]any{"timeout": "5s"}}
		}, "http_server.timeout of 5s is short"},
		"endless": {func(m map[string]any) {
			m["input"] = map[string]any{"broker": map[string]any{"inputs": []any{map[string]any{"generate": map[string]any{"count": 0}}}}}
			m["output"] = map[string]any{Name: map[string]any{fStreaming: map[string]any{fEnabled: false}}}
		}, "the input generate has no end"},
	} {
		t.Run(name, func(t *testing.T) {
			got := main(c.change)
			require.Len(t, got, 1)
			require.Contains(t, got[0], c.want)
		})
	}
	require.Empty(t, NewMainConfig(map[string]any{"buffer": map[string]any{"memory": nil}, "output": map[string]any{"drop": nil}}).Warnings(), "no business of ours")
}

func memoryOf(m map[string]any) int64 { return NewMainConfig(m).Memory() }

func TestProcessMemory(t *testing.T) {
	require.Zero(t, memoryOf(map[string]any{"output": map[string]any{"drop": nil}}))
	require.EqualValues(t, (256+1024+128)<<20, memoryOf(map[string]any{"output": map[string]any{"broker": map[string]any{"outputs": []any{
		map[string]any{Name: map[string]any{fMemoryLimit: "1GiB"}}, map[string]any{Name: map[string]any{}},
	}}}}))
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "1000": 1000, "1024B": 1024, "64MB": 64_000_000, "256MiB": 256 << 20, "1.5 GiB": 3 << 29, "1k": 1000, "2Ti": 2 << 40, " 7 kib ": 7 << 10,
	} {
		n, err := parseSize(text)
		require.NoError(t, err, text)
		require.Equal(t, want, n, text)
	}
	for _, text := range []string{"", "0", "-1", "MiB", "12 parsecs", "1e6"} {
		_, err := parseSize(text)
		require.Error(t, err, text)
	}
}

func TestAnUnusableWarehouseFailsAtConstruction(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	writeFile(t, file, "not a folder")
	conf, err := Spec().ParseYAML("warehouse: "+file+"\ntable: t\n", nil)
	require.NoError(t, err)
	_, err = newOutput(conf, service.MockResources())
	require.ErrorContains(t, err, "field warehouse: ")
	require.ErrorContains(t, err, file)
}
