package output_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/managed-lakehouse/managed-lakehouse/output"
)

// The plugin works in a Benthos that has nothing else: this file imports the output
// and the service API alone.
func TestThePluginAloneInABuildOfItsOwn(t *testing.T) {
	dir := t.TempDir()
	b := service.NewStreamBuilder()
	require.NoError(t, b.SetLoggerYAML("level: off"))
	produce, err := b.AddBatchProducerFunc()
	require.NoError(t, err)
	require.NoError(t, b.AddOutputYAML(fmt.Sprintf(`
managed_lakehouse:
  warehouse: %s
  namespace: shop
  table: orders
  streaming:
    enabled: true
    idle: 50ms
  schema:
    - { name: id, type: long, required: true }
    - { name: price, type: "decimal(10,2)" }
`, dir)))
	stream, err := b.Build()
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- stream.Run(context.Background()) }()

	require.NoError(t, produce(t.Context(), service.MessageBatch{
		service.NewMessage([]byte(`{"id": 9007199254740993, "price": "12.34", "who": {"name": "Zoë"}}`)),
		service.NewMessage([]byte(`{"id": 2, "price": null, "who": null}`)),
	}))
	require.NoError(t, stream.StopWithin(shutdownWait))
	require.NoError(t, <-done)

	require.FileExists(t, filepath.Join(dir, "shop/orders/iceberg/metadata/version-hint.text"))
	require.FileExists(t, filepath.Join(dir, "shop/orders/delta/_delta_log/00000000000000000000.json"))
	reports := output.TakeReports()
	require.NotEmpty(t, reports)
	last := reports[len(reports)-1]
	require.EqualValues(t, 2, last.Summary.TotalRows)
	require.EqualValues(t, 1, last.Summary.TotalCommits)
	require.Equal(t, "shop.orders", last.Tables[0].Name)
}
