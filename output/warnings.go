package output

import (
	"fmt"
	"time"

	"github.com/managed-lakehouse/managed-lakehouse/arrowconv"
)

// warnings are settings that cannot reach their purpose, as far as the output's
// own config shows. The defaults give none.
func warnings(c *config) (out []string) {
	if t := c.trigger; t.Streaming && c.batching.Count > 0 && c.convert.Format == arrowconv.JSON {
		room := int64(c.batching.Count) * int64(t.Slots)
		if room < 2*t.RowLimit {
			out = append(out, fmt.Sprintf("batching.count x max_in_flight lets %d rows be unacknowledged, fewer than twice the row_limit of %d: commits will be smaller than row_limit, or wait for one another; raise max_in_flight or batching.count", room, t.RowLimit))
		}
	}
	if c.trigger.Streaming && c.trigger.IdleFloor > c.trigger.Interval {
		out = append(out, fmt.Sprintf("streaming.idle of %v is longer than streaming.commit_interval of %v, so the interval stands in for it", c.trigger.IdleFloor, c.trigger.Interval))
	}
	return out
}

// shutdownShare is the part of shutdown_timeout after which Benthos cancels writes.
const shutdownShare = 0.75

const defaultPeriod = 100 * time.Millisecond

// commitAllowance is what a commit may take at shutdown.
const commitAllowance = 5 * time.Second

// MainConfig is a main config as generic values. Benthos gives the configs of
// components as undecoded YAML nodes, without defaults.
type MainConfig struct{ m map[string]any }

// NewMainConfig takes what ParsedConfig.FieldAny gives for a main config.
func NewMainConfig(conf any) MainConfig {
	out := map[string]any{}
	m, _ := conf.(map[string]any)
	for k, v := range m {
		if node, ok := v.(interface{ Decode(any) error }); ok {
			var plain any
			if node.Decode(&plain) != nil {
				continue
			}
			v = plain
		}
		out[k] = v
	}
	return MainConfig{out}
}

// outputs are the configs of this package's outputs in the main config.
func (c MainConfig) outputs() []any {
	return append(find(c.m["output"], Name), find(c.m["output_resources"], Name)...)
}

// Warnings are settings around the output, elsewhere in the main config, that keep
// it from its purpose.
func (c MainConfig) Warnings() (out []string) {
	conf, outputs := c.m, c.outputs()
	if len(outputs) == 0 {
		return nil
	}
	if buffer, ok := conf["buffer"].(map[string]any); ok {
		if _, ok := buffer["memory"]; ok {
			out = append(out, "buffer.memory acknowledges rows before they are committed: what it holds is lost when the process dies; use buffer none")
		}
	}
	timeout := parsedOr(conf["shutdown_timeout"], 20*time.Second)
	endless := endlessInput(conf["input"])
	httpTimeout, isHTTP := httpServerTimeout(conf["input"])
	for _, o := range outputs {
		m, ok := o.(map[string]any)
		if !ok {
			continue
		}
		streaming, _ := m[fStreaming].(map[string]any)
		on, _ := streaming[fEnabled].(bool)
		batching, _ := m[fBatching].(map[string]any)
		period := parsedOr(batching["period"], defaultPeriod)
		if need := period + commitAllowance; time.Duration(shutdownShare*float64(timeout)) < need {
			out = append(out, fmt.Sprintf("shutdown_timeout of %v is short: Benthos cuts writes off after three quarters of it, and batching.period and a commit may take %v; set it to 60s", timeout, need))
		}
		if !on && endless != "" {
			out = append(out, fmt.Sprintf("streaming is off, but the input %s has no end: rows are committed only when the room for unacknowledged rows is full, or the source pauses; set streaming.enabled", endless))
		}
		if on && isHTTP {
			interval := defaultIntervalOf(m, streaming)
			if httpTimeout < interval+commitAllowance {
				out = append(out, fmt.Sprintf("input.http_server.timeout of %v is short: a request is answered when its rows are committed, which may take the commit_interval of %v and a commit; raise it to %v", httpTimeout, interval, interval+commitAllowance))
			}
		}
	}
	return out
}

// Memory is what a process takes for the outputs of a main config: the sum of
// their memory limits, and an allowance for the runtime, for columns that are being
// made, and for garbage. It is 0 where the config has no such output. It is meant for
// the soft memory limit of the runtime.
func (c MainConfig) Memory() (bytes int64) {
	for _, o := range c.outputs() {
		if m, ok := o.(map[string]any); ok {
			text, _ := m[fMemoryLimit].(string)
			n, err := parseSize(text)
			if err != nil {
				n, _ = parseSize(defaultMemoryLimit)
			}
			bytes += n
		}
	}
	if bytes > 0 {
		bytes += memoryAllowance
	}
	return bytes
}

const memoryAllowance = 128 << 20

func defaultIntervalOf(m, streaming map[string]any) time.Duration {
	name, _ := m[fTier].(string)
	if name == "" {
		name = defaultTier
	}
	t, err := tierNamed(name)
	if err != nil {
		t = tier{}
	}
	return parsedOr(streaming[fCommitInterval], t.defaultInterval())
}

// find gathers the values under a key, at any depth.
func find(v any, key string) (out []any) {
	switch x := v.(type) {
	case map[string]any:
		for k, e := range x {
			if k == key {
				out = append(out, e)
			} else {
				out = append(out, find(e, key)...)
			}
		}
	case []any:
		for _, e := range x {
			out = append(out, find(e, key)...)
		}
	}
	return out
}

func parsedOr(v any, otherwise time.Duration) time.Duration {
	if s, ok := v.(string); ok {
		if d, err := time.ParseDuration(s); err == nil {
			return d
		}
	}
	return otherwise
}

// endlessInput names an input without an end, where the config shows one.
func endlessInput(input any) string {
	m, ok := input.(map[string]any)
	if !ok {
		return ""
	}
	for _, name := range []string{"http_server", "socket_server", "websocket", "lakehouse_kafka"} {
		if _, ok := m[name]; ok {
			return name
		}
	}
	if g, ok := m["generate"].(map[string]any); ok {
		switch n := g["count"].(type) {
		case nil:
			return "generate"
		case int:
			if n == 0 {
				return "generate"
			}
		case int64:
			if n == 0 {
				return "generate"
			}
		case float64:
			if n == 0 {
				return "generate"
			}
		}
	}
	if b, ok := m["broker"].(map[string]any); ok {
		if list, ok := b["inputs"].([]any); ok {
			for _, in := range list {
				if name := endlessInput(in); name != "" {
					return name
				}
			}
		}
	}
	return ""
}

func httpServerTimeout(input any) (time.Duration, bool) {
	for _, v := range find(map[string]any{"input": input}, "http_server") {
		if m, ok := v.(map[string]any); ok {
			return parsedOr(m["timeout"], 5*time.Second), true
		}
	}
	return 0, false
}
