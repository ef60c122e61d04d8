package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// configureLogging points the default logger at standard output or, with
// logging-to-file, at logs/main.log below the working directory. A folder that
// cannot be written falls back to logs/ below auth-dir. The returned function
// closes the file and sends later messages to standard output again.
func configureLogging(cfg *config) (func(), error) {
	level := slog.LevelInfo
	if cfg.Debug {
		level = slog.LevelDebug
	}
	setOutput := func(w io.Writer) {
		slog.SetDefault(slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})))
	}
	setOutput(os.Stdout)
	if !cfg.LoggingToFile {
		return func() {}, nil
	}

	file, err := openLogFile("logs")
	if err != nil {
		var fallbackErr error
		if file, fallbackErr = openLogFile(filepath.Join(cfg.AuthDir, "logs")); fallbackErr != nil {
			return nil, fmt.Errorf("open the log file: %w", errors.Join(err, fallbackErr))
		}
	}
	setOutput(file)
	return func() {
		setOutput(os.Stdout)
		_ = file.Close()
	}, nil
}

func openLogFile(folder string) (*os.File, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	return os.OpenFile(filepath.Join(folder, "main.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
}

// logRequests writes one line per request, health probes included. It logs the
// path without the query, because the query may carry a client key.
func logRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started := time.Now()
		recorder := &statusRecorder{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(recorder, r)
		slog.Info("request", "method", r.Method, "path", r.URL.Path, "status", recorder.status,
			"client", clientIP(r), "duration", time.Since(started).Round(time.Millisecond))
	})
}

type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (s *statusRecorder) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach Flush of the underlying writer.
func (s *statusRecorder) Unwrap() http.ResponseWriter { return s.ResponseWriter }
