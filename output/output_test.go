package output

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/managed-lakehouse/managed-lakehouse/backpressure"
)

// testOutput is an output over a fake warehouse.
func testOutput(t *testing.T, w *fakeWarehouse, fields string) *Output {
	t.Helper()
	res := service.MockResources()
	o := &Output{
		cfg: parsed(t, fields), logger: res.Logger(), log: newSlog(res.Logger()), meter: newMeter(res.Metrics()),
		release: func() {},
	}
	o.open = func(context.Context) (warehouse, error) { return w, nil }
	return o
}

const streamingFields = "warehouse: ./w\ntable: t\nstreaming: {enabled: true, idle: 0s}\n"

func TestWritesWaitForTheConnection(t *testing.T) {
	o := testOutput(t, newFakeWarehouse(), streamingFields)
	require.ErrorIs(t, o.WriteBatch(t.Context(), nil), service.ErrNotConnected)
	require.Equal(t, backpressure.For(0), o.GetBackpressureProfile())
	require.Equal(t, Summary{StreamingMode: true, AvgCommitLatency: "0.0ms"}, o.Summary())
}

func TestAConnectionIsTriedEverLessOften(t *testing.T) {
	o := testOutput(t, newFakeWarehouse(), streamingFields)
	cause := errors.New("permission denied")
	o.open = func(context.Context) (warehouse, error) { return nil, cause }
	for _, want := range []int{1, 2, 4, 8, 16, 30, 30} {
		err := o.Connect(t.Context())
		var backoff *service.ErrBackOff
		require.ErrorAs(t, err, &backoff)
		require.Equal(t, time.Duration(want)*time.Second, backoff.Wait)
		require.ErrorIs(t, backoff.Err, cause)
		require.ErrorContains(t, err, `field warehouse: "./w" cannot be used: permission denied`)
	}
}

func TestATableThatCannotTakeTheDeclaredColumnsIsSaid(t *testing.T) {
	w := newFakeWarehouse()
	o := testOutput(t, w, streamingFields)
	require.NoError(t, o.Connect(t.Context()))
	o.drain()
	require.NoError(t, o.WriteBatch(t.Context(), service.MessageBatch{service.NewMessage([]byte(`{"id":1}`))}))
	require.NoError(t, o.Close(t.Context()))

	other := testOutput(t, w, "warehouse: ./w\ntable: t\nschema: [{name: id, type: boolean}]\n")
	err := other.preflight()
	require.ErrorContains(t, err, "table default.t: its schema cannot take the columns declared in `schema`")
	require.ErrorContains(t, err, "id")
}

func TestADrainBeforeTheConnectionHoldsAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeWarehouse()
		o := testOutput(t, w, streamingFields)
		o.drain()
		require.NoError(t, o.Connect(t.Context()))
		begin := time.Now()
		require.NoError(t, o.WriteBatch(t.Context(), service.MessageBatch{service.NewMessage([]byte(`{"id":1}`))}))
		require.Zero(t, time.Since(begin))
		require.NoError(t, o.Close(t.Context()))
	})
}

func TestCloseReportsOnce(t *testing.T) {
	TakeReports()
	w := newFakeWarehouse()
	o := testOutput(t, w, streamingFields)
	require.NoError(t, o.Connect(t.Context()))
	require.NoError(t, o.Connect(t.Context()), "again is no harm")
	o.drain()
	msg := service.NewMessage(nil)
	msg.SetStructured(map[string]any{"id": 7, "name": "x"})
	require.NoError(t, o.WriteBatch(t.Context(), service.MessageBatch{msg}))
	require.NoError(t, o.Close(t.Context()))
	require.NoError(t, o.Close(t.Context()))
	require.True(t, w.closed)
	reports := TakeReports()
	require.Len(t, reports, 1)
	require.EqualValues(t, 1, reports[0].Summary.TotalRows)
	require.Equal(t, []TableReport{{Name: "default.t", Iceberg: "file:///w/default.t/iceberg", Delta: "file:///w/default.t/delta"}}, reports[0].Tables)
	require.ErrorIs(t, o.WriteBatch(t.Context(), nil), service.ErrNotConnected)
}
