package main

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/example-org/subrelay-operator/test/images/internal/process"
)

func TestSidecarAnswersProbeAndHook(t *testing.T) {
	address := "127.0.0.1:" + strconv.Itoa(process.FreePort(t))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serveSidecar(ctx, address, slog.New(slog.DiscardHandler)) }()
	for _, path := range []string{"/healthz", "/shutdown/ready"} {
		require.Eventually(t, func() bool {
			response, err := http.Get("http://" + address + path)
			if err != nil {
				return false
			}
			_ = response.Body.Close()
			return response.StatusCode == http.StatusOK
		}, waitFor, tick, path)
	}
	cancel()
	require.NoError(t, <-ended)
}

func TestSidecarHasTwoCommands(t *testing.T) {
	require.NoError(t, runSidecar(t.Context(), []string{"envoy", "shutdown", "--drain-timeout=60s"}, nil))
	for _, arguments := range [][]string{nil, {"server"}, {"envoy", "dance"}} {
		require.ErrorContains(t, runSidecar(t.Context(), arguments, nil), "use `envoy shutdown-manager` or")
	}
}
