package output

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// benthosHandler lets packages that log by slog write to the log of Benthos.
type benthosHandler struct{ log *service.Logger }

func newSlog(l *service.Logger) *slog.Logger { return slog.New(benthosHandler{l}) }

// Enabled leaves the level to Benthos.
func (h benthosHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h benthosHandler) Handle(_ context.Context, r slog.Record) error {
	l := h.log
	if r.NumAttrs() > 0 {
		pairs := make([]any, 0, 2*r.NumAttrs())
		r.Attrs(func(a slog.Attr) bool {
			pairs = append(pairs, a.Key, fmt.Sprint(a.Value.Resolve().Any()))
			return true
		})
		l = l.With(pairs...)
	}
	switch {
	case r.Level >= slog.LevelError:
		l.Error(r.Message)
	case r.Level >= slog.LevelWarn:
		l.Warn(r.Message)
	case r.Level >= slog.LevelInfo:
		l.Info(r.Message)
	default:
		l.Debug(r.Message)
	}
	return nil
}

func (h benthosHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	pairs := make([]any, 0, 2*len(attrs))
	for _, a := range attrs {
		pairs = append(pairs, a.Key, fmt.Sprint(a.Value.Resolve().Any()))
	}
	return benthosHandler{h.log.With(pairs...)}
}

func (h benthosHandler) WithGroup(string) slog.Handler { return h }
