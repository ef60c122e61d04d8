package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestConfigOfTheInitScriptIsAccepted(t *testing.T) {
	cfg, err := parseConfig([]byte(fullConfig(8317, "/CLIProxyAPI")))
	require.NoError(t, err)
	assert.Equal(t, 8317, cfg.Port)
	assert.Equal(t, "/CLIProxyAPI/auths", cfg.AuthDir)
	assert.Equal(t, []string{clientKey}, cfg.APIKeys)
	assert.Equal(t, managementKey, cfg.RemoteManagement.SecretKey)
	assert.True(t, cfg.LoggingToFile)
	assert.True(t, cfg.UsageStatisticsEnabled)
}

func TestUnknownKeysAreTolerated(t *testing.T) {
	_, err := parseConfig([]byte(fullConfig(8317, "/x") + "credential-concurrency:\n  limit: 3\n"))
	assert.NoError(t, err)
}

func TestConfigIsRefused(t *testing.T) {
	valid := fullConfig(8317, "/x")
	cutOff, _, _ := strings.Cut(valid, managementKey)
	cases := map[string]string{
		"cut off":             cutOff,
		"not YAML":            "port: [8317",
		"not a mapping":       "just text",
		"port is text":        strings.Replace(valid, "port: 8317", "port: 'http'", 1),
		"flag is text":        strings.Replace(valid, "allow-remote: false", "allow-remote: 'maybe'", 1),
		"number is text":      strings.Replace(valid, "logs-max-total-size-mb: 100", "logs-max-total-size-mb: many", 1),
		"keys are no list":    strings.Replace(valid, "api-keys:\n  - '"+clientKey+"'", "api-keys: {a: b}", 1),
		"management is a key": strings.Replace(valid, "plugins:\n  enabled: false", "plugins: yes please", 1),
	}
	for name, content := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := parseConfig([]byte(content))
			assert.Error(t, err)
		})
	}
}

func TestAuthDirOfTheHomeFolder(t *testing.T) {
	t.Setenv("HOME", "/home/somebody")
	for _, content := range []string{"port: 8317\nauth-dir: ~/.cli-proxy-api\n", "port: 8317\n", "", "# nothing\n"} {
		cfg, err := parseConfig([]byte(content))
		require.NoError(t, err, "%q", content)
		assert.Equal(t, "/home/somebody/.cli-proxy-api", cfg.AuthDir, "%q", content)
	}
}

func TestUsageRetention(t *testing.T) {
	for seconds, want := range map[int]time.Duration{
		0: time.Minute, -5: time.Minute, 90: 90 * time.Second, 3600: time.Hour, 7200: time.Hour,
	} {
		assert.Equal(t, want, (&config{UsageRetentionSeconds: seconds}).usageRetention(), "%d seconds", seconds)
	}
}
