package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/example-org/subrelay-operator/test/images/internal/process"
)

func awaitHealthy(t *testing.T, port int) {
	t.Helper()
	require.Eventually(t, func() bool {
		response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/healthz", port))
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	}, waitFor, tick)
}

func TestProcess(t *testing.T) {
	folder, port := t.TempDir(), process.FreePort(t)
	writeFile(t, filepath.Join(folder, "config.yaml"), fullConfig(port, folder))
	running := process.StartSelf(t, folder, nil, "-local-model")
	awaitHealthy(t, port)

	assert.DirExists(t, filepath.Join(folder, "auths"))
	log := filepath.Join(folder, "logs", "main.log")
	call(t, "GET", fmt.Sprintf("http://127.0.0.1:%d/v1/models?key=%s", port, clientKey), "")
	require.Eventually(t, func() bool { return strings.Contains(readFile(t, log), "path=/v1/models") }, waitFor, tick)
	assert.NotContains(t, readFile(t, log), clientKey)
	assert.NotContains(t, running.Output(), "path=", "with logging-to-file the log is not on standard output")

	asked := time.Now()
	running.Signal(syscall.SIGTERM)
	assert.Zero(t, running.Wait())
	assert.Less(t, time.Since(asked), 2*time.Second)
}

func TestLogFallsBackToTheAuthFolder(t *testing.T) {
	folder, port := t.TempDir(), process.FreePort(t)
	writeFile(t, filepath.Join(folder, "logs"), "a file where the folder should be")
	writeFile(t, filepath.Join(folder, "config.yaml"), fullConfig(port, folder))
	process.StartSelf(t, folder, nil, "-local-model", "-config", filepath.Join(folder, "config.yaml"))
	awaitHealthy(t, port)
	assert.FileExists(t, filepath.Join(folder, "auths", "logs", "main.log"))
}

// holdRequest sends a request to a server whose handler answers after release,
// and returns once it has arrived there. The channel gives the status, 0 when
// the connection was cut.
func holdRequest(address string, arrived <-chan struct{}) <-chan int {
	answered := make(chan int, 1)
	go func() {
		response, err := http.Get(address)
		if err != nil {
			answered <- 0
			return
		}
		_ = response.Body.Close()
		answered <- response.StatusCode
	}()
	<-arrived
	return answered
}

func TestRequestsInFlightAtShutdown(t *testing.T) {
	for name, test := range map[string]struct {
		drainBudget time.Duration
		want        int
	}{
		"young process drains": {drainBudget: drainBudget, want: http.StatusNoContent},
		"old process cuts":     {drainBudget: 0, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			arrived, release := make(chan struct{}), make(chan struct{})
			handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				close(arrived)
				<-release
				w.WriteHeader(http.StatusNoContent)
			})
			ctx, stop := context.WithCancel(t.Context())
			drainCtx, cancel := context.WithTimeout(t.Context(), test.drainBudget)
			defer cancel()
			port := process.FreePort(t)
			ended := make(chan error, 1)
			go func() { ended <- serve(ctx, drainCtx, &config{Host: "127.0.0.1", Port: port}, handler) }()
			awaitListening(t, port)

			answered := holdRequest(fmt.Sprintf("http://127.0.0.1:%d/", port), arrived)
			stop()
			if test.want == 0 {
				assert.Zero(t, <-answered)
			}
			close(release)
			if test.want != 0 {
				assert.Equal(t, test.want, <-answered)
			}
			assert.NoError(t, <-ended)
		})
	}
}

func awaitListening(t *testing.T, port int) {
	t.Helper()
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return false
		}
		return conn.Close() == nil
	}, waitFor, tick)
}

func TestFailedStartsEndWithExitCodeZero(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, folder string){
		"config missing": func(*testing.T, string) {},
		"config empty":   func(t *testing.T, folder string) { writeFile(t, filepath.Join(folder, "config.yaml"), "") },
		"config invalid": func(t *testing.T, folder string) {
			writeFile(t, filepath.Join(folder, "config.yaml"), "port: [")
		},
		"config is a folder": func(t *testing.T, folder string) {
			require.NoError(t, os.Mkdir(filepath.Join(folder, "config.yaml"), 0o700))
		},
		"key too long": func(t *testing.T, folder string) {
			content := strings.Replace(fullConfig(process.FreePort(t), folder), managementKey, strings.Repeat("k", 73), 1)
			writeFile(t, filepath.Join(folder, "config.yaml"), content)
		},
		"auth-dir not creatable": func(t *testing.T, folder string) {
			writeFile(t, filepath.Join(folder, "auths"), "a file where the folder should be")
			writeFile(t, filepath.Join(folder, "config.yaml"), fullConfig(process.FreePort(t), folder))
		},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			prepare(t, folder)
			running := process.StartSelf(t, folder, nil, "-local-model")
			assert.Zero(t, running.Wait())
			assert.Contains(t, running.Output(), "CLIProxyAPI stopped")
			assert.NotContains(t, running.Output(), strings.Repeat("k", 73))
		})
	}
}

func TestModelCatalogueIsFetchedThroughTheEnvironmentsProxy(t *testing.T) {
	fetched := make(chan string, 1)
	proxy, calls := startProxy(t, func(w http.ResponseWriter, r *http.Request) {
		fetched <- r.URL.Host
		w.WriteHeader(http.StatusBadGateway)
	})
	start := func(arguments ...string) int {
		folder, port := t.TempDir(), process.FreePort(t)
		writeFile(t, filepath.Join(folder, "config.yaml"), fullConfig(port, folder))
		process.StartSelf(t, folder, []string{"HTTP_PROXY=" + proxy}, arguments...)
		return port
	}
	port := start()
	select {
	case host := <-fetched:
		assert.Equal(t, "models.example.invalid", host)
	case <-time.After(waitFor):
		t.Fatal("nothing was fetched")
	}
	awaitHealthy(t, port) // the failed fetch is only a warning

	awaitHealthy(t, start("-local-model"))
	assert.EqualValues(t, 1, calls.Load(), "-local-model fetches nothing")
}
