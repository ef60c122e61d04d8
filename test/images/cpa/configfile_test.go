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
	for _, content := range []string{"", "port: [", "port: 0"} {
		got := call(t, "PUT", url+configFilePath, content, withManagementKey()...)
		assert.Equal(t, http.StatusUnprocessableEntity, got.status, "%q: %s", content, got.body)
	}
	assert.Equal(t, before, readFile(t, s.live.path))
	assertNoTrialFile(t, s)
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
