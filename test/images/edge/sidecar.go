package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// The sidecar's port, which the controller writes into the probes and hooks of every proxy's Pod.
const sidecarPort = "19002"

// runSidecar is `envoy-gateway envoy shutdown-manager`, the container beside Envoy, and `envoy-gateway envoy shutdown`, that
// container's hook. Envoy is to end when its connections have drained; the stand-in waits for none.
func runSidecar(ctx context.Context, arguments []string, log *slog.Logger) error {
	switch {
	case len(arguments) >= 2 && arguments[0] == "envoy" && arguments[1] == "shutdown":
		return nil
	case len(arguments) >= 2 && arguments[0] == "envoy" && arguments[1] == "shutdown-manager":
		return serveSidecar(ctx, net.JoinHostPort("", sidecarPort), log)
	default:
		return fmt.Errorf("unknown command %q: use `envoy shutdown-manager` or `envoy shutdown`", arguments)
	}
}

// serveSidecar answers the kubelet's probe and Envoy's hook until ctx ends.
func serveSidecar(ctx context.Context, address string, log *slog.Logger) error {
	mux := http.NewServeMux()
	ok := func(http.ResponseWriter, *http.Request) {}
	mux.HandleFunc("/healthz", ok)
	mux.HandleFunc("/shutdown/ready", ok)
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	log.Info("listening", "address", address)
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
