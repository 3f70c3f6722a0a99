package arrowconv

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

// TestRenames holds that each column stored under another name is reported once,
// be it new or known.
func TestRenames(t *testing.T) {
	p := plan(t, "a_b: long", Options{Evolve: true})
	src := rawMessages{[]byte(`{"a b":1}`), []byte(`{"a b":2,"c=d":{"e f":3}}`), []byte(`{"a b":3}`)}
	chunk, err := p.Convert(src, nil, ArrowTuning{}, nil)
	require.NoError(t, err)
	require.ElementsMatch(t, []Rename{{"a b", "a_b"}, {"c=d", "c_d"}, {"e f", "e_f"}}, chunk.Renamed)
	p, err = p.Extend(chunk.Unknown)
	require.NoError(t, err)
	require.Equal(t, "a_b: long, c_d: struct<e_f: long>", columns(p))
	chunk, err = p.Convert(src, nil, ArrowTuning{}, nil)
	require.NoError(t, err)
	defer chunk.Release()
	require.Empty(t, chunk.Renamed)
	require.Equal(t, 3, chunk.Rows)
}

// TestMapNames holds that names stay as they are under Delta column mapping.
func TestMapNames(t *testing.T) {
	p, rows, errs := load(t, plan(t, "", Options{Evolve: true, ColumnNames: MapNames}), `{"two words":1,"a;b":2,"x=y":3}`, `{"":1}`, `{"a\u0001b":1}`)
	require.Equal(t, "two words: long, a;b: long, x=y: long", columns(p))
	require.Equal(t, []string{`{"a;b":2,"two words":1,"x=y":3}`}, rows)
	require.Equal(t, `"": expected a name that both formats can hold, got "" (an empty name cannot be stored)`, errs[1])
	require.Len(t, errs, 2)
}

// TestConcurrentUse converts under one plan from many goroutines at once.
func TestConcurrentUse(t *testing.T) {
	events := nestedEvents(500)
	p := plan(t, nestedType, Options{Evolve: true})
	want, err := p.Convert(rawMessages(events), nil, ArrowTuning{}, nil)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				got, err := p.Convert(rawMessages(events), nil, ArrowTuning{}, nil)
				if err != nil || !array.RecordEqual(want.Records[0], got.Records[0]) {
					t.Error("another result", err)
				}
			}
		})
	}
	wg.Wait()
}

// TestNoAllocationPerRow holds that the cost of memory is by record: the same
// few allocations for ten rows and for ten thousand.
func TestNoAllocationPerRow(t *testing.T) {
	events := nestedEvents(2000)
	flat := flatEvents(10_000)
	for _, c := range []struct {
		table       string
		few, many   Source
		perRowLimit float64
	}{
		{flatType, rawMessages(flat[:100]), rawMessages(flat), 0.002},
		{nestedType, rawMessages(events[:100]), rawMessages(events), 0.1},
		{flatType, valueMessages(structuredEvents(t, flat[:100])), valueMessages(structuredEvents(t, flat)), 0.002},
	} {
		p := plan(t, c.table, Options{Evolve: true})
		allocs := func(src Source) float64 {
			return testing.AllocsPerRun(5, func() {
				chunk, err := p.Convert(src, nil, ArrowTuning{}, memory.DefaultAllocator)
				if err != nil || chunk.Rows != src.Len() {
					t.Error("not converted", err)
				}
				chunk.Release()
			})
		}
		few, many := allocs(c.few), allocs(c.many)
		require.LessOrEqual(t, (many-few)/float64(c.many.Len()-c.few.Len()), c.perRowLimit, "%v and %v allocations", few, many)
	}
}

// TestBatchSize holds that records keep to the batch size, which may change from
// write to write, and that skipped messages are left out.
func TestBatchSize(t *testing.T) {
	p := plan(t, "id: long", Options{Evolve: true})
	var src rawMessages
	for i := range 25 {
		src = append(src, fmt.Appendf(nil, `{"id":%d}`, i))
	}
	for _, size := range []int{1, 7, 25, 100, 0} {
		chunk, err := p.Convert(src, func(i int) bool { return i%5 == 4 }, ArrowTuning{BatchSize: size}, nil)
		require.NoError(t, err)
		require.Equal(t, 20, chunk.Rows)
		limit := size
		if limit == 0 {
			limit = DefaultBatchSize
		}
		next := 0
		for i, r := range chunk.Records {
			require.LessOrEqual(t, int(r.NumRows()), limit)
			for row, from := range chunk.Origin[i] {
				if next%5 == 4 {
					next++
				}
				require.EqualValues(t, next, from)
				require.Equal(t, fmt.Sprint(next), r.Column(0).ValueStr(row))
				next++
			}
		}
		require.Len(t, chunk.Records, (20+limit-1)/limit)
		chunk.Release()
	}
}

// TestEarthquakes loads real events and compares every value with what another
// parser finds.
func TestEarthquakes(t *testing.T) {
	var src rawMessages
	for line := range bytes.Lines(sharedFile(t, "earthquakes.ndjson")) {
		src = append(src, line)
	}
	require.Len(t, src, 1707)
	p := plan(t, "", Options{Evolve: true})
	chunk, err := p.Convert(src, nil, ArrowTuning{}, nil)
	require.NoError(t, err)
	require.Empty(t, chunk.Errors)
	p, err = p.Extend(chunk.Unknown)
	require.NoError(t, err)
	chunk, err = p.Convert(src, nil, ArrowTuning{}, nil)
	require.NoError(t, err)
	defer chunk.Release()
	require.Empty(t, chunk.Errors)
	require.Nil(t, chunk.Unknown)
	require.Equal(t, 1707, chunk.Rows)
	r := chunk.Records[0]
	for row, line := range src {
		want, err := decodeAny(line)
		require.NoError(t, err)
		for name, v := range want.(map[string]any) {
			at := r.Schema().FieldIndices(name)
			if len(at) == 0 {
				require.True(t, typeless(v))
				continue
			}
			requireValue(t, r.Column(at[0]), row, v, p.opts)
		}
	}
}

// Two declared fields of one dotted path are named before any row is read.
func TestDeclaredDotClash(t *testing.T) {
	_, err := NewPlan(nil, Options{Evolve: true, Declared: []Column{
		{Name: "a.b", Type: "long"},
		{Name: "a", Type: "struct<b: long>"},
	}})
	require.ErrorContains(t, err, `two fields have the dotted path "a.b"`)
}
