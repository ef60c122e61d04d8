// Package images_test runs the three stand-ins as the processes of a pool.
package images_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/example-org/subrelay-operator/test/images/internal/process"
)

const (
	waitFor = 30 * time.Second
	tick    = 20 * time.Millisecond

	clientKey, managementKey, adminKey = "client-key", "management-key", "admin-key"
)

// pool is one running set of stand-ins on loopback.
type pool struct {
	cpa, manager, mihomo          *process.Process
	cpaURL, managerURL, mihomoURL string
}

func TestModelCallOfAPool(t *testing.T) {
	provider := startProvider(t)
	pool := startPool(t)

	config := pool.management(t, "GET", "")
	config += fmt.Sprintf(`openai-compatibility:
  - name: upstream
    base-url: %s
    models: [{name: model}]
`, provider)
	pool.management(t, "PUT", config)

	status, body := request(t, "POST", pool.cpaURL+"/v1/chat/completions", `{"model":"model"}`, clientKey)
	require.Equal(t, http.StatusOK, status, body)
	host := strings.TrimPrefix(provider, "http://")
	assert.Contains(t, pool.mihomo.Output(), "method=POST host="+host+" rule=MATCH decision=GW[out]")

	require.Eventually(t, func() bool { return pool.storedEvents(t) == 1 }, waitFor, tick,
		"the manager fetches the usage event")

	for name, running := range map[string]*process.Process{"cpa": pool.cpa, "manager": pool.manager, "mihomo": pool.mihomo} {
		running.Signal(syscall.SIGTERM)
		assert.Zero(t, running.Wait(), "%s: %s", name, running.Output())
	}
}

func startProvider(t *testing.T) string {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"usage":{"total_tokens":1}}`)
	}))
	t.Cleanup(web.Close)
	return web.URL
}

func startPool(t *testing.T) *pool {
	t.Helper()
	binaries, folder := build(t), t.TempDir()
	cpaPort, managerPort, mihomoPort := process.FreePort(t), process.FreePort(t), process.FreePort(t)
	p := &pool{
		cpaURL:     fmt.Sprintf("http://127.0.0.1:%d", cpaPort),
		managerURL: fmt.Sprintf("http://127.0.0.1:%d", managerPort),
		mihomoURL:  fmt.Sprintf("http://127.0.0.1:%d", mihomoPort),
	}

	write(t, filepath.Join(folder, "mihomo", "config.yaml"), fmt.Sprintf(`port: %d
proxy-providers: {nodes: {type: file, path: ./providers/nodes.yaml}}
proxy-groups: [{name: GW, type: fallback, proxies: [REJECT], use: [nodes]}]
rules: ["DOMAIN-SUFFIX,cluster.local,REJECT", "MATCH,GW"]
`, mihomoPort))
	write(t, filepath.Join(folder, "mihomo", "providers", "nodes.yaml"), "proxies: [{name: out, type: direct}]\n")
	p.mihomo = process.Start(t, filepath.Join(binaries, "mihomo"), folder, nil, "-d", filepath.Join(folder, "mihomo"))

	// The manager comes up before cpa, as it may in a pool.
	write(t, filepath.Join(folder, "secrets", "management"), managementKey+"\n")
	write(t, filepath.Join(folder, "secrets", "admin"), adminKey+"\n")
	p.manager = process.Start(t, filepath.Join(binaries, "cpa-manager"), folder, []string{
		fmt.Sprintf("HTTP_ADDR=127.0.0.1:%d", managerPort),
		"USAGE_DATA_DIR=" + folder,
		"CPA_UPSTREAM_URL=" + p.cpaURL,
		"CPA_MANAGEMENT_KEY_FILE=" + filepath.Join(folder, "secrets", "management"),
		"CPA_MANAGER_ADMIN_KEY_FILE=" + filepath.Join(folder, "secrets", "admin"),
		"USAGE_COLLECTOR_MODE=http",
		"USAGE_POLL_INTERVAL_MS=50",
	})
	awaitOK(t, p.manager, p.managerURL+"/health")

	configFile := filepath.Join(folder, "cpa", "config.yaml")
	write(t, configFile, fmt.Sprintf(`host: ""
port: %d
auth-dir: %s/cpa/auths
api-keys: ['%s']
remote-management:
  secret-key: '%s'
proxy-url: '%s'
usage-statistics-enabled: true
`, cpaPort, folder, clientKey, managementKey, p.mihomoURL))
	p.cpa = process.Start(t, filepath.Join(binaries, "cpa"), folder, nil, "-local-model", "-config", configFile)
	awaitOK(t, p.cpa, p.cpaURL+"/healthz")
	return p
}

func build(t *testing.T) string {
	t.Helper()
	sources, err := filepath.Glob("*/*.go")
	require.NoError(t, err)
	for _, source := range sources {
		_, err := os.Stat(source) // tells the test cache what the result depends on
		require.NoError(t, err)
	}
	folder := t.TempDir()
	output, err := exec.CommandContext(t.Context(), "go", "build", "-o", folder, "./cpa", "./cpa-manager", "./mihomo").CombinedOutput()
	require.NoError(t, err, "%s", output)
	return folder
}

// management reads or writes cpa's configuration through the manager.
func (p *pool) management(t *testing.T, method, body string) string {
	t.Helper()
	status, answer := request(t, method, p.managerURL+"/v0/management/config.yaml", body, adminKey)
	require.Equal(t, http.StatusOK, status, answer)
	return answer
}

func (p *pool) storedEvents(t *testing.T) int {
	t.Helper()
	_, body := request(t, "GET", p.managerURL+"/status", "", adminKey)
	var status struct {
		Events int `json:"events"`
	}
	require.NoError(t, json.Unmarshal([]byte(body), &status))
	return status.Events
}

func request(t *testing.T, method, address, body, key string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+key)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(answer)
}

func awaitOK(t *testing.T, running *process.Process, address string) {
	t.Helper()
	require.Eventually(t, func() bool {
		response, err := http.Get(address)
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	}, waitFor, tick, "%s", running.Output())
}

func write(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}
