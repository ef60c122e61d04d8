package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/example-org/subrelay-operator/test/images/internal/httpjson"
	"github.com/example-org/subrelay-operator/test/images/internal/process"
)

const (
	adminKey      = "admin-key"
	managementKey = "management-key"

	waitFor = 30 * time.Second
	tick    = 10 * time.Millisecond
)

func TestMain(m *testing.M) { process.Main(m, main) }

// fakeCPA serves a usage queue and shows what the manager sends.
type fakeCPA struct {
	*httptest.Server

	mu      sync.Mutex
	batches [][]string // answers still to be given, JSON events
	polls   int
	last    *http.Request
}

func startFakeCPA(t *testing.T, batches ...[]string) *fakeCPA {
	t.Helper()
	fake := &fakeCPA{batches: batches}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v0/management/usage-queue", fake.usageQueue)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fake.mu.Lock()
		defer fake.mu.Unlock()
		fake.last = r.Clone(r.Context())
		w.WriteHeader(http.StatusTeapot)
	})
	fake.Server = httptest.NewServer(mux)
	t.Cleanup(fake.Close)
	return fake
}

func (f *fakeCPA) usageQueue(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.polls++
	if r.Header.Get("Authorization") != "Bearer "+managementKey {
		httpjson.Error(w, http.StatusUnauthorized, "invalid management key")
		return
	}
	events := []json.RawMessage{}
	if len(f.batches) > 0 {
		for _, event := range f.batches[0] {
			events = append(events, json.RawMessage(event))
		}
		f.batches = f.batches[1:]
	}
	httpjson.Write(w, http.StatusOK, events)
}

func (f *fakeCPA) lastRequest() *http.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

func testConfig(t *testing.T, upstream string) config {
	t.Helper()
	cfg := config{
		dbPath:        filepath.Join(t.TempDir(), "usage.sqlite"),
		managementKey: managementKey,
		batchSize:     2,
		pollInterval:  time.Millisecond,
	}
	if upstream != "" {
		parsed, err := url.Parse(upstream)
		require.NoError(t, err)
		cfg.upstream = parsed
	}
	return cfg
}

func openTestStore(t *testing.T, path string) *store {
	t.Helper()
	db, err := openStore(t.Context(), path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.close()) })
	return db
}

// startServer serves with adminKey stored.
func startServer(t *testing.T, cfg config) (*server, string) {
	t.Helper()
	db := openTestStore(t, cfg.dbPath)
	_, err := ensureAdminKey(t.Context(), db, adminKey)
	require.NoError(t, err)
	s := newServer(cfg, db, newCollector(cfg, db))
	web := httptest.NewServer(s.handler())
	t.Cleanup(web.Close)
	return s, web.URL
}

type answer struct {
	status int
	header http.Header
	body   string
}

// call sends a request without following redirects; headers are name, value ...
func call(t *testing.T, method, address string, headers ...string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return answer{status: response.StatusCode, header: response.Header, body: string(body)}
}

func (a answer) decode(t *testing.T, into any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(a.body), into))
}

func bearer(key string) []string { return []string{"Authorization", "Bearer " + key} }
