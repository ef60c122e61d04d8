package main

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestPublicPaths(t *testing.T) {
	_, url := startDefault(t)
	got := call(t, "GET", url+"/healthz", "")
	assert.Equal(t, http.StatusOK, got.status)
	assert.JSONEq(t, `{"status":"ok"}`, got.body)
	got = call(t, "HEAD", url+"/healthz", "")
	assert.Equal(t, http.StatusOK, got.status)
	assert.Empty(t, got.body)

	var root map[string]any
	got = call(t, "GET", url+"/", "")
	assert.Equal(t, http.StatusOK, got.status)
	got.decode(t, &root)
	assert.NotEmpty(t, root["message"])
	assert.Equal(t, http.StatusNotFound, call(t, "GET", url+"/management.html", "").status)
}

func TestClientKey(t *testing.T) {
	_, url := startDefault(t)
	for _, path := range []string{"/v1/models", "/v1beta/models"} {
		for name, headers := range map[string][]string{
			"bearer":  {"Authorization", "Bearer " + clientKey},
			"api key": {"X-Api-Key", clientKey},
			"google":  {"X-Goog-Api-Key", clientKey},
			"both, one of them wrong": {
				"Authorization", "Bearer wrong", "X-Api-Key", clientKey,
			},
		} {
			assert.Equal(t, http.StatusOK, call(t, "GET", url+path, "", headers...).status, "%s %s", path, name)
		}
		assert.Equal(t, http.StatusOK, call(t, "GET", url+path+"?key="+clientKey, "").status)
		assert.Equal(t, http.StatusOK, call(t, "GET", url+path+"?auth_token="+clientKey, "").status)

		assert.Equal(t, http.StatusUnauthorized, call(t, "GET", url+path, "").status)
		assert.Equal(t, http.StatusUnauthorized, call(t, "GET", url+path, "", "X-Api-Key", "wrong").status)
		assert.Equal(t, http.StatusUnauthorized, call(t, "GET", url+path, "", "X-Api-Key", managementKey).status)
	}
	assert.JSONEq(t, `{"object":"list","data":[]}`, call(t, "GET", url+"/v1/models", "", withClientKey()...).body)
	assert.JSONEq(t, `{"models":[]}`, call(t, "GET", url+"/v1beta/models", "", withClientKey()...).body)
}

func TestWithoutClientKeysEverybodyMayCall(t *testing.T) {
	_, url := startDefault(t, clientKey, " ")
	assert.Equal(t, http.StatusOK, call(t, "GET", url+"/v1/models", "").status)
}

func TestTemplateKeySwitchesTheAPIOff(t *testing.T) {
	_, url := startDefault(t, clientKey, "your-api-key-2")
	got := call(t, "GET", url+"/v1/models", "", "X-Api-Key", "your-api-key-2")
	assert.Equal(t, http.StatusForbidden, got.status)
	assert.Contains(t, got.body, "unsafe_example_api_key")
	assert.Equal(t, http.StatusOK, call(t, "GET", url+"/healthz", "").status)
}
