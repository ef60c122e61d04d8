package main

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func try(t *testing.T, args ...string) []result {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, runTry(t.Context(), args, &out))
	var results []result
	for decoder := json.NewDecoder(&out); decoder.More(); {
		var r result
		require.NoError(t, decoder.Decode(&r))
		results = append(results, r)
	}
	return results
}

// closedAddress is one on which nobody listens.
func closedAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	return listener.Addr().String()
}

func TestTellsWhatIsReachedFromWhatIsNot(t *testing.T) {
	server := httptest.NewServer(newProvider(slog.New(slog.DiscardHandler)))
	defer server.Close()
	open, closed := server.Listener.Addr().String(), closedAddress(t)
	results := try(t, "tcp="+open, "tcp="+closed)
	assert.Equal(t, result{"tcp=" + open, 1, 1, "connected"}, results[0])
	assert.Zero(t, results[1].Reached)
	assert.Contains(t, results[1].Detail, "refused")
	assert.Greater(t, try(t, "-for=200ms", "tcp="+open)[0].Reached, 1)
}

// A proxy like Mihomo refuses a request with 502, and a tunnel by closing it.
func TestTellsARefusalByTheProxy(t *testing.T) {
	for allowed, want := range map[bool]int{true: 1, false: 0} {
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodConnect:
				client, _, err := http.NewResponseController(w).Hijack()
				if !assert.NoError(t, err) {
					return
				}
				_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
				if allowed {
					_, _ = io.WriteString(client, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
				}
				_ = client.Close()
			case !allowed:
				w.WriteHeader(http.StatusBadGateway)
			}
		}))
		for _, r := range try(t, "-proxy="+proxy.Listener.Addr().String(), "get=10.0.0.1:80", "connect=10.0.0.1:443") {
			assert.Equal(t, want, r.Reached, "%s: %s", r.Target, r.Detail)
		}
		proxy.Close()
	}
}

func TestUnusableTargetsAreRefused(t *testing.T) {
	for _, target := range []string{"10.0.0.1:80", "tcp=10.0.0.1", "icmp=10.0.0.1:1", "get=10.0.0.1:80"} {
		require.ErrorContains(t, runTry(t.Context(), []string{target}, io.Discard), target)
	}
	require.ErrorContains(t, run(t.Context(), nil), "usage")
	require.ErrorContains(t, run(t.Context(), []string{"sing"}), "usage")
}

func TestTheProviderCountsAndStreams(t *testing.T) {
	var log bytes.Buffer
	server := httptest.NewServer(newProvider(slog.New(slog.NewJSONHandler(&log, nil))))
	defer server.Close()
	ask := func(body string) string {
		response, err := http.Post(server.URL+"/chat/completions", "application/json", strings.NewReader(body))
		require.NoError(t, err)
		defer func() { _ = response.Body.Close() }()
		content, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return string(content)
	}
	assert.Contains(t, ask(`{"messages":[{"content":"abc"}]}`), `"prompt_tokens":3`)
	assert.Contains(t, log.String(), `"method":"POST"`)
	streamed := ask(`{"stream":true,"events":3,"pause_ms":1}`)
	assert.Equal(t, 4, strings.Count(streamed, "data: "))
	assert.True(t, strings.HasSuffix(streamed, "data: [DONE]\n\n"))
}
