package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const configFilePath = "/v0/management/config.yaml"

var tooLongSecret = "remote-management:\n  secret-key: '" + strings.Repeat("x", 73) + "'\n"

func TestConfigFileIsReadAsItIs(t *testing.T) {
	s, url := startDefault(t)
	got := call(t, "GET", url+configFilePath, "", withManagementKey()...)
	assert.Equal(t, http.StatusOK, got.status)
	assert.Equal(t, readFile(t, s.live.path), got.body)
}

func TestConfigFileIsReplaced(t *testing.T) {
	s, url := startDefault(t)
	number := inode(t, s.live.path)
	content := strings.Replace(fullConfig(8317, t.TempDir()), clientKey, "another-key", 1)
	got := call(t, "PUT", url+configFilePath, content, withManagementKey()...)
	require.Equal(t, http.StatusOK, got.status, got.body)

	assert.Equal(t, number, inode(t, s.live.path))
	assert.Equal(t, http.StatusOK, call(t, "GET", url+"/v1/models", "", "X-Api-Key", "another-key").status)
	assert.Equal(t, http.StatusOK, call(t, "GET", url+configFilePath, "", withManagementKey()...).status)
	assert.NotContains(t, readFile(t, s.live.path), managementKey, "the plain key is hashed")
	assertNoTrialFile(t, s)
}

func TestUnusableConfigFileIsRefused(t *testing.T) {
	s, url := startDefault(t)
	before := readFile(t, s.live.path)
	for content, status := range map[string]int{
		"port: [":     http.StatusBadRequest,
		"port: http":  http.StatusBadRequest,
		tooLongSecret: http.StatusUnprocessableEntity,
	} {
		got := call(t, "PUT", url+configFilePath, content, withManagementKey()...)
		assert.Equal(t, status, got.status, "%q: %s", content, got.body)
	}
	assert.Equal(t, before, readFile(t, s.live.path))
	assertNoTrialFile(t, s)
}

// The editor takes settings that the next start fails with, and an empty file, after which nobody gets in to undo it.
func TestUnstartableConfigFileIsAccepted(t *testing.T) {
	s, url := startDefault(t)
	for _, content := range []string{strings.Replace(readFile(t, s.live.path), "port: 8317", "port: 99999", 1), ""} {
		got := call(t, "PUT", url+configFilePath, content, withManagementKey()...)
		assert.Equal(t, http.StatusOK, got.status, "%q: %s", content, got.body)
		assert.Equal(t, content, readFile(t, s.live.path))
	}
	assert.Equal(t, http.StatusNotFound, call(t, "GET", url+configFilePath, "", withManagementKey()...).status)
	assert.Equal(t, http.StatusUnauthorized, call(t, "GET", url+"/v1/models", "").status, "still closed to strangers")
	assert.Equal(t, http.StatusOK, call(t, "GET", url+"/v1/models", "", withClientKey()...).status)
}

func TestConfigFileNeedsAWritableFolder(t *testing.T) {
	s, url := startDefault(t)
	content := readFile(t, s.live.path)
	s.live.path = "/proc/config.yaml" // nobody, root neither, can make files there
	got := call(t, "PUT", url+configFilePath, content, withManagementKey()...)
	assert.Equal(t, http.StatusInternalServerError, got.status)
	assert.Contains(t, got.body, "write_failed")
}

func assertNoTrialFile(t *testing.T, s *server) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(s.live.path))
	require.NoError(t, err)
	assert.Len(t, entries, 1, "only config.yaml is left")
}
