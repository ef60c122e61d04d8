package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/example-org/subrelay-operator/test/images/internal/process"
)

func launch(t *testing.T, p paths, arguments ...string) *process.Process {
	t.Helper()
	return process.StartSelf(t, p.home, nil, append([]string{"-d", p.home, "-f", p.file}, arguments...)...)
}

func awaitListening(t *testing.T, running *process.Process, port int) {
	t.Helper()
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return false
		}
		return conn.Close() == nil
	}, waitFor, tick, "%s", running.Output())
}

func TestProcess(t *testing.T) {
	plain, _ := startOrigin(t)
	port, controllerPort := process.FreePort(t), process.FreePort(t)
	config := fmt.Sprintf(fullConfig, port, controllerPort)
	config = strings.Replace(config, "GEOIP,LAN", "IP-CIDR,10.0.0.0/8", 1) // the origin is on loopback
	p := home(t, config, liveNode)
	running := launch(t, p)
	awaitListening(t, running, port)
	proxy := &url.URL{
		Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", port), User: url.UserPassword("subrelay", "password"),
	}
	status, _ := get(t, proxy, plain)
	assert.Equal(t, http.StatusOK, status)
	status, _ = get(t, proxy, "http://kubernetes.default.svc.cluster.local/")
	assert.Equal(t, http.StatusBadGateway, status)
	assert.Contains(t, running.Output(), "decision=GW[a]")

	writeNodes(t, p, noProxies)
	status, _ = get(t, proxy, plain)
	assert.Equal(t, http.StatusOK, status, "a changed provider file is not noticed")
	running.Signal(syscall.SIGHUP)
	require.Eventually(t, func() bool {
		status, _ := get(t, proxy, plain)
		return status == http.StatusBadGateway
	}, waitFor, tick, "SIGHUP reads it again")

	running.Signal(syscall.SIGTERM)
	assert.Zero(t, running.Wait())
}

func TestSIGTERMCutsOpenTunnels(t *testing.T) {
	plain, _ := startOrigin(t)
	port := process.FreePort(t)
	running := launch(t, home(t, fmt.Sprintf("port: %d\nrules: ['MATCH,DIRECT']", port), ""))
	awaitListening(t, running, port)
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\n\r\n", hostOf(t, plain))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return strings.Contains(running.Output(), "method=CONNECT") }, waitFor, tick)

	running.Signal(syscall.SIGTERM)
	assert.Zero(t, running.Wait())
	answer, _ := io.ReadAll(conn) // the end may come as a reset
	assert.Equal(t, "HTTP/1.1 200 Connection established\r\n\r\n", string(answer))
}

func TestUnusableReloadKeepsTheOldRules(t *testing.T) {
	port := process.FreePort(t)
	p := home(t, fmt.Sprintf("port: %d\nrules: ['MATCH,REJECT']", port), "")
	running := launch(t, p)
	awaitListening(t, running, port)
	writeConfigFile(t, p, "port: [")
	running.Signal(syscall.SIGHUP)
	require.Eventually(t, func() bool { return strings.Contains(running.Output(), "is not used") }, waitFor, tick)
	status, _ := get(t, &url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", port)}, "http://a.example/")
	assert.Equal(t, http.StatusBadGateway, status)
}

func TestController(t *testing.T) {
	port, controllerPort := process.FreePort(t), process.FreePort(t)
	running := launch(t, home(t, fmt.Sprintf(fullConfig, port, controllerPort), ""))
	awaitListening(t, running, controllerPort)
	version := func(authorization string) int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			fmt.Sprintf("http://127.0.0.1:%d/version", controllerPort), nil)
		require.NoError(t, err)
		request.Header.Set("Authorization", authorization)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		_ = response.Body.Close()
		return response.StatusCode
	}
	assert.Equal(t, http.StatusOK, version("Bearer controller-secret"))
	assert.Equal(t, http.StatusUnauthorized, version("Bearer wrong"))
	assert.Equal(t, http.StatusUnauthorized, version(""))
}

func TestAllowedAddresses(t *testing.T) {
	port := process.FreePort(t)
	running := launch(t, home(t, fmt.Sprintf("port: %d\nlan-allowed-ips: [10.0.0.0/8]", port), ""))
	awaitListening(t, running, port)
	status, _ := get(t, nil, fmt.Sprintf("http://127.0.0.1:%d/", port))
	assert.Zero(t, status, "the connection is closed without an answer")
}

func TestTakenPortDoesNotEndTheProcess(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	controllerPort := process.FreePort(t)
	config := fmt.Sprintf("port: %d\nexternal-controller: 127.0.0.1:%d", taken.Addr().(*net.TCPAddr).Port, controllerPort)
	running := launch(t, home(t, config, ""))
	awaitListening(t, running, controllerPort)
	assert.Contains(t, running.Output(), "cannot listen")
}

func TestExitCodes(t *testing.T) {
	good, bad := home(t, full(t), ""), home(t, "port: [", "")
	missing := paths{home: t.TempDir(), file: "/does/not/exist"}
	assert.Zero(t, launch(t, good, "-t").Wait(), "-t does not look into provider files")
	assert.Equal(t, 1, launch(t, bad, "-t").Wait())
	assert.Equal(t, 1, launch(t, bad).Wait())
	assert.Equal(t, 1, launch(t, missing).Wait())
	shown := launch(t, good, "-v")
	assert.Zero(t, shown.Wait())
	assert.Contains(t, shown.Output(), "Mihomo Meta")
	fromEnvironment := process.StartSelf(t, good.home,
		[]string{"CLASH_HOME_DIR=" + good.home, "CLASH_CONFIG_FILE=" + good.file}, "-t")
	assert.Zero(t, fromEnvironment.Wait())
	withoutHome := process.StartSelf(t, good.home, []string{"HOME=/proc"}, "-f", good.file)
	assert.Equal(t, 1, withoutHome.Wait())
}
