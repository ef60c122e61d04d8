package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// insecure trusts the certificates of test servers.
func insecure() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }

func TestDirect(t *testing.T) {
	plain, overTLS := startOrigin(t)
	proxy, log := startProxy(t, "rules: ['MATCH,DIRECT']", "")
	for _, address := range []string{plain, overTLS} {
		status, body := get(t, proxy, address)
		assert.Equal(t, http.StatusOK, status)
		assert.Equal(t, "hello GET ", body)
	}
	assert.Contains(t, log.String(), "msg=access source=127.0.0.1:")
	assert.Contains(t, log.String(), "method=GET host="+hostOf(t, plain)+" rule=MATCH decision=DIRECT")
	assert.Contains(t, log.String(), "method=CONNECT host="+hostOf(t, overTLS)+" rule=MATCH decision=DIRECT")
}

func hostOf(t *testing.T, address string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	require.NoError(t, err)
	return parsed.Host
}

func TestReject(t *testing.T) {
	plain, overTLS := startOrigin(t)
	proxy, log := startProxy(t, `rules: ["GEOIP,LAN,REJECT,no-resolve", "MATCH,DIRECT"]`, "")
	status, body := get(t, proxy, plain)
	assert.Equal(t, http.StatusBadGateway, status, body)
	status, _ = get(t, proxy, overTLS)
	assert.Zero(t, status, "a refused tunnel is closed")
	assert.Contains(t, log.String(), "method=GET host="+hostOf(t, plain)+" rule=GEOIP,LAN decision=REJECT")
	assert.Contains(t, log.String(), "method=CONNECT host="+hostOf(t, overTLS)+" rule=GEOIP,LAN decision=REJECT")
}

func TestNamesOfTheInsideAreRejected(t *testing.T) {
	proxy, log := startProxy(t, `rules: ["IP-CIDR,10.0.0.0/8,REJECT", "MATCH,DIRECT"]`, "")
	status, _ := get(t, proxy, "http://inside.example/")
	assert.Equal(t, http.StatusBadGateway, status)
	assert.Contains(t, log.String(), "host=inside.example:80 rule=IP-CIDR,10.0.0.0/8 decision=REJECT")
}

func TestConnectIsAnsweredBeforeTheDial(t *testing.T) {
	proxy, _ := startProxy(t, "rules: ['MATCH,REJECT']", "")
	conn, err := net.Dial("tcp", proxy.Host)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = fmt.Fprintf(conn, "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n")
	require.NoError(t, err)
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, &http.Request{Method: http.MethodConnect})
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	assert.Equal(t, http.StatusOK, response.StatusCode)
	_, err = reader.ReadByte()
	assert.ErrorIs(t, err, io.EOF)
}

func TestPlainRequestToTheProxyPort(t *testing.T) {
	proxy, _ := startProxy(t, "rules: ['MATCH,DIRECT']", "")
	response, err := http.Get(proxy.String())
	require.NoError(t, err)
	_ = response.Body.Close()
	assert.Equal(t, http.StatusBadRequest, response.StatusCode)
}

func TestAuthentication(t *testing.T) {
	plain, _ := startOrigin(t)
	proxy, log := startProxy(t, "rules: ['MATCH,DIRECT']", "", "other:secret", "subrelay:password")
	for user, want := range map[*url.Userinfo]int{
		nil:                                      http.StatusProxyAuthRequired,
		url.UserPassword("subrelay", "wrong"):    http.StatusForbidden,
		url.UserPassword("nobody", "password"):   http.StatusForbidden,
		url.UserPassword("subrelay", "password"): http.StatusOK,
	} {
		withUser := *proxy
		withUser.User = user
		status, body := get(t, &withUser, plain)
		assert.Equal(t, want, status, user)
		if status == http.StatusOK {
			assert.Equal(t, "hello GET ", body, "the credentials stay at the proxy")
		}
	}
	assert.NotContains(t, log.String(), "password")
}

func TestUnreachableTarget(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	proxy, log := startProxy(t, "rules: ['MATCH,DIRECT']", "")
	status, _ := get(t, proxy, "http://"+closed.Addr().String())
	assert.Equal(t, http.StatusBadGateway, status)
	assert.Contains(t, log.String(), "decision=DIRECT error=")
}
