package main

import (
	"database/sql"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/example-org/subrelay-operator/test/images/internal/process"
)

// writeFile makes a file beside others in a folder and returns its path.
func writeFile(t *testing.T, folder, name, content string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// managerDatabase makes a database in which adminKey is stored.
func managerDatabase(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "usage.sqlite")
	db, err := openStore(t.Context(), path)
	require.NoError(t, err)
	_, err = ensureAdminKey(t.Context(), db, adminKey)
	require.NoError(t, err)
	require.NoError(t, db.close())
	return path
}

func requireAdminKey(t *testing.T, path, key string) {
	t.Helper()
	credential, found, err := openTestStore(t, path).adminCredential(t.Context())
	require.NoError(t, err)
	require.True(t, found)
	require.True(t, credential.matches(key))
}

func TestResetAdminKeyOfAProcess(t *testing.T) {
	folder := t.TempDir()
	running, url := start(t, folder, "CPA_MANAGER_ADMIN_KEY="+adminKey)
	awaitHealthy(t, running, url)
	reset := func() *process.Process {
		return process.StartSelf(t, folder, nil, "reset-admin-key",
			"--db-path", filepath.Join(folder, "usage.sqlite"), "--admin-key-file", writeFile(t, folder, "key", "next key\n"))
	}
	refused := reset()
	assert.Equal(t, 1, refused.Wait(), "while the manager runs")
	assert.Contains(t, refused.Output(), "another process uses")

	running.Signal(syscall.SIGTERM)
	require.Zero(t, running.Wait(), running.Output())
	done := reset()
	assert.Zero(t, done.Wait(), done.Output())
	assert.NotContains(t, done.Output(), "next key")

	running, url = start(t, folder, "CPA_MANAGER_ADMIN_KEY="+adminKey)
	awaitHealthy(t, running, url)
	assert.Equal(t, http.StatusOK, call(t, "GET", url+"/status", bearer("next key")...).status)
	assert.Equal(t, http.StatusUnauthorized, call(t, "GET", url+"/status", bearer(adminKey)...).status)
}

func TestResetAdminKeyWaysToGiveIt(t *testing.T) {
	path := managerDatabase(t)
	environment := func(name string) string { return map[string]string{"USAGE_DB_PATH": path}[name] }
	file := writeFile(t, t.TempDir(), "key", " from a file \n")
	for _, test := range []struct {
		arguments []string
		key       string // empty: generated
	}{
		{[]string{"--db-path", path, "--admin-key-file", file}, "from a file"},
		{[]string{"-admin-key=from the command line"}, "from the command line"},
		{nil, ""},
	} {
		var stdout, stderr strings.Builder
		require.NoError(t, resetAdminKey(t.Context(), environment, test.arguments, &stdout, &stderr))
		assert.Empty(t, stderr.String())
		key := test.key
		if key == "" {
			_, after, found := strings.Cut(stdout.String(), "New admin key: ")
			require.True(t, found, stdout.String())
			key = strings.TrimSpace(after)
		} else {
			assert.NotContains(t, stdout.String(), key)
		}
		requireAdminKey(t, path, key)
	}
}

func TestResetAdminKeyHelp(t *testing.T) {
	var stdout, stderr strings.Builder
	require.NoError(t, resetAdminKey(t.Context(), os.Getenv, []string{"-help"}, &stdout, &stderr))
	assert.Contains(t, stderr.String(), "admin-key-file")
}

func TestResetAdminKeyAlias(t *testing.T) {
	path := managerDatabase(t)
	done := process.StartSelf(t, t.TempDir(), nil, "reset-admin-password", "-db-path", path, "-admin-key", "other")
	assert.Zero(t, done.Wait(), done.Output())
	requireAdminKey(t, path, "other")
}

func TestResetAdminKeyRefusals(t *testing.T) {
	path, folder := managerDatabase(t), t.TempDir()
	foreign := filepath.Join(folder, "foreign.sqlite")
	db, err := sql.Open("sqlite", foreign)
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), "CREATE TABLE usage_events (id INTEGER)")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	before, err := os.ReadFile(foreign)
	require.NoError(t, err)

	for name, test := range map[string]struct {
		arguments []string
		message   string
	}{
		"unknown flag":     {[]string{"-other"}, "not defined"},
		"argument":         {[]string{"other"}, "is not a flag"},
		"two keys":         {[]string{"-admin-key", "a", "-admin-key-file", "b"}, "not both"},
		"no key file":      {[]string{"-db-path", path, "-admin-key-file", filepath.Join(folder, "missing")}, "no such file"},
		"empty key file":   {[]string{"-db-path", path, "-admin-key-file", writeFile(t, folder, "key", " \n")}, "is empty"},
		"no database":      {[]string{"-db-path", filepath.Join(folder, "missing")}, "there is no database"},
		"no data folder":   {nil, "USAGE_DATA_DIR"},
		"folder":           {[]string{"-db-path", folder}, "is a folder"},
		"empty database":   {[]string{"-db-path", writeFile(t, folder, "empty", "")}, "is empty"},
		"foreign database": {[]string{"-db-path", foreign}, "not a database of cpa-manager"},
		"text file":        {[]string{"-db-path", writeFile(t, folder, "notes", strings.Repeat("text ", 1000))}, "not a database"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			err := resetAdminKey(t.Context(), func(string) string { return "" }, test.arguments, &stdout, &stderr)
			require.ErrorContains(t, err, test.message)
			assert.Empty(t, stdout.String())
		})
	}
	after, err := os.ReadFile(foreign)
	require.NoError(t, err)
	assert.Equal(t, before, after)
	requireAdminKey(t, path, adminKey)
}
