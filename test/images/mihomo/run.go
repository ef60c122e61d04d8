package main

import (
	"context"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"time"
)

// run serves until ctx ends, then returns at once: open tunnels are cut.
// A signal on reload reads configuration and provider files again; listeners
// and users stay as they are.
func run(ctx context.Context, paths paths, reload <-chan os.Signal, stdout io.Writer) error {
	cfg, err := loadConfig(paths)
	if err != nil {
		return err
	}
	log := newLogger(cfg.LogLevel, stdout)
	p := newProxy(newRouter(cfg, log), cfg.Authentication, log)

	closeProxy := serve(log, "HTTP proxy", cfg.listenAddress(), func(l net.Listener) net.Listener {
		return allowedListener{Listener: l, allowed: cfg.LANAllowedIPs}
	}, p.handler())
	defer closeProxy()
	if cfg.ExternalController != "" {
		unchanged := func(l net.Listener) net.Listener { return l }
		closeController := serve(log, "controller", cfg.ExternalController, unchanged, controllerHandler(cfg.Secret))
		defer closeController()
	}

	for {
		select {
		case <-ctx.Done():
			return nil
		case <-reload:
			if cfg, err := loadConfig(paths); err != nil {
				log.Error("the changed configuration is not used", "error", err)
			} else {
				p.routes.Store(newRouter(cfg, log))
				log.Info("configuration read", "path", paths.file)
			}
		}
	}
}

// serve starts a server. An address that cannot be used is logged and the
// process lives on without it, as in the real program.
func serve(log *slog.Logger, name, address string, wrap func(net.Listener) net.Listener, handler http.Handler) (stop func()) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		log.Error("cannot listen", "server", name, "error", err)
		return func() {}
	}
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	go func() { _ = server.Serve(wrap(listener)) }() // ends when stop is called
	log.Info("listening", "server", name, "address", listener.Addr().String())
	return func() { _ = server.Close() }
}

func newLogger(level string, w io.Writer) *slog.Logger {
	levels := map[string]slog.Level{
		"debug":   slog.LevelDebug,
		"info":    slog.LevelInfo,
		"warning": slog.LevelWarn,
		"error":   slog.LevelError,
		"silent":  math.MaxInt,
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: levels[level]}))
}
