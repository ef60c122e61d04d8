package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"

	"github.com/example-org/subrelay-operator/test/images/internal/process"
)

const (
	clientKey     = "client-key"
	managementKey = "management-key"

	waitFor = 30 * time.Second
	tick    = 10 * time.Millisecond
)

func TestMain(m *testing.M) { process.Main(m, main) }

// fullConfig is config.yaml as the operator's init script writes it.
func fullConfig(port int, folder string) string {
	return fmt.Sprintf(`host: "127.0.0.1"
port: %d
auth-dir: "%s/auths"
api-keys:
  - '%s'
remote-management:
  allow-remote: false
  secret-key: '%s'
  disable-control-panel: true
  disable-auto-update-panel: true
proxy-url: ''
debug: false
request-log: false
logging-to-file: true
logs-max-total-size-mb: 100
error-logs-max-files: 10
usage-statistics-enabled: true
redis-usage-queue-retention-seconds: 3600
ws-auth: true
plugins:
  enabled: false
`, port, folder, clientKey, managementKey)
}

func writeConfig(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// startServer serves the configuration over HTTP and watches its file.
func startServer(t *testing.T, content string) (*server, string) {
	t.Helper()
	live, err := newLiveConfig(writeConfig(t, content))
	require.NoError(t, err)
	stopWatching, err := live.watch()
	require.NoError(t, err)
	t.Cleanup(stopWatching)
	s := newServer(live, "")
	web := httptest.NewServer(s.handler())
	t.Cleanup(web.Close)
	return s, web.URL
}

// startDefault serves fullConfig with replacements (old, new, old, new ...).
// Its management key is hashed already, with the cheapest cost: the tests make
// many calls.
func startDefault(t *testing.T, replacements ...string) (*server, string) {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte(managementKey), bcrypt.MinCost)
	require.NoError(t, err)
	replacements = append(replacements, managementKey, string(hash))
	return startServer(t, strings.NewReplacer(replacements...).Replace(fullConfig(8317, t.TempDir())))
}

type answer struct {
	status int
	header http.Header
	body   string
}

// call sends a request; headers are name, value, name, value ...
func call(t *testing.T, method, address, body string, headers ...string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return answer{status: response.StatusCode, header: response.Header, body: string(content)}
}

func (a answer) decode(t *testing.T, into any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(a.body), into))
}

func withManagementKey() []string { return []string{"X-Management-Key", managementKey} }

func withClientKey() []string { return []string{"X-Api-Key", clientKey} }

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(content)
}
