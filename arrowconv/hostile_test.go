package arrowconv

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHostileRows sends rows that would cost memory or stack without bound.
// Each is exact or refused, and the rows around it land.
func TestHostileRows(t *testing.T) {
	repeat := func(s string, n int) string { return strings.Repeat(s, n) }
	wide := func(n int) string {
		var b bytes.Buffer
		for i := range n {
			fmt.Fprintf(&b, `,"c%d":1`, i)
		}
		return `{"id":2` + b.String() + `}`
	}
	doubled := repeat(`{"d":0,"d":`, 5000) + `1` + repeat(`}`, 5000)
	for name, c := range map[string]struct {
		text string
		want ReasonCode // ReasonNone: the row lands
	}{
		"a string of 10 MB":           {`{"id":2,"s":"` + repeat("é", 5<<20) + `"}`, ReasonNone},
		"a new string of 10 MB":       {`{"id":2,"new":"` + repeat("x", 10<<20) + `"}`, ReasonNone},
		"a number of 1 MB":            {`{"id":` + repeat("9", 1<<20) + `}`, ReasonOutOfRange},
		"a fraction of 1 MB":          {`{"id":2,"f":0.` + repeat("3", 1<<20) + `}`, ReasonNone},
		"zeros of 1 MB":               {`{"id":2.` + repeat("0", 1<<20) + `}`, ReasonNone},
		"an exponent of 1 MB":         {`{"id":2,"f":1e` + repeat("9", 1<<20) + `}`, ReasonOutOfRange},
		"9,000 arrays":                {`{"id":2,"a":` + repeat("[", 9000) + repeat("]", 9000) + `}`, ReasonTooDeep},
		"10,000 arrays":               {`{"id":2,"a":` + repeat("[", 10000) + repeat("]", 10000) + `}`, ReasonNotJSON},
		"a million open arrays":       {`{"id":2,"a":` + repeat("[", 1<<20), ReasonNotJSON},
		"10,000 objects":              {repeat(`{"o":`, 10000) + `1` + repeat("}", 10000), ReasonTooDeep},
		"10,001 objects":              {repeat(`{"o":`, 10001) + `1` + repeat("}", 10001), ReasonNotJSON},
		"9,000 objects":               {`{"id":2,"new":` + repeat(`{"o":`, 9000) + `1` + repeat("}", 9001), ReasonTooDeep},
		"a known list of depth":       {`{"id":2,"l":` + repeat("[", 5000) + repeat("]", 5000) + `}`, ReasonTypeMismatch},
		"empty objects in a list":     {`{"id":2,"wide":[` + repeat(`{},`, 1<<21) + `{}]}`, ReasonTooLarge},
		"nulls in a list":             {`{"id":2,"l":[` + repeat(`null,`, 1<<20) + `null]}`, ReasonNone},
		"100,000 new columns":         {wide(100_000), ReasonTooManyColumns},
		"100,000 new empty columns":   {strings.ReplaceAll(wide(100_000), ":1", ":{}"), ReasonNone},
		"repeated names in the depth": {`{"id":2,"x":` + doubled + `,"x":null}`, ReasonNone},
		"a name of 10 MB":             {`{"id":2,"` + repeat("n", 10<<20) + `":null}`, ReasonNone},
		"100,000 repeated names":      {`{"id":1` + repeat(`,"id":2`, 100_000) + `}`, ReasonNone},
	} {
		t.Run(name, func(t *testing.T) {
			var inner []string
			for i := range 60 {
				inner = append(inner, fmt.Sprintf("w%d: double", i))
			}
			p := plan(t, "id: long, s: string, f: double, l: list<long>, wide: list<struct<"+strings.Join(inner, ", ")+">>", Options{Evolve: true})
			src := rawMessages{[]byte(`{"id":1}`), []byte(c.text), []byte(`{"id":3}`)}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			chunk, err := p.Convert(src, nil, ArrowTuning{}, nil)
			require.NoError(t, err)
			if chunk.Unknown != nil {
				p, err = p.Extend(chunk.Unknown)
				require.NoError(t, err)
				chunk, err = p.Convert(src, nil, ArrowTuning{}, nil)
				require.NoError(t, err)
			}
			runtime.ReadMemStats(&after)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<30))
			require.Nil(t, chunk.Unknown)
			if c.want == ReasonNone {
				require.Empty(t, chunk.Errors)
				require.Equal(t, 3, chunk.Rows)
				require.Equal(t, "2", chunk.Records[0].Column(0).ValueStr(1))
				return
			}
			require.Len(t, chunk.Errors, 1)
			require.Equal(t, c.want, chunk.Errors[0].Reason, "%v", chunk.Errors[0])
			require.Less(t, len(chunk.Errors[0].Error()), 1000)
			require.Equal(t, 2, chunk.Rows)
			require.Equal(t, "3", chunk.Records[0].Column(0).ValueStr(1))
		})
	}
}

// TestOneLargeValue holds that memory does not follow the largest value seen:
// after one row of 10 MB, a batch of small ones takes what small ones take.
func TestOneLargeValue(t *testing.T) {
	p := plan(t, "s: string, l: list<string>", Options{Evolve: true})
	large := strings.Repeat("x", 10<<20)
	chunk, err := p.Convert(messages{`{"s":"` + large + `","l":["` + large + `"]}`}, nil, ArrowTuning{}, nil)
	require.NoError(t, err)
	chunk.Release()
	var small rawMessages
	for range 20_000 {
		small = append(small, []byte(`{"s":"x","l":["y"]}`))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	chunk, err = p.Convert(small, nil, ArrowTuning{}, nil)
	require.NoError(t, err)
	defer chunk.Release()
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(30<<20))
}
