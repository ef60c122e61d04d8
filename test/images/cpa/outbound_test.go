package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/example-org/subrelay-operator/test/images/internal/process"
)

// startProvider is an upstream with an OpenAI-compatible API. It counts calls.
func startProvider(t *testing.T, handler http.HandlerFunc) (baseURL string, calls *atomic.Int32) {
	t.Helper()
	calls = &atomic.Int32{}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		handler(w, r)
	}))
	t.Cleanup(web.Close)
	return web.URL + "/v1", calls
}

func answerChat(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Model string `json:"model"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.Header.Get("Authorization") != "Bearer provider-key" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	_, _ = fmt.Fprintf(w, `{"model":%q,"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}`, body.Model)
}

// startProxy is a forward proxy for plain HTTP that answers by itself and
// counts the requests.
func startProxy(t *testing.T, handler http.HandlerFunc) (address string, calls *atomic.Int32) {
	t.Helper()
	calls = &atomic.Int32{}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !r.URL.IsAbs() {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		calls.Add(1)
		handler(w, r)
	}))
	t.Cleanup(web.Close)
	return web.URL, calls
}

func withProvider(baseURL, proxyURL string) []string {
	return []string{"proxy-url: ''", fmt.Sprintf(`proxy-url: '%s'
openai-compatibility:
  - name: upstream
    base-url: %s
    api-key-entries:
      - api-key: provider-key
    models:
      - name: upstream-model
        alias: model`, proxyURL, baseURL)}
}

func chat(t *testing.T, base string) answer {
	t.Helper()
	return call(t, "POST", base+"/v1/chat/completions", `{"model":"model"}`, withClientKey()...)
}

const unresolvable = "http://provider.example.invalid/v1"

func TestChatGoesThroughTheProxy(t *testing.T) {
	proxy, calls := startProxy(t, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "provider.example.invalid", r.URL.Host)
		answerChat(w, r)
	})
	s, base := startDefault(t, withProvider(unresolvable, proxy)...)

	got := chat(t, base)
	assert.Equal(t, http.StatusOK, got.status)
	assert.Contains(t, got.body, `"model":"upstream-model"`)
	assert.EqualValues(t, 1, calls.Load())

	events := s.usage.pop(10, time.Hour)
	require.Len(t, events, 1)
	assert.Equal(t, usageTokens{Input: 3, Output: 4, Total: 7}, events[0].Tokens)
	assert.Equal(t, "upstream", events[0].Provider)
	assert.Equal(t, "model", events[0].Alias)
	assert.False(t, events[0].Failed)

	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	call(t, "GET", base+"/v1/models", "", withClientKey()...).decode(t, &list)
	require.Len(t, list.Data, 1)
	assert.Equal(t, "model", list.Data[0].ID)
}

func TestEmptyProxyURLMeansTheEnvironment(t *testing.T) {
	proxy, calls := startProxy(t, answerChat)
	t.Setenv("HTTP_PROXY", proxy)
	_, base := startDefault(t, withProvider(unresolvable, "")...)
	assert.Equal(t, http.StatusOK, chat(t, base).status)
	assert.EqualValues(t, 1, calls.Load())
}

func TestMalformedProxyURLFailsOpen(t *testing.T) {
	for _, proxyURL := range []string{"127.0.0.1:7890", "gopher://127.0.0.1:7890", "direct"} {
		provider, calls := startProvider(t, answerChat)
		_, base := startDefault(t, withProvider(provider, proxyURL)...)
		assert.Equal(t, http.StatusOK, chat(t, base).status, proxyURL)
		assert.EqualValues(t, 1, calls.Load(), proxyURL)
	}
}

func TestUnreachableProxyIsAnError(t *testing.T) {
	provider, calls := startProvider(t, answerChat)
	nobody := fmt.Sprintf("http://127.0.0.1:%d", process.FreePort(t))
	s, base := startDefault(t, withProvider(provider, nobody)...)
	assert.Equal(t, http.StatusInternalServerError, chat(t, base).status)
	assert.Zero(t, calls.Load(), "nothing goes out directly")
	events := s.usage.pop(10, time.Hour)
	require.Len(t, events, 1)
	assert.True(t, events[0].Failed)
}

func TestProviderErrorComesBack(t *testing.T) {
	provider, _ := startProvider(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTooManyRequests)
	})
	s, base := startDefault(t, withProvider(provider, "direct")...)
	assert.Equal(t, http.StatusTooManyRequests, chat(t, base).status)
	assert.True(t, s.usage.pop(1, time.Hour)[0].Failed)
}

func TestUnknownModelIsRefused(t *testing.T) {
	_, base := startDefault(t)
	got := chat(t, base)
	assert.Equal(t, http.StatusBadRequest, got.status)
	assert.Contains(t, got.body, "unknown provider for model")
	got = call(t, "POST", base+"/v1/chat/completions", "no JSON", withClientKey()...)
	assert.Equal(t, http.StatusBadRequest, got.status)
}

func TestStreamArrivesChunkByChunk(t *testing.T) {
	firstRead := make(chan struct{})
	provider, _ := startProvider(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: 1\n\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-firstRead:
			_, _ = io.WriteString(w, "data: 2\n\n")
		case <-r.Context().Done():
		}
	})
	_, base := startDefault(t, withProvider(provider, "direct")...)
	body := `{"model":"model","stream":true}`
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		base+"/v1/chat/completions?key="+clientKey, strings.NewReader(body))
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()

	first := make([]byte, len("data: 1\n\n"))
	_, err = io.ReadFull(response.Body, first)
	require.NoError(t, err)
	assert.Equal(t, "data: 1\n\n", string(first))
	close(firstRead)
	rest, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.Equal(t, "data: 2\n\n", string(rest))
}

func TestAPICallGoesThroughTheProxy(t *testing.T) {
	proxy, calls := startProxy(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		_, _ = fmt.Fprintf(w, "%s %s %s", r.Method, r.URL, r.Header.Get("X-Test"))
	})
	_, base := startDefault(t, withProvider(unresolvable, proxy)...)
	base += "/v0/management/api-call"
	got := call(t, "POST", base, `{"method":"put","url":"http://a.example.invalid/b","header":{"X-Test":"yes"}}`, withManagementKey()...)
	require.Equal(t, http.StatusOK, got.status)
	var result struct {
		Status int    `json:"status_code"`
		Body   string `json:"body"`
	}
	got.decode(t, &result)
	assert.Equal(t, http.StatusTeapot, result.Status)
	assert.Equal(t, "PUT http://a.example.invalid/b yes", result.Body)
	assert.EqualValues(t, 1, calls.Load())

	for _, body := range []string{"", `{"url":"http://a"}`, `{"method":"GET","url":"no-scheme"}`, `{"method":"G ET","url":"http://a"}`} {
		assert.Equal(t, http.StatusBadRequest, call(t, "POST", base, body, withManagementKey()...).status, body)
	}
}

func TestAPICallReportsAnUnreachableProxy(t *testing.T) {
	nobody := fmt.Sprintf("http://127.0.0.1:%d", process.FreePort(t))
	_, base := startDefault(t, withProvider(unresolvable, nobody)...)
	got := call(t, "POST", base+"/v0/management/api-call", `{"method":"GET","url":"http://a.example.invalid"}`, withManagementKey()...)
	assert.Equal(t, http.StatusBadGateway, got.status)
}

func TestProxySettings(t *testing.T) {
	request := &http.Request{URL: &url.URL{Scheme: "https", Host: "a.example"}}
	for _, setting := range []string{"http://p:1", "https://p:1", "socks5://u:x@p:1", "socks5h://p:1"} {
		choose := proxyFor(setting)
		require.NotNil(t, choose, setting)
		chosen, err := choose(request)
		require.NoError(t, err)
		assert.Equal(t, setting, chosen.String())
	}
	_, err := parseProxyURL("http://user:secret@p:1\x7f")
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "secret")
}
