package output

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/managed-lakehouse/managed-lakehouse/arrowconv"
)

// ndjson is one message for each list of rows.
func ndjson(messages ...string) *messages {
	m := newMessages(len(messages), arrowconv.NDJSON)
	for i, text := range messages {
		m.put(i, []byte(text))
	}
	return m
}

// lines are rows with the numbers from first on, in one payload.
func lines(first, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"id\":%d}\n", first+i)
	}
	return b.String()
}

func manyRows(cfg *groupConfig) { cfg.Convert.Format = arrowconv.NDJSON }

func TestRowsAreCountedNotMessages(t *testing.T) {
	w := newFakeWarehouse()
	bubble(t, w, func(cfg *groupConfig) {
		manyRows(cfg)
		cfg.Trigger.RowLimit = 100
		cfg.Trigger.IdleFloor = 0
		cfg.Trigger.Interval = time.Hour
	}, func(t *testing.T, g *group) {
		done := make(chan []failure)
		for i := range 2 {
			go func() { done <- g.write(t.Context(), []routed{into("a", ndjson(lines(40*i, 40)))}) }()
		}
		time.Sleep(time.Minute)
		require.EqualValues(t, 80, g.summary().PendingRows)
		require.Empty(t, w.table("ns.a").commits(), "80 rows are under the limit")
		go func() { done <- g.write(t.Context(), []routed{into("a", ndjson(lines(80, 15), lines(95, 25)))}) }()
		for range 3 {
			require.Empty(t, <-done)
		}
		c := w.table("ns.a").commits()
		require.Len(t, c, 1)
		require.Equal(t, "rows", c[0].trigger)
		require.Len(t, c[0].ids, 120, "the write that reaches the limit brings all of its rows")
		require.EqualValues(t, 120, g.summary().TotalRows)
		require.Zero(t, g.summary().PendingRows)
	})
}

func TestAMessageIsInOneCommit(t *testing.T) {
	w := newFakeWarehouse()
	bubble(t, w, func(cfg *groupConfig) { manyRows(cfg); cfg.Trigger.RowLimit = 10_000 }, func(t *testing.T, g *group) {
		for round := range 2 { // the first makes the table, the second streams
			require.Empty(t, g.write(t.Context(), []routed{into("a", ndjson(lines(25_000*round, 25_000)))}))
			c := w.table("ns.a").commits()
			require.Len(t, c, round+1)
			require.Len(t, c[round].ids, 25_000)
			for _, n := range c[round].records {
				require.LessOrEqual(t, n, int64(10_000))
			}
		}
	})
}

func TestABadRowRefusesItsMessage(t *testing.T) {
	w := newFakeWarehouse()
	bubble(t, w, manyRows, func(t *testing.T, g *group) {
		// While there is no table, when the rows are only observed, and after.
		for round := range 2 {
			base := 1000 * round
			failures := g.write(t.Context(), []routed{into("a", ndjson(
				lines(base, 3), lines(base+10, 2)+"{\"id\":\"x\"}\n"+lines(base+20, 3), lines(base+30, 1)+"{\"id\":", "", lines(base+40, 2)))})
			require.Len(t, failures, 3)
			at := map[int]failure{}
			for _, f := range failures {
				at[f.message] = f
			}
			require.ErrorContains(t, at[1].err, "row 2: id: expected long")
			require.Equal(t, "type_mismatch", at[1].reason)
			require.ErrorContains(t, at[2].err, "row 1: ")
			require.ErrorContains(t, at[3].err, "empty payload")
			require.EqualValues(t, 3*(round+1), g.summary().RefusedRows, "a message counts once")
		}
		require.Equal(t, []int64{0, 1, 2, 40, 41, 1000, 1001, 1002, 1040, 1041}, w.table("ns.a").ids())
	})
}

func TestAMessageAboveTheMemoryLimitIsAdmittedAlone(t *testing.T) {
	w := newFakeWarehouse()
	bubble(t, w, func(cfg *groupConfig) { manyRows(cfg); cfg.Trigger.Budget = 10_000 }, func(t *testing.T, g *group) {
		done := make(chan []failure)
		write := func(first, n int) {
			go func() { done <- g.write(t.Context(), []routed{into("a", ndjson(lines(first, n)))}) }()
			time.Sleep(time.Millisecond)
		}
		write(0, 5)
		write(1000, 2000) // many times the limit
		write(5000, 5)
		for range 3 {
			require.Empty(t, <-done)
		}
		c := w.table("ns.a").commits()
		require.Len(t, c, 3, "it waits for the rows before it, and those after it wait for it")
		require.Equal(t, []int{5, 2000, 5}, []int{len(c[0].ids), len(c[1].ids), len(c[2].ids)})
		require.Equal(t, "saturated", c[0].trigger)
	})
}

// The error that Benthos gets marks messages, and each unwraps to the batch's.
func TestTheBatchErrorMarksMessagesOfManyRows(t *testing.T) {
	w := newFakeWarehouse()
	o := testOutput(t, w, "warehouse: ./w\ntable: t\nmessage_format: ndjson\nschema: [{name: id, type: long}]\nstreaming: {enabled: true, idle: 20ms}\n")
	require.NoError(t, o.Connect(t.Context()))
	batch := service.MessageBatch{
		service.NewMessage([]byte(lines(0, 10))),
		service.NewMessage([]byte(lines(10, 5) + `{"id":true}`)),
		service.NewMessage([]byte(lines(20, 10))),
	}
	structured := service.NewMessage(nil)
	structured.SetStructured([]any{map[string]any{"id": int64(30)}, map[string]any{"id": "x"}})
	batch = append(batch, structured)
	index := batch.Index()
	err := o.WriteBatch(t.Context(), batch)
	var be *service.BatchError
	require.ErrorAs(t, err, &be)
	require.Equal(t, 2, be.IndexedErrors())
	failed := map[int]string{}
	be.WalkMessagesIndexedBy(index, func(i int, _ *service.Message, err error) bool {
		if err != nil {
			failed[i] = err.Error()
			var inner *service.BatchError
			require.ErrorAs(t, err, &inner, "or batching would take the whole input batch to have failed")
			require.Equal(t, 2, inner.IndexedErrors())
		}
		return true
	})
	require.Len(t, failed, 2)
	require.Equal(t, `row 5: id: expected long, got true`, failed[1])
	require.Contains(t, failed[3], `row 1: id: expected long, got`)
	require.NoError(t, o.Close(t.Context()))
	require.Equal(t, from(0, 10), w.table("default.t").ids()[:10])
	require.Equal(t, from(20, 10), w.table("default.t").ids()[10:])
}

// What a payload holds until it is committed is not less than what its columns take.
func TestHeldBytesOfPayloads(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "n", Type: arrow.PrimitiveTypes.Int64}, {Name: "same", Type: arrow.PrimitiveTypes.Float64},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	const rows = 50_000
	for i := range rows {
		b.Field(0).(*array.Int64Builder).Append(int64(i / 1000))
		b.Field(1).(*array.Float64Builder).Append(1)
	}
	rec := b.NewRecordBatch()
	defer rec.Release()

	var pq bytes.Buffer
	w, err := pqarrow.NewFileWriter(schema, &pq, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
	require.NoError(t, err)
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close())
	require.Less(t, pq.Len(), rows, "the file is a fraction of its columns")
	require.GreaterOrEqual(t, heldPayload(pq.Bytes(), arrowconv.Parquet), int64(pq.Len()+16*rows))
	require.Less(t, heldPayload(pq.Bytes(), arrowconv.Parquet), int64(2*16*rows))
	held, err := newMessages(1, arrowconv.Parquet).add(0, service.NewMessage(pq.Bytes()))
	require.NoError(t, err)
	require.Equal(t, heldPayload(pq.Bytes(), arrowconv.Parquet), held)
	for n := range 64 { // a damaged one does no harm
		require.Positive(t, heldPayload(pq.Bytes()[n:pq.Len()-n], arrowconv.Parquet))
	}

	var stream bytes.Buffer
	s := ipc.NewWriter(&stream, ipc.WithSchema(schema))
	require.NoError(t, s.Write(rec))
	require.NoError(t, s.Close())
	require.GreaterOrEqual(t, heldPayload(stream.Bytes(), arrowconv.ArrowIPC), int64(stream.Len()+16*rows))
	require.Equal(t, heldBytes(100), heldPayload(make([]byte, 100), arrowconv.NDJSON))
}
