package main

import (
	"log/slog"
	"net/http"
	"time"
)

// access is what is known of a request when it has ended.
type access struct {
	start    time.Time
	route    string
	upstream string
}

// logAccess writes one line with the names that Envoy Gateway gives the fields by default.
func (p *proxy) logAccess(w *recorder, r *http.Request, entry *access) {
	p.log.Info("access",
		slog.String("method", r.Method),
		slog.String(":authority", r.Host),
		slog.String("x-envoy-origin-path", r.URL.Path),
		slog.Int("response_code", w.status),
		slog.String("route_name", entry.route),
		slog.String("upstream_host", entry.upstream),
		slog.Int64("duration", time.Since(entry.start).Milliseconds()),
	)
}

// recorder remembers the status of an answer.
type recorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(p) //nolint:gosec // answers that pass through, and the controller's own
}

// Unwrap gives http.ResponseController, and with it the reverse proxy, flushing and upgrades.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
