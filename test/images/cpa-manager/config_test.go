package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func load(environment map[string]string) (config, error) {
	return loadConfig(func(key string) string { return environment[key] })
}

func TestEnvironmentOfThePool(t *testing.T) {
	secrets := t.TempDir()
	for name, content := range map[string]string{"cpa_management_key": managementKey + "\n", "cpamp_admin_key": " " + adminKey} {
		require.NoError(t, os.WriteFile(filepath.Join(secrets, name), []byte(content), 0o440))
	}
	cfg, err := load(map[string]string{
		"HTTP_ADDR":                  "0.0.0.0:18317",
		"USAGE_DATA_DIR":             "/data",
		"USAGE_DB_PATH":              "/data/usage.sqlite",
		"CPA_MANAGER_DATA_KEY_PATH":  "/data/data.key",
		"CPA_UPSTREAM_URL":           "http://127.0.0.1:8317",
		"CPA_MANAGEMENT_KEY_FILE":    filepath.Join(secrets, "cpa_management_key"),
		"CPA_MANAGER_ADMIN_KEY_FILE": filepath.Join(secrets, "cpamp_admin_key"),
		"USAGE_COLLECTOR_MODE":       "http",
		"USAGE_POLL_INTERVAL_MS":     "5000",
	})
	require.NoError(t, err)
	assert.Equal(t, "0.0.0.0:18317", cfg.httpAddr)
	assert.Equal(t, "/data/usage.sqlite", cfg.dbPath)
	assert.Equal(t, "/data/data.key", cfg.dataKeyPath)
	assert.Equal(t, "http://127.0.0.1:8317", cfg.upstream.String())
	assert.Equal(t, managementKey, cfg.managementKey, "content of files is trimmed")
	assert.Equal(t, adminKey, cfg.adminKey)
	assert.Equal(t, 5*time.Second, cfg.pollInterval)
	assert.True(t, cfg.configured())
}

func TestDefaults(t *testing.T) {
	cfg, err := load(map[string]string{"USAGE_DATA_DIR": "/data", "USAGE_POLL_INTERVAL_MS": "soon", "USAGE_BATCH_SIZE": "-1"})
	require.NoError(t, err)
	assert.Equal(t, defaultHTTPAddr, cfg.httpAddr)
	assert.Equal(t, "/data/usage.sqlite", cfg.dbPath)
	assert.Equal(t, "/data/data.key", cfg.dataKeyPath)
	assert.Equal(t, 500*time.Millisecond, cfg.pollInterval)
	assert.Equal(t, 100, cfg.batchSize)
	assert.False(t, cfg.configured())

	cfg, err = load(map[string]string{"USAGE_DB_PATH": "/elsewhere/db"})
	require.NoError(t, err)
	assert.Equal(t, "/elsewhere/data.key", cfg.dataKeyPath)
}

func TestConfigIsRefused(t *testing.T) {
	for name, environment := range map[string]map[string]string{
		"no data folder":       {},
		"upstream without URL": {"USAGE_DATA_DIR": "/data", "CPA_UPSTREAM_URL": "127.0.0.1:8317"},
		"unknown mode":         {"USAGE_DATA_DIR": "/data", "USAGE_COLLECTOR_MODE": "subscribe"},
	} {
		_, err := load(environment)
		assert.Error(t, err, name)
	}
}

func TestSecrets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte("from the file\n"), 0o600))
	for name, test := range map[string]struct {
		plain, file string
		want        string
	}{
		"plain":           {plain: " plain ", want: "plain"},
		"file":            {file: file, want: "from the file"},
		"plain wins":      {plain: "plain", file: file, want: "plain"},
		"file missing":    {file: file + ".missing", want: ""},
		"file unreadable": {file: filepath.Dir(file), want: ""},
	} {
		for _, variable := range []string{"CPA_MANAGEMENT_KEY", "CPA_MANAGER_ADMIN_KEY", "CPA_MANAGER_DATA_KEY"} {
			cfg, err := load(map[string]string{"USAGE_DATA_DIR": "/data", variable: test.plain, variable + "_FILE": test.file})
			require.NoError(t, err)
			got := map[string]string{
				"CPA_MANAGEMENT_KEY":    cfg.managementKey,
				"CPA_MANAGER_ADMIN_KEY": cfg.adminKey,
				"CPA_MANAGER_DATA_KEY":  cfg.dataKey,
			}
			assert.Equal(t, test.want, got[variable], "%s: %s", variable, name)
		}
	}
}
