package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/example-org/subrelay-operator/test/images/internal/process"
)

const (
	waitFor = 30 * time.Second
	tick    = 10 * time.Millisecond
)

func TestMain(m *testing.M) { process.Main(m, main) }

// fullConfig has every setting that the stand-in knows. %d are the ports of the
// proxy and of the controller.
const fullConfig = `port: %d
allow-lan: true
bind-address: "*"
lan-allowed-ips: [127.0.0.0/8]
authentication: ["subrelay:password"]
mode: rule
log-level: info
ipv6: false
find-process-mode: "off"
geodata-mode: false
geo-auto-update: false
external-controller: 127.0.0.1:%d
secret: "controller-secret"
profile:
  store-selected: false
  store-fake-ip: false
dns:
  enable: false
proxy-providers:
  nodes:
    type: file
    path: ./providers/nodes.yaml
    exclude-type: dns|reject
    health-check:
      enable: true
      url: https://health.example.invalid/generate_204
      interval: 300
      timeout: 5000
      lazy: false
      expected-status: "204"
proxy-groups:
  - name: GW
    type: fallback
    proxies: [REJECT]
    use: [nodes]
    empty-fallback: REJECT
    url: https://health.example.invalid/generate_204
    interval: 300
    timeout: 5000
    lazy: false
    expected-status: "204"
rules:
  - DOMAIN-SUFFIX,cluster.local,REJECT
  - GEOIP,LAN,REJECT,no-resolve
  - MATCH,GW
`

func full(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf(fullConfig, process.FreePort(t), process.FreePort(t))
}

// home is a home folder with config.yaml and, if nodes is not empty, the
// provider file.
func home(t *testing.T, config, nodes string) paths {
	t.Helper()
	folder := t.TempDir()
	p := paths{home: folder, file: filepath.Join(folder, "config.yaml")}
	writeConfigFile(t, p, config)
	if nodes != "" {
		writeNodes(t, p, nodes)
	}
	return p
}

func writeConfigFile(t *testing.T, p paths, config string) {
	t.Helper()
	require.NoError(t, os.WriteFile(p.file, []byte(config), 0o600))
}

func writeNodes(t *testing.T, p paths, nodes string) {
	t.Helper()
	folder := filepath.Join(p.home, "providers")
	require.NoError(t, os.MkdirAll(folder, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "nodes.yaml"), []byte(nodes), 0o600))
}

// lockedLog collects the access log.
type lockedLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// names is a resolver for tests.
type names map[string]string

func (n names) lookup(_ context.Context, host string) (netip.Addr, error) {
	if address, ok := n[host]; ok {
		return netip.ParseAddr(address)
	}
	return netip.Addr{}, errors.New("no such host")
}

// startProxy serves the rules on loopback. It returns the proxy's URL and log.
func startProxy(t *testing.T, config, nodes string, users ...string) (*url.URL, *lockedLog) {
	t.Helper()
	cfg, err := loadConfig(home(t, "port: 7890\n"+config, nodes))
	require.NoError(t, err)
	output := &lockedLog{}
	log := slog.New(slog.NewTextHandler(output, nil))
	routes := newRouter(cfg, log)
	routes.lookup = names{"inside.example": "10.0.0.1"}.lookup
	web := httptest.NewServer(newProxy(routes, users, log).handler())
	t.Cleanup(web.Close)
	address, err := url.Parse(web.URL)
	require.NoError(t, err)
	return address, output
}

// get fetches an address through the proxy, directly without one. Status 0 stands for a connection
// that was closed.
func get(t *testing.T, proxy *url.URL, address string) (status int, body string) {
	t.Helper()
	transport := &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   insecure(),
	}
	if proxy != nil {
		transport.Proxy = http.ProxyURL(proxy)
	}
	response, err := (&http.Client{Transport: transport, Timeout: waitFor}).Get(address)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(content)
}

// startOrigin starts a server that says hello, once over HTTP and once over TLS.
func startOrigin(t *testing.T) (plain, tls string) {
	t.Helper()
	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "hello %s %s", r.Method, r.Header.Get("Proxy-Authorization"))
	})
	plainServer, tlsServer := httptest.NewServer(hello), httptest.NewTLSServer(hello)
	t.Cleanup(plainServer.Close)
	t.Cleanup(tlsServer.Close)
	return plainServer.URL, tlsServer.URL
}

func httpNodeYAML(t *testing.T, name string, proxy *url.URL) string {
	t.Helper()
	port, err := strconv.Atoi(proxy.Port())
	require.NoError(t, err)
	return fmt.Sprintf("  - {name: %s, type: http, server: %s, port: %d, username: u, password: p}\n", name, proxy.Hostname(), port)
}
