package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/example-org/subrelay-operator/test/images/internal/process"
)

// start runs the program with its data in the folder. It returns its address.
func start(t *testing.T, folder string, environment ...string) (*process.Process, string) {
	t.Helper()
	port := process.FreePort(t)
	environment = append(environment, fmt.Sprintf("HTTP_ADDR=127.0.0.1:%d", port), "USAGE_DATA_DIR="+folder)
	return process.StartSelf(t, folder, environment), fmt.Sprintf("http://127.0.0.1:%d", port)
}

func awaitHealthy(t *testing.T, running *process.Process, url string) {
	t.Helper()
	require.Eventually(t, func() bool {
		response, err := http.Get(url + "/health")
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	}, waitFor, tick, "%s", running.Output())
}

func TestProcess(t *testing.T) {
	fake := startFakeCPA(t, []string{`{"n":1}`})
	folder := t.TempDir()
	environment := []string{
		"CPA_UPSTREAM_URL=" + fake.URL, "CPA_MANAGEMENT_KEY=" + managementKey,
		"CPA_MANAGER_ADMIN_KEY=" + adminKey, "USAGE_POLL_INTERVAL_MS=10",
	}
	running, url := start(t, folder, environment...)
	awaitHealthy(t, running, url)
	for _, name := range []string{"usage.sqlite", "usage.sqlite.manager.lock", "data.key"} {
		assert.FileExists(t, filepath.Join(folder, name))
	}
	events := func(url string) int {
		var status struct {
			Events int `json:"events"`
		}
		call(t, "GET", url+"/status", bearer(adminKey)...).decode(t, &status)
		return status.Events
	}
	require.Eventually(t, func() bool { return events(url) == 1 }, waitFor, tick)

	second, _ := start(t, folder, environment...)
	assert.Equal(t, 1, second.Wait(), "one process per database")
	assert.Contains(t, second.Output(), "another process uses")

	asked := time.Now()
	running.Signal(syscall.SIGTERM)
	assert.Zero(t, running.Wait(), running.Output())
	assert.Less(t, time.Since(asked), 2*time.Second)
	assert.NotContains(t, running.Output(), adminKey)
	assert.NotContains(t, running.Output(), managementKey)

	running, url = start(t, folder, "CPA_MANAGER_ADMIN_KEY=another key")
	awaitHealthy(t, running, url)
	assert.Equal(t, 1, events(url), "events and the first admin key outlive the process")
	assert.Equal(t, http.StatusUnauthorized, call(t, "GET", url+"/status", bearer("another key")...).status)
}

func TestMissingAdminKeyIsGeneratedAndPrinted(t *testing.T) {
	running, url := start(t, t.TempDir(), "CPA_MANAGER_ADMIN_KEY_FILE=/does/not/exist")
	awaitHealthy(t, running, url)
	printed := regexp.MustCompile(`key=(cpamp_\w+)`).FindStringSubmatch(running.Output())
	require.NotNil(t, printed, running.Output())
	assert.Equal(t, http.StatusOK, call(t, "GET", url+"/status", bearer(printed[1])...).status)
}

func TestFailedStartsEndWithExitCodeOne(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	folder := t.TempDir()
	textFile := filepath.Join(folder, "notes.txt")
	require.NoError(t, os.WriteFile(textFile, []byte("this is not a database, however long the text may be"), 0o600))
	for name, environment := range map[string][]string{
		"no data folder":          {},
		"data folder missing":     {"USAGE_DATA_DIR=" + filepath.Join(folder, "missing")},
		"data folder read-only":   {"USAGE_DATA_DIR=/proc"},
		"port taken":              {"USAGE_DATA_DIR=" + folder, "HTTP_ADDR=" + taken.Addr().String()},
		"data key is a folder":    {"USAGE_DATA_DIR=" + folder, "CPA_MANAGER_DATA_KEY_PATH=" + folder},
		"database is a text file": {"USAGE_DATA_DIR=" + folder, "USAGE_DB_PATH=" + textFile},
	} {
		t.Run(name, func(t *testing.T) {
			running := process.StartSelf(t, folder, environment)
			assert.Equal(t, 1, running.Wait(), running.Output())
			assert.Contains(t, running.Output(), "cpa-manager stopped")
		})
	}
}
