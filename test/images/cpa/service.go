package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// drainBudget is how long after the start of the process requests in flight
// are still drained at shutdown. The real program makes its shutdown context
// when the service starts, so a process older than this cuts them at once.
const drainBudget = 30 * time.Second

type options struct {
	configPath         string
	localModel         bool
	managementPassword string
}

// run serves until ctx ends. Every error it returns is a failed start or a
// listener that broke.
func run(ctx context.Context, opts options) error {
	drainCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainBudget)
	defer cancel()

	path, err := configPath(opts.configPath)
	if err != nil {
		return err
	}
	live, err := newLiveConfig(path)
	if err != nil {
		return err
	}
	cfg := live.get()
	if err := os.MkdirAll(cfg.AuthDir, 0o700); err != nil {
		return fmt.Errorf("create auth-dir: %w", err)
	}
	closeLog, err := configureLogging(cfg)
	if err != nil {
		return err
	}
	defer closeLog()

	stopWatching, err := live.watch()
	if err != nil {
		return err
	}
	defer stopWatching()

	if !opts.localModel {
		go fetchModelCatalogue(ctx)
	}
	return serve(ctx, drainCtx, cfg, newServer(live, opts.managementPassword).handler())
}

func configPath(flagValue string) (string, error) {
	if flagValue != "" {
		return flagValue, nil
	}
	workDir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the working directory: %w", err)
	}
	return filepath.Join(workDir, "config.yaml"), nil
}

func serve(ctx, drainCtx context.Context, cfg *config, handler http.Handler) error {
	listener, err := net.Listen("tcp", net.JoinHostPort(cfg.Host, strconv.Itoa(cfg.Port)))
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(listener) }()
	slog.Info("API server started", "address", listener.Addr().String())

	select {
	case err := <-stopped:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	if err := server.Shutdown(drainCtx); err != nil {
		slog.Warn("requests in flight were cut", "error", err)
		return ignoreClosed(server.Close())
	}
	return nil
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
