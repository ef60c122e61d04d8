package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestChangedFileIsReadAgain(t *testing.T) {
	s, url := startDefault(t)
	accepted := func(key string) bool {
		return call(t, "GET", url+"/v1/models", "", "X-Api-Key", key).status == http.StatusOK
	}
	require.True(t, accepted(clientKey))

	hashed := readFile(t, s.live.path)
	writeFile(t, s.live.path, strings.Replace(hashed, clientKey, "second-key", 1))
	require.Eventually(t, func() bool { return accepted("second-key") }, waitFor, tick)
	assert.False(t, accepted(clientKey))

	writeFile(t, s.live.path, strings.Replace(fullConfig(8317, t.TempDir()), clientKey, "third-key", 1))
	require.Eventually(t, func() bool { return accepted("third-key") }, waitFor, tick)
	require.Eventually(t, func() bool { return !strings.Contains(readFile(t, s.live.path), managementKey) }, waitFor, tick,
		"a plain management key is hashed on reload too")
}

func TestUnusableContentKeepsTheOldConfiguration(t *testing.T) {
	s, url := startDefault(t)
	old := s.live.get()
	for _, content := range []string{"", "port: ["} {
		writeFile(t, s.live.path, content)
		s.live.fileWritten()
		assert.Same(t, old, s.live.get(), "%q", content)
	}
	assert.Equal(t, http.StatusOK, call(t, "GET", url+"/v1/models", "", withClientKey()...).status)
}
