package output_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"
)

const (
	manyRows  = 100_000
	badRow    = 54_321
	batchRows = 1_000
)

// manyRowsInput gives manyRows rows in batches, one of them bad. Batches are given
// again as long as they are refused, as those of most inputs are.
type manyRowsInput struct{ next int }

func (m *manyRowsInput) Connect(context.Context) error { return nil }
func (m *manyRowsInput) Close(context.Context) error   { return nil }

func (m *manyRowsInput) ReadBatch(context.Context) (service.MessageBatch, service.AckFunc, error) {
	if m.next >= manyRows {
		return nil, nil, service.ErrEndOfInput
	}
	var b service.MessageBatch
	for range batchRows {
		text := fmt.Appendf(nil, `{"id":%d,"o":{"n":1}}`, m.next)
		if m.next == badRow {
			text = []byte(`{"id":-1,"o":{"n":"bad"}}`)
		}
		b = append(b, service.NewMessage(text))
		m.next++
	}
	return b, func(context.Context, error) error { return nil }, nil
}

// sightings counts the rows on their way to the output, by the name of the test: the
// bad one, and the others.
type sightings struct {
	mu        sync.Mutex
	bad, good int
}

var sighted sync.Map

func (s *sightings) Close(context.Context) error { return nil }
func (s *sightings) ProcessBatch(_ context.Context, b service.MessageBatch) ([]service.MessageBatch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range b {
		text, err := m.AsBytes()
		if err != nil {
			return nil, err
		}
		if strings.Contains(string(text), "bad") {
			s.bad++
		} else {
			s.good++
		}
	}
	return []service.MessageBatch{b}, nil
}

func (s *sightings) counts() (bad, good int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bad, s.good
}

func init() {
	service.MustRegisterBatchInput("test_many_rows", service.NewConfigSpec(),
		func(*service.ParsedConfig, *service.Resources) (service.BatchInput, error) {
			return service.AutoRetryNacksBatched(&manyRowsInput{}), nil
		})
	service.MustRegisterBatchProcessor("test_sightings", service.NewConfigSpec().Field(service.NewStringField("box")),
		func(conf *service.ParsedConfig, _ *service.Resources) (service.BatchProcessor, error) {
			name, err := conf.FieldString("box")
			s, _ := sighted.LoadOrStore(name, &sightings{})
			return s.(*sightings), err
		})
}

// One bad row of a hundred thousand, in batches of the input: all others are
// committed once, and only the bad one comes back, whether it has somewhere to go or
// is sent again for ever.
func TestOneBadRowOfManyCommitsTheOthersOnce(t *testing.T) {
	for name, c := range map[string]struct {
		batching string
		fallback bool
	}{
		"batching off, fallback":    {"{ count: 0 }", true},
		"batching on, fallback":     {"{ count: 2500, period: 50ms }", true},
		"batching off, no fallback": {"{ count: 0 }", false},
		"batching on, no fallback":  {"{ count: 2500, period: 50ms }", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			out := fmt.Sprintf(`{ managed_lakehouse: { warehouse: %q, table: t, streaming: { enabled: true, idle: 100ms, row_limit: 30000 }, batching: %s } }`, dir, c.batching)
			if c.fallback {
				out = fmt.Sprintf(`{ fallback: [ %s, { test_dead_letters: { box: %q } } ] }`, out, t.Name())
			}
			b := service.NewStreamBuilder()
			require.NoError(t, b.SetYAML(fmt.Sprintf(`
input: { test_many_rows: {} }
pipeline: { threads: 1, processors: [ { test_sightings: { box: %q } } ] }
output: %s
logger: { level: "off" }
`, t.Name(), out)))
			stream, err := b.Build()
			require.NoError(t, err)
			done := make(chan error, 1)
			go func() { done <- stream.Run(context.Background()) }()

			table := filepath.Join(dir, "default/t/delta")
			seen := func() *sightings {
				s, _ := sighted.LoadOrStore(t.Name(), &sightings{})
				return s.(*sightings)
			}
			if c.fallback {
				select {
				case err := <-done:
					require.NoError(t, err)
				case <-time.After(time.Minute):
					t.Fatal("the run does not end")
				}
				bad, _ := seen().counts()
				require.Equal(t, 1, bad)
				box, ok := deadLetters.Load(t.Name())
				require.True(t, ok)
				letters := box.(*deadLetterBox).text
				require.Len(t, letters, 1)
				require.Equal(t, `{"id":-1,"o":{"n":"bad"}} | o.n: expected long, got "bad"`, strings.SplitAfter(letters[0], `got "bad"`)[0])
			} else {
				require.Eventually(t, func() bool { bad, _ := seen().counts(); return bad >= 2 }, time.Minute, 10*time.Millisecond, "the bad row does not come again")
				require.Eventually(t, func() bool { return recordsOf(t, table) >= manyRows-1 }, time.Minute, 50*time.Millisecond, "rows are missing")
				_ = stream.StopWithin(2 * time.Second) // it cannot end in order: one row is never acknowledged
				<-done
			}
			_, good := seen().counts()
			require.Equal(t, manyRows-1, good, "rows that were committed were sent again")
			ids := idsOf(t, table)
			require.Len(t, ids, manyRows-1)
			unique := map[string]bool{}
			for _, id := range ids {
				unique[id] = true
			}
			require.Len(t, unique, manyRows-1)
			require.False(t, unique["-1"])
		})
	}
}
