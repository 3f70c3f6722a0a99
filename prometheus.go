package main

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redpanda-data/benthos/v4/public/service"
)

func init() {
	spec := service.NewConfigSpec().
		Summary("Serves metrics in the text format of Prometheus, under `/metrics` of the service-wide HTTP server.").
		Description("Names are those of Benthos; a time, whose name ends in `_ns`, is a histogram of seconds, and its name ends in `_seconds`.").
		Field(service.NewBoolField("process_metrics").
			Description("Whether to add metrics of the process and of the Go runtime.").
			Default(true))
	service.MustRegisterMetricsExporter("prometheus", spec, func(conf *service.ParsedConfig, _ *service.Logger) (service.MetricsExporter, error) {
		process, err := conf.FieldBool("process_metrics")
		if err != nil {
			return nil, err
		}
		return newPromExporter(process), nil
	})
}

// latencyBuckets are seconds: from a fast local commit to a long stall.
var latencyBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2, 5, 10, 30, 60, 120, 300}

// promExporter keeps one vector for each name and set of labels. Benthos uses one
// name with different labels (a component with a label of its own beside one
// without), which a Prometheus registry refuses of checked collectors; so the
// exporter is one unchecked collector over all of them.
type promExporter struct {
	registry *prometheus.Registry
	mu       sync.RWMutex
	vectors  map[string]prometheus.Collector // by kind, name and labels
}

func newPromExporter(process bool) *promExporter {
	p := &promExporter{registry: prometheus.NewRegistry(), vectors: map[string]prometheus.Collector{}}
	p.registry.MustRegister(p)
	if process {
		p.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	return p
}

// Describe sends nothing, which makes the collector an unchecked one.
func (p *promExporter) Describe(chan<- *prometheus.Desc) {}

func (p *promExporter) Collect(ch chan<- prometheus.Metric) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, v := range p.vectors {
		v.Collect(ch)
	}
}

// vector gives the vector of that name and labels, made by create if need be.
func vector[V prometheus.Collector](p *promExporter, kind, name string, labels []string, create func() V) V {
	key := kind + "\x00" + name + "\x00" + strings.Join(labels, "\x00")
	p.mu.Lock()
	defer p.mu.Unlock()
	if v, ok := p.vectors[key]; ok {
		return v.(V) // the kind is part of the key
	}
	v := create()
	p.vectors[key] = v
	return v
}

func (p *promExporter) NewCounterCtor(name string, labels ...string) service.MetricsExporterCounterCtor {
	name, labels = promName(name), promNames(labels)
	v := vector(p, "counter", name, labels, func() *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: "Benthos counter"}, labels)
	})
	return func(values ...string) service.MetricsExporterCounter {
		return promCounter{v.WithLabelValues(values...)}
	}
}

func (p *promExporter) NewTimerCtor(name string, labels ...string) service.MetricsExporterTimerCtor {
	name, labels = strings.TrimSuffix(promName(name), "_ns")+"_seconds", promNames(labels)
	v := vector(p, "timer", name, labels, func() *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: "Benthos timer", Buckets: latencyBuckets}, labels)
	})
	return func(values ...string) service.MetricsExporterTimer { return promTimer{v.WithLabelValues(values...)} }
}

func (p *promExporter) NewGaugeCtor(name string, labels ...string) service.MetricsExporterGaugeCtor {
	name, labels = promName(name), promNames(labels)
	v := vector(p, "gauge", name, labels, func() *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: "Benthos gauge"}, labels)
	})
	return func(values ...string) service.MetricsExporterGauge { return promGauge{v.WithLabelValues(values...)} }
}

// HandlerFunc is what Benthos serves under /metrics.
func (p *promExporter) HandlerFunc() http.HandlerFunc {
	return promhttp.HandlerFor(p.registry, promhttp.HandlerOpts{}).ServeHTTP
}

func (p *promExporter) Close(context.Context) error { return nil }

type promCounter struct{ prometheus.Counter }

func (c promCounter) Incr(n int64)          { c.Add(float64(n)) }
func (c promCounter) IncrFloat64(n float64) { c.Add(n) }

type promTimer struct{ prometheus.Observer }

func (t promTimer) Timing(ns int64) { t.Observe(float64(ns) / 1e9) }

type promGauge struct{ prometheus.Gauge }

func (g promGauge) Set(n int64)          { g.Gauge.Set(float64(n)) }
func (g promGauge) SetFloat64(n float64) { g.Gauge.Set(n) }

// promName puts an underscore for each character that a Prometheus name cannot have.
func promName(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, s)
}

func promNames(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = promName(n)
	}
	return out
}
