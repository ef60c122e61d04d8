package main

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHealthKnowsGetOnly(t *testing.T) {
	_, url := startServer(t, testConfig(t, ""))
	got := call(t, "GET", url+"/health")
	assert.Equal(t, http.StatusOK, got.status)
	assert.JSONEq(t, `{"ok":true,"service":"cpa-manager-plus"}`, got.body)
	assert.Equal(t, http.StatusMethodNotAllowed, call(t, "HEAD", url+"/health").status)
	assert.Equal(t, http.StatusMethodNotAllowed, call(t, "POST", url+"/health").status)
}

func TestInfo(t *testing.T) {
	for upstream, configured := range map[string]bool{"": false, "http://127.0.0.1:8317": true} {
		_, url := startServer(t, testConfig(t, upstream))
		var info struct {
			Configured    bool `json:"configured"`
			AdminReady    bool `json:"adminReady"`
			SetupRequired bool `json:"setupRequired"`
		}
		got := call(t, "GET", url+"/usage-service/info")
		require.Equal(t, http.StatusOK, got.status)
		got.decode(t, &info)
		assert.Equal(t, configured, info.Configured)
		assert.Equal(t, !configured, info.SetupRequired)
		assert.True(t, info.AdminReady)
	}
}

func TestStatusNeedsTheAdminKey(t *testing.T) {
	cfg := testConfig(t, "http://127.0.0.1:8317")
	s, url := startServer(t, cfg)
	for _, headers := range [][]string{{}, bearer("wrong"), bearer(managementKey), {"Authorization", adminKey}} {
		assert.Equal(t, http.StatusUnauthorized, call(t, "GET", url+"/status", headers...).status, headers)
	}
	_, err := s.db.addEvents(t.Context(), []json.RawMessage{[]byte(`{"n":1}`)})
	require.NoError(t, err)
	s.collect.failed(assert.AnError)

	var status struct {
		Events    int64           `json:"events"`
		DBPath    string          `json:"dbPath"`
		Collector collectorStatus `json:"collector"`
	}
	got := call(t, "GET", url+"/status", bearer(adminKey)...)
	require.Equal(t, http.StatusOK, got.status)
	got.decode(t, &status)
	assert.EqualValues(t, 1, status.Events)
	assert.Equal(t, cfg.dbPath, status.DBPath)
	assert.Equal(t, stateError, status.Collector.Collector)
	assert.Contains(t, status.Collector.LastError, assert.AnError.Error())
	assert.Equal(t, http.StatusOK, call(t, "GET", url+"/health").status, "health does not depend on the collector")
}

func TestManagementIsPassedOnWithTheManagementKey(t *testing.T) {
	fake := startFakeCPA(t)
	_, url := startServer(t, testConfig(t, fake.URL))
	url += "/v0/management/config.yaml?a=b"
	assert.Equal(t, http.StatusUnauthorized, call(t, "GET", url).status)
	assert.Equal(t, http.StatusUnauthorized, call(t, "GET", url, bearer(managementKey)...).status)
	require.Nil(t, fake.lastRequest(), "cpa sees no wrong key")

	headers := append(bearer(adminKey), "X-Forwarded-For", "203.0.113.9")
	assert.Equal(t, http.StatusTeapot, call(t, "PUT", url, headers...).status)
	last := fake.lastRequest()
	assert.Equal(t, "PUT", last.Method)
	assert.Equal(t, "/v0/management/config.yaml?a=b", last.RequestURI)
	assert.Equal(t, "Bearer "+managementKey, last.Header.Get("Authorization"))
	assert.Equal(t, "203.0.113.9, 127.0.0.1", last.Header.Get("X-Forwarded-For"))
}

func TestModelsArePassedOnWithTheCallersKey(t *testing.T) {
	fake := startFakeCPA(t)
	_, url := startServer(t, testConfig(t, fake.URL))
	assert.Equal(t, http.StatusTeapot, call(t, "GET", url+"/v1/models", bearer("the caller's")...).status)
	assert.Equal(t, "Bearer the caller's", fake.lastRequest().Header.Get("Authorization"))
}

func TestProxyWithoutCPA(t *testing.T) {
	_, url := startServer(t, testConfig(t, ""))
	assert.Equal(t, http.StatusPreconditionRequired, call(t, "GET", url+"/v1/models").status)

	fake := startFakeCPA(t)
	fake.Close()
	_, url = startServer(t, testConfig(t, fake.URL))
	assert.Equal(t, http.StatusBadGateway, call(t, "GET", url+"/v0/management/debug", bearer(adminKey)...).status)
}

func TestPanel(t *testing.T) {
	_, url := startServer(t, testConfig(t, ""))
	got := call(t, "GET", url+"/")
	assert.Equal(t, http.StatusTemporaryRedirect, got.status)
	assert.Equal(t, "/management.html", got.header.Get("Location"))
	got = call(t, "GET", url+"/management.html")
	assert.Equal(t, http.StatusOK, got.status)
	assert.Contains(t, got.header.Get("Content-Type"), "text/html")
	assert.Equal(t, http.StatusNotFound, call(t, "GET", url+"/elsewhere").status)
}
