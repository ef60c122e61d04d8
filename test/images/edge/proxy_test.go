package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/example-org/subrelay-operator/test/images/internal/process"
)

const poolHost = "demo-pool.example.com"

func parse[T proto.Message](t *testing.T, into T, text string) T {
	t.Helper()
	require.NoError(t, protojson.Unmarshal([]byte(text), into))
	return into
}

// poolWith is a configuration with one listener that sends demo-pool's requests to a backend, but for its management.
// action completes what the route to the backend does.
func poolWith(t *testing.T, port int, backend, action string) resources {
	t.Helper()
	host, backendPort, err := net.SplitHostPort(backend)
	require.NoError(t, err)
	return resources{
		listenerType: {parse(t, &listenerv3.Listener{}, listenerJSON(port, ""))},
		routeType: {parse(t, &routev3.RouteConfiguration{}, `{
			"name": "front/edge/http", "ignorePortInHostMatching": true,
			"virtualHosts": [{"name": "pool", "domains": ["`+poolHost+`"], "routes": [
				{"match": {"pathSeparatedPrefix": "/v0/management"}, "directResponse": {"status": 500}},
				{"match": {"path": "/old"}, "redirect": {"pathRedirect": "/new", "responseCode": "FOUND"}},
				{"match": {"prefix": "/"}, "route": {"cluster": "pool", `+action+`}}]}]}`)},
		clusterType: {parse(t, &clusterv3.Cluster{}, `{"name": "pool", "type": "EDS", "edsClusterConfig": {"serviceName": "pool-endpoints"}}`)},
		endpointType: {parse(t, &endpointv3.ClusterLoadAssignment{}, `{"clusterName": "pool-endpoints", "endpoints": [{"lbEndpoints": [
			{"healthStatus": "UNHEALTHY", "endpoint": {"address": {"socketAddress": {"address": "127.0.0.1", "portValue": 1}}}},
			{"endpoint": {"address": {"socketAddress": {"address": "`+host+`", "portValue": `+backendPort+`}}}}]}]}`)},
	}
}

// listenerJSON is a listener as the controller makes it; chain completes its only filter chain.
func listenerJSON(port int, chain string) string {
	return fmt.Sprintf(`{"name": "front/edge/http", "address": {"socketAddress": {"address": "127.0.0.1", "portValue": %d}},
		"filterChains": [{"filters": [{"name": "http", "typedConfig": {
			"@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
			"rds": {"routeConfigName": "front/edge/http", "configSource": {"ads": {}}},
			"httpFilters": [{"name": "health", "typedConfig": {
				"@type": "type.googleapis.com/envoy.extensions.filters.http.health_check.v3.HealthCheck",
				"headers": [{"name": ":path", "stringMatch": {"exact": "/ready"}}]}}]}}]%s}]}`, port, chain)
}

// edge is a proxy under test and its controller.
type edge struct {
	*controller
	url    string
	client *http.Client
}

// newEdge starts a proxy in front of a backend.
func newEdge(t *testing.T, backend http.HandlerFunc, action string) *edge {
	t.Helper()
	server := httptest.NewServer(backend)
	t.Cleanup(server.Close)
	port := process.FreePort(t)
	e := &edge{controller: newController(t, tls.RequireAndVerifyClientCert), url: "http://127.0.0.1:" + strconv.Itoa(port)}
	e.client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(e.client.CloseIdleConnections)
	e.send(poolWith(t, port, server.Listener.Addr().String(), action))
	e.proxy(options{})
	e.eventually("/v0/management", http.StatusInternalServerError)
	return e
}

func (e *edge) request(method, path string, body io.Reader) *http.Request {
	e.t.Helper()
	request, err := http.NewRequestWithContext(e.t.Context(), method, e.url+path, body)
	require.NoError(e.t, err)
	request.Host = poolHost
	return request
}

// answer is what came back.
type answer struct {
	status   int
	protocol string
	location string
	body     string
}

func (e *edge) do(request *http.Request) answer {
	e.t.Helper()
	response, err := e.client.Do(request)
	require.NoError(e.t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(e.t, err)
	return answer{response.StatusCode, response.Proto, response.Header.Get("Location"), string(body)}
}

func (e *edge) get(path string) answer {
	e.t.Helper()
	return e.do(e.request(http.MethodGet, path, nil))
}

// eventually waits until a path is answered with a status.
func (e *edge) eventually(path string, status int) {
	e.t.Helper()
	require.Eventually(e.t, func() bool {
		response, err := e.client.Do(e.request(http.MethodGet, path, nil))
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == status
	}, waitFor, tick, "%s: %d", path, status)
}

const noLimits = `"timeout": "0s", "idleTimeout": "0s"`

func TestRequestsFollowTheRoutes(t *testing.T) {
	e := newEdge(t, func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"host": r.Host, "uri": r.RequestURI, "for": r.Header["X-Forwarded-For"]})
	}, noLimits)

	request := e.request(http.MethodGet, "/v1//models?a=b", nil)
	request.Header.Set("X-Forwarded-For", "10.1.1.1")
	got := e.do(request)
	require.Equal(t, http.StatusOK, got.status)
	require.JSONEq(t, `{"host": "demo-pool.example.com", "uri": "/v1/models?a=b", "for": ["10.1.1.1, 127.0.0.1"]}`, got.body)

	require.Equal(t, http.StatusOK, e.get("/ready").status)
	require.Equal(t, http.StatusInternalServerError, e.get("/v0/./management/config.yaml").status)
	require.Equal(t, http.StatusInternalServerError, e.get("/v0/%6Danagement").status)
	got = e.get("/v0%2Fmanagement")
	require.Equal(t, http.StatusTemporaryRedirect, got.status)
	require.Equal(t, "/v0/management", got.location)
	require.Equal(t, "/v0/management", e.get("/v1/..%5Cv0/management").location)
	got = e.get("/old")
	require.Equal(t, http.StatusFound, got.status)
	require.Equal(t, "http://demo-pool.example.com/new", got.location)

	request = e.request(http.MethodGet, "/", nil)
	request.Header.Set("X_Key", "value")
	require.Equal(t, http.StatusBadRequest, e.do(request).status)
	request = e.request(http.MethodGet, "/", nil)
	request.Host = "other.example.com"
	require.Equal(t, http.StatusNotFound, e.do(request).status)
}

func TestAnswersAreStreamed(t *testing.T) {
	received := make(chan struct{})
	e := newEdge(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "data: first\n\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-received:
			_, _ = io.WriteString(w, "data: last\n\n")
		case <-time.After(waitFor):
		}
	}, noLimits)
	response, err := e.client.Do(e.request(http.MethodGet, "/v1/events", nil))
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewReader(response.Body)
	first, err := lines.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "data: first\n", first)
	close(received)
	rest, err := io.ReadAll(lines)
	require.NoError(t, err)
	require.Equal(t, "\ndata: last\n\n", string(rest))
}

func TestLargeBodiesPassBothWays(t *testing.T) {
	e := newEdge(t, func(w http.ResponseWriter, r *http.Request) {
		// The answer begins before the request has ended.
		_ = http.NewResponseController(w).EnableFullDuplex()
		_, _ = io.Copy(w, r.Body)
	}, noLimits)
	sent := bytes.Repeat([]byte("0123456789abcdef"), 20<<20/16)
	got := e.do(e.request(http.MethodPost, "/v1/files", bytes.NewReader(sent)))
	// A comparison that fails would print both.
	require.True(t, bytes.Equal(sent, []byte(got.body)), "%d bytes came back", len(got.body))
}

func TestConnectionsAreUpgraded(t *testing.T) {
	e := newEdge(t, func(w http.ResponseWriter, _ *http.Request) {
		connection, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = connection.Close() }()
		_, _ = io.WriteString(connection, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		line, _ := buffered.ReadString('\n')
		_, _ = io.WriteString(connection, strings.ToUpper(line))
	}, `"timeout": "0s", "idleTimeout": "60s"`)
	connection, err := net.Dial("tcp", strings.TrimPrefix(e.url, "http://"))
	require.NoError(t, err)
	defer func() { _ = connection.Close() }()
	request := e.request(http.MethodGet, "/v1/ws", nil)
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", "websocket")
	require.NoError(t, request.Write(connection))
	reader := bufio.NewReader(connection)
	response, err := http.ReadResponse(reader, request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusSwitchingProtocols, response.StatusCode)
	_, err = io.WriteString(connection, "echo\n")
	require.NoError(t, err)
	line, err := reader.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ECHO\n", line)
}

func TestLimitsOfTheRouteHold(t *testing.T) {
	silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for name, action := range map[string]string{
		"request": `"timeout": "0.05s", "idleTimeout": "0s"`,
		"idle":    `"timeout": "0s", "idleTimeout": "0.05s"`,
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, http.StatusGatewayTimeout, newEdge(t, silent, action).get("/").status)
		})
	}
}

func TestAStreamThatMovesIsNotIdle(t *testing.T) {
	const idle = time.Second
	e := newEdge(t, func(w http.ResponseWriter, _ *http.Request) {
		steps := time.NewTicker(idle / 20)
		defer steps.Stop()
		for start := time.Now(); time.Since(start) < 2*idle; <-steps.C {
			_, _ = io.WriteString(w, ".")
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = io.WriteString(w, "end")
	}, `"timeout": "0s", "idleTimeout": "1s"`)
	require.Regexp(t, `\.\.end$`, e.get("/").body)
}

func TestLimitsThatNobodySet(t *testing.T) {
	route := parse(t, &routev3.RouteAction{}, `{"cluster": "pool"}`)
	require.Equal(t, limits{request: 15 * time.Second, idle: 5 * time.Minute}, limitsOf(route, nil))
}

func TestChangesOfTheConfigurationAreFollowed(t *testing.T) {
	e := newEdge(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }, noLimits)
	require.Equal(t, http.StatusTeapot, e.get("/").status)
	port, err := strconv.Atoi(e.url[strings.LastIndexByte(e.url, ':')+1:])
	require.NoError(t, err)
	full := poolWith(t, port, "127.0.0.1:1", noLimits)

	// Nobody listens on port 1.
	e.send(full)
	e.eventually("/", http.StatusServiceUnavailable)

	withoutRoutes := resources{listenerType: full[listenerType], routeType: {
		parse(t, &routev3.RouteConfiguration{}, `{"name": "front/edge/http"}`)}}
	e.send(withoutRoutes)
	e.eventually("/", http.StatusNotFound)

	// What cannot be followed is refused, and what was in force stays.
	strange := resources{listenerType: full[listenerType], routeType: {parse(t, &routev3.RouteConfiguration{},
		`{"name": "front/edge/http", "virtualHosts": [{"name": "x", "domains": ["*"], "routes": [
			{"match": {"safeRegex": {"regex": ".*"}}, "directResponse": {"status": 200}}]}]}`)}}
	e.send(strange)
	require.Eventually(t, func() bool { return len(e.noted(&e.refused)) > 0 }, waitFor, tick)
	require.Contains(t, e.noted(&e.refused)[0], "paths are matched by")
	require.Equal(t, http.StatusNotFound, e.get("/").status)

	e.send(resources{})
	require.Eventually(t, func() bool {
		response, err := e.client.Do(e.request(http.MethodGet, "/", nil))
		if err == nil {
			_ = response.Body.Close()
		}
		return err != nil
	}, waitFor, tick, "the listener is closed")
}

func TestTheLastConfigurationOutlivesTheController(t *testing.T) {
	e := newEdge(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }, noLimits)
	e.server.Stop()
	require.Equal(t, http.StatusTeapot, e.get("/").status)
	port, err := strconv.Atoi(e.url[strings.LastIndexByte(e.url, ':')+1:])
	require.NoError(t, err)
	changed := poolWith(t, port, "127.0.0.1:1", noLimits)
	delete(changed, clusterType)
	delete(changed, endpointType)
	e.send(changed)
	e.start()
	e.eventually("/", http.StatusServiceUnavailable)
}

func TestATokenTakesThePlaceOfACertificate(t *testing.T) {
	c := newController(t, tls.NoClientCert)
	folder := t.TempDir()
	authority, err := os.ReadFile(filepath.Join(c.folder, "ca.crt"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "ca.crt"), authority, 0o600))
	token := filepath.Join(folder, "sa-token")
	require.NoError(t, os.WriteFile(token, []byte("secret\n"), 0o600))
	c.proxy(options{certificates: folder, token: token})
	require.Eventually(t, func() bool { return len(c.noted(&c.tokens)) > 0 }, waitFor, tick)
	require.Equal(t, "Bearer secret", c.noted(&c.tokens)[0])
}

func TestListenersServeTheirCertificates(t *testing.T) {
	folder := t.TempDir()
	writeCertificate(t, folder, poolHost)
	pem := func(name string) []byte {
		content, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		return content
	}
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("X-Forwarded-Proto"))
	}))
	t.Cleanup(backend.Close)
	port := process.FreePort(t)
	all := poolWith(t, port, backend.Listener.Addr().String(), noLimits)
	all[listenerType] = []types.Resource{parse(t, &listenerv3.Listener{}, listenerJSON(port, `, "transportSocket": {"typedConfig": {
		"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
		"commonTlsContext": {"tlsCertificateSdsSecretConfigs": [{"name": "front/certificate", "sdsConfig": {"ads": {}}}]}}}`))}
	all[secretType] = []types.Resource{secret("front/certificate", pem("tls.crt"), pem("tls.key"))}

	e := &edge{controller: newController(t, tls.RequireAndVerifyClientCert), url: "https://127.0.0.1:" + strconv.Itoa(port)}
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(pem("ca.crt")))
	e.client = &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: poolHost, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
	}}
	t.Cleanup(e.client.CloseIdleConnections)
	e.send(all)
	e.proxy(options{})
	e.eventually("/", http.StatusOK)
	got := e.get("/")
	require.Equal(t, "https", got.body)
	require.Equal(t, "HTTP/2.0", got.protocol)
}

func secret(name string, certificate, key []byte) types.Resource {
	inline := func(content []byte) *corev3.DataSource {
		return &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: content}}
	}
	return &tlsv3.Secret{Name: name, Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
		CertificateChain: inline(certificate), PrivateKey: inline(key),
	}}}
}
