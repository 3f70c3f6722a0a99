package arrowconv

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

// Types of the benchmark's events, declared.
const (
	flatType   = "id: long, user_id: long, event_type: string, value: double, info: string, ts: timestamptz"
	nestedType = "id: string, ts: timestamptz, type: string, seq: long, " +
		"user: struct<id: long, name: string, email: string, verified: boolean, created: timestamptz>, " +
		"device: struct<os: string, version: string, model: string, screen: struct<w: long, h: long, dpr: double>, battery: double>, " +
		"geo: struct<lat: double, lon: double, country: string, city: string, accuracy: double>, " +
		"page: struct<url: string, referrer: string, title: string, load_ms: long>, " +
		"items: list<struct<sku: string, name: string, qty: long, price: decimal(10,2), tags: list<string>>>, " +
		"scores: list<double>, session: string, note: string"
)

// flatEvents makes events of 142 bytes.
func flatEvents(n int) [][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	types := []string{"click", "view", "purchase", "scroll", "login"}
	at := time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)
	out := make([][]byte, n)
	for i := range out {
		at = at.Add(time.Duration(r.IntN(2000)) * time.Microsecond)
		b := fmt.Appendf(nil, `{"id":%d,"user_id":%d,"event_type":%q,"value":%.2f,"info":"`, 1_000_000+i, 10_000+r.IntN(90_000), types[r.IntN(len(types))], r.Float64()*1000)
		tail := fmt.Sprintf(`","ts":"%s"}`, at.Format("2006-01-02T15:04:05.000000Z"))
		for j := 0; len(b)+len(tail) < 142; j++ {
			b = append(b, "session information "[j%20])
		}
		out[i] = append(b, tail...)
	}
	return out
}

// nestedEvents makes events of about 1.2 kB.
func nestedEvents(n int) [][]byte {
	r := rand.New(rand.NewPCG(3, 4))
	at := time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)
	cities := []string{"Berlin", "São Paulo", "Zürich", "Tokyo", "Austin"}
	out := make([][]byte, n)
	for i := range out {
		at = at.Add(time.Duration(r.IntN(2000)) * time.Microsecond)
		b := fmt.Appendf(nil, `{"id":"evt-%012d","ts":"%s","type":"order_placed","seq":%d,`, i, at.Format("2006-01-02T15:04:05.000000Z"), i)
		b = fmt.Appendf(b, `"user":{"id":%d,"name":"Alexandra Example %d","email":"user%d@example.com","verified":%t,"created":"2019-07-%02dT08:30:00Z"},`,
			r.IntN(1_000_000), i%1000, i%100_000, r.IntN(2) == 0, 1+r.IntN(28))
		b = fmt.Appendf(b, `"device":{"os":"Android","version":"14.%d","model":"Pixel %d Pro","screen":{"w":1440,"h":3120,"dpr":3.5},"battery":%.2f},`, r.IntN(9), 5+r.IntN(4), r.Float64())
		b = fmt.Appendf(b, `"geo":{"lat":%.6f,"lon":%.6f,"country":"DE","city":%q,"accuracy":%.1f},`, r.Float64()*90, r.Float64()*180, cities[r.IntN(len(cities))], r.Float64()*50)
		b = fmt.Appendf(b, `"page":{"url":"https://shop.example.com/checkout/confirm?order=%d","referrer":"https://shop.example.com/cart","title":"Order confirmed - thank you for shopping at the example store, your parcel is on its way to you","load_ms":%d},"items":[`, r.IntN(1e9), 50+r.IntN(900))
		for j := range 3 {
			if j > 0 {
				b = append(b, ',')
			}
			b = fmt.Appendf(b, `{"sku":"SKU-%06d","name":"Article number %d of the spring catalogue, grey","qty":%d,"price":%.2f,"tags":["new","sale","cat-%d"]}`, r.IntN(1e6), r.IntN(1000), 1+r.IntN(5), r.Float64()*500, r.IntN(30))
		}
		b = fmt.Appendf(b, `],"scores":[%.3f,%.3f,%.3f,%.3f],"session":"%016x%016x","note":null}`, r.Float64(), r.Float64(), r.Float64(), r.Float64(), r.Uint64(), r.Uint64())
		out[i] = b
	}
	return out
}

type rawMessages [][]byte

func (m rawMessages) Len() int                      { return len(m) }
func (m rawMessages) Bytes(i int) ([]byte, bool)    { return m[i], true }
func (m rawMessages) Structured(i int) (any, error) { return nil, nil }

type valueMessages []any

func (m valueMessages) Len() int                      { return len(m) }
func (m valueMessages) Bytes(i int) ([]byte, bool)    { return nil, false }
func (m valueMessages) Structured(i int) (any, error) { return m[i], nil }

func benchmark(b *testing.B, table string, src Source) {
	p := plan(b, table, Options{Evolve: true})
	mem := memory.NewGoAllocator()
	b.ReportAllocs()
	for b.Loop() {
		chunk, err := p.Convert(src, nil, ArrowTuning{BatchSize: DefaultBatchSize}, mem)
		if err != nil || chunk.Rows != src.Len() || chunk.Unknown != nil || len(chunk.Errors) > 0 {
			b.Fatal("conversion failed", err, chunk.Errors)
		}
		chunk.Release()
	}
	b.ReportMetric(float64(b.N)*float64(src.Len())/b.Elapsed().Seconds()/1e6, "Mrows/s")
}

func BenchmarkFlat(b *testing.B)   { benchmark(b, flatType, rawMessages(flatEvents(10_000))) }
func BenchmarkNested(b *testing.B) { benchmark(b, nestedType, rawMessages(nestedEvents(2_000))) }

func BenchmarkStructuredFlat(b *testing.B) {
	benchmark(b, flatType, valueMessages(structuredEvents(b, flatEvents(10_000))))
}

func BenchmarkStructuredNested(b *testing.B) {
	benchmark(b, nestedType, valueMessages(structuredEvents(b, nestedEvents(2_000))))
}

// structuredEvents are the events as a mapping would hand them over.
func structuredEvents(t testing.TB, events [][]byte) []any {
	out := make([]any, len(events))
	for i, e := range events {
		dec := jsonDecoder(bytes.NewReader(e))
		var v any
		require.NoError(t, dec.Decode(&v))
		out[i] = v
	}
	return out
}

func jsonDecoder(r io.Reader) *json.Decoder {
	dec := json.NewDecoder(r)
	dec.UseNumber()
	return dec
}

// The strict decoder alone, and the observation that a new table begins with.
func BenchmarkStrictFlat(b *testing.B) {
	p := plan(b, flatType, Options{Evolve: true})
	events := flatEvents(10_000)
	c := newConverter(p)
	for b.Loop() {
		c.root.reserve(len(events), memory.DefaultAllocator)
		for _, e := range events {
			if _, r := c.strict.row(c.root, e); r != nil {
				b.Fatal(r)
			}
		}
		c.root.drop()
	}
	b.ReportMetric(float64(b.N)*float64(len(events))/b.Elapsed().Seconds()/1e6, "Mrows/s")
}

func BenchmarkObserveFlat(b *testing.B) {
	p := plan(b, "", Options{Evolve: true})
	src := rawMessages(flatEvents(10_000))
	for b.Loop() {
		chunk, err := p.Convert(src, nil, ArrowTuning{}, nil)
		if err != nil || chunk.Unknown == nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*float64(len(src))/b.Elapsed().Seconds()/1e6, "Mrows/s")
}

// TestBenchmarkEvents holds the events to the sizes that the figures are given
// for. With EVENTS_DIR set it also writes 1,000,000 flat and 100,000 nested ones
// there, as NDJSON, for a comparison with another engine on the same data.
func TestBenchmarkEvents(t *testing.T) {
	if dir := os.Getenv("EVENTS_DIR"); dir != "" {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "flat.ndjson"), bytes.Join(flatEvents(1_000_000), []byte("\n")), 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "nested.ndjson"), bytes.Join(nestedEvents(100_000), []byte("\n")), 0o644))
	}
	for _, e := range flatEvents(100) {
		require.Len(t, e, 142)
	}
	total := 0
	for _, e := range nestedEvents(100) {
		total += len(e)
	}
	require.InDelta(t, 1200, total/100, 60)
}
