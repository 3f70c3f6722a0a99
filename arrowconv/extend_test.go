package arrowconv

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

// TestExtendSettles holds that rows converted under the plan that their own
// observation extended have nothing unknown left, whatever they are; and that
// the plan does not depend on how the rows came in writes.
func TestExtendSettles(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	options := []Options{
		{Evolve: true},
		{Evolve: true, OnTypeConflict: ConflictsAsText, InferTimestamps: true},
		{Evolve: true, MaxColumns: 6, Numbers: DoubleNumbers},
		{Evolve: true, MaxColumns: 8, OnTypeConflict: ConflictsAsText, MaxDepth: 3, TimestampPrecision: TruncateFiner},
		{Evolve: true, ColumnNames: RejectNames, InferTimestamps: true},
	}
	tables := []string{"", "l: long, s: string", "o: struct<l: long>, ao: list<struct<l: long>>, mo: map<string, struct<l: long>>"}
	for range 1500 {
		p := plan(t, tables[r.IntN(len(tables))], options[r.IntN(len(options))])
		var all, structured rawOrValues
		for range 1 + r.IntN(12) {
			text := randomRow(r)
			all = append(all, text)
			if v, err := decodeAny(text); err == nil {
				structured = append(structured, v)
			}
		}
		requireSettles(t, r, p, all)
		requireSettles(t, r, p, structured)
	}
}

type rawOrValues []any

func (m rawOrValues) Len() int                      { return len(m) }
func (m rawOrValues) Bytes(i int) ([]byte, bool)    { b, ok := m[i].([]byte); return b, ok }
func (m rawOrValues) Structured(i int) (any, error) { return m[i], nil }

func decodeAny(text []byte) (any, error) {
	dec := jsonDecoder(bytes.NewReader(text))
	var v any
	err := dec.Decode(&v)
	return v, err
}

func requireSettles(t *testing.T, r *rand.Rand, p *Plan, all rawOrValues) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	whole, err := p.Convert(all, nil, ArrowTuning{}, mem)
	require.NoError(t, err)
	defer whole.Release()

	// The same rows in three writes, merged in both ways.
	a, b := r.IntN(len(all)+1), r.IntN(len(all)+1)
	a, b = min(a, b), max(a, b)
	part := func(from, to int) *Observation {
		c, err := p.Convert(all[from:to], nil, ArrowTuning{}, mem)
		require.NoError(t, err)
		c.Release()
		return c.Unknown
	}
	var left, right, rest Observation
	left.Merge(part(0, a))
	left.Merge(part(a, b))
	left.Merge(part(b, len(all)))
	rest.Merge(part(a, b))
	rest.Merge(part(b, len(all)))
	right.Merge(part(0, a))
	right.Merge(&rest)

	want, err := p.Extend(whole.Unknown)
	require.NoError(t, err)
	for _, o := range []*Observation{&left, &right} {
		got, err := p.Extend(o)
		require.NoError(t, err)
		require.Equal(t, columns(want), columns(got))
	}
	require.LessOrEqual(t, want.leaves, max(p.opts.MaxColumns, p.leaves))

	// A refusal is final: the caller leaves those messages out.
	failed := map[int]bool{}
	for _, e := range whole.Errors {
		failed[e.Message] = true
	}
	again, err := want.Convert(all, func(i int) bool { return failed[i] }, ArrowTuning{}, mem)
	require.NoError(t, err)
	defer again.Release()
	require.Nil(t, again.Unknown, "%s\n%s", columns(want), all)
	require.Equal(t, len(all), again.Rows+len(again.Errors)+len(failed))
}
