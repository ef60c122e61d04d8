package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/gofrs/flock"
)

// shutdownBudget bounds the drain of requests in flight, as in the real program.
const shutdownBudget = 10 * time.Second

// run serves until ctx ends. The database is opened before the port is.
func run(ctx context.Context, getenv func(string) string) (err error) {
	cfg, err := loadConfig(getenv)
	if err != nil {
		return err
	}
	unlock, err := lockDatabase(cfg.dbPath)
	if err != nil {
		return err
	}
	defer unlock()
	if err := ensureDataKey(cfg.dataKey, cfg.dataKeyPath); err != nil {
		return err
	}
	db, err := openStore(ctx, cfg.dbPath)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	generated, err := ensureAdminKey(ctx, db, cfg.adminKey)
	if err != nil {
		return err
	}
	if generated != "" {
		// The real program prints it too: it is the only way to learn the key.
		slog.Info("no admin key was given, generated one", "key", generated)
	}

	listener, err := net.Listen("tcp", cfg.httpAddr)
	if err != nil {
		return fmt.Errorf("listen on HTTP_ADDR: %w", err)
	}
	collect := newCollector(cfg, db)
	return serve(ctx, listener, newServer(cfg, db, collect).handler(), collect)
}

// lockDatabase keeps a second process away from the same database.
func lockDatabase(dbPath string) (func(), error) {
	lock := flock.New(dbPath + ".manager.lock")
	locked, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock the database: %w", err)
	}
	if !locked {
		return nil, fmt.Errorf("another process uses %s: end it first", dbPath)
	}
	return func() { _ = lock.Unlock() }, nil
}

// serve runs the HTTP server and the collector, and returns when both ended.
func serve(ctx context.Context, listener net.Listener, handler http.Handler, collect *collector) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	collected := make(chan struct{})
	go func() {
		defer close(collected)
		collect.run(ctx)
	}()

	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(listener) }()
	slog.Info("listening", "address", listener.Addr().String())

	var err error
	select {
	case err = <-stopped:
		cancel()
	case <-ctx.Done():
		drainCtx, cancelDrain := context.WithTimeout(context.WithoutCancel(ctx), shutdownBudget)
		defer cancelDrain()
		if shutdownErr := server.Shutdown(drainCtx); shutdownErr != nil {
			slog.Warn("requests in flight were cut", "error", shutdownErr)
			_ = server.Close()
		}
	}
	<-collected
	return err
}
