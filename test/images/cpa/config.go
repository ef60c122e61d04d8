package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Limits of the usage queue's retention, as in the real program.
const (
	defaultUsageRetentionSeconds = 60
	maxUsageRetentionSeconds     = 3600
)

// defaultAuthDir is not creatable for a user without a home.
const defaultAuthDir = "~/.cli-proxy-api"

// config is the part of config.yaml that the stand-in knows. Unknown keys are
// tolerated, as the real program tolerates them; known keys with a wrong type
// are refused. Fields that nothing reads are here for that check.
type config struct {
	Host                   string           `yaml:"host"`
	Port                   int              `yaml:"port"`
	AuthDir                string           `yaml:"auth-dir"`
	APIKeys                []string         `yaml:"api-keys"`
	RemoteManagement       remoteManagement `yaml:"remote-management"`
	ProxyURL               string           `yaml:"proxy-url"`
	Debug                  bool             `yaml:"debug"`
	RequestLog             bool             `yaml:"request-log"`
	LoggingToFile          bool             `yaml:"logging-to-file"`
	LogsMaxTotalSizeMB     int              `yaml:"logs-max-total-size-mb"`
	ErrorLogsMaxFiles      int              `yaml:"error-logs-max-files"`
	UsageStatisticsEnabled bool             `yaml:"usage-statistics-enabled"`
	UsageRetentionSeconds  int              `yaml:"redis-usage-queue-retention-seconds"`
	WebsocketAuth          bool             `yaml:"ws-auth"`
	Plugins                struct {
		Enabled bool `yaml:"enabled"`
	} `yaml:"plugins"`
	OpenAICompatibility []provider `yaml:"openai-compatibility"`
}

type remoteManagement struct {
	AllowRemote            bool   `yaml:"allow-remote"`
	SecretKey              string `yaml:"secret-key"` // a bcrypt hash once loaded
	DisableControlPanel    bool   `yaml:"disable-control-panel"`
	DisableAutoUpdatePanel bool   `yaml:"disable-auto-update-panel"`
}

// provider is an upstream with an OpenAI-compatible API.
type provider struct {
	Name          string `yaml:"name"`
	BaseURL       string `yaml:"base-url"`
	APIKeyEntries []struct {
		APIKey   string `yaml:"api-key"`
		ProxyURL string `yaml:"proxy-url"`
	} `yaml:"api-key-entries"`
	Models []providerModel `yaml:"models"`
}

type providerModel struct {
	Name  string `yaml:"name"`  // the provider's name of the model
	Alias string `yaml:"alias"` // the name that clients ask for; empty: Name
}

func (m providerModel) clientName() string {
	if m.Alias != "" {
		return m.Alias
	}
	return m.Name
}

func (c *config) usageRetention() time.Duration {
	seconds := c.UsageRetentionSeconds
	if seconds <= 0 {
		seconds = defaultUsageRetentionSeconds
	}
	return time.Duration(min(seconds, maxUsageRetentionSeconds)) * time.Second
}

// loadConfig checks the content read from path. A plain management key is
// hashed and the hash written back to path; not being able to write is fine.
// It returns the configuration and the content that path now holds.
func loadConfig(path string, content []byte) (*config, []byte, error) {
	cfg, err := parseConfig(content)
	if err != nil {
		return nil, nil, fmt.Errorf("configuration %s: %w", path, err)
	}
	secret := cfg.RemoteManagement.SecretKey
	if secret == "" || looksHashed(secret) {
		return cfg, content, nil
	}
	hash, err := hashSecretKey(secret)
	if err != nil {
		return nil, nil, fmt.Errorf("configuration %s: hash remote-management.secret-key: %w", path, err)
	}
	cfg.RemoteManagement.SecretKey = hash
	rewritten, err := writeBackSecretKey(path, content, hash)
	if err != nil {
		slog.Warn("the hashed management key was not saved and will be hashed again at the next start", "error", err)
		return cfg, content, nil
	}
	return cfg, rewritten, nil
}

// parseConfig accepts whatever is YAML with the right types, as the real
// program does: a port out of range fails at the start only, port 0 listens
// somewhere, and without auth-dir it is a folder of the user's home.
func parseConfig(content []byte) (*config, error) {
	cfg := &config{WebsocketAuth: true}
	if err := yaml.Unmarshal(content, cfg); err != nil {
		return nil, err
	}
	if cfg.AuthDir == "" {
		cfg.AuthDir = defaultAuthDir
	}
	if rest, ok := strings.CutPrefix(cfg.AuthDir, "~"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, fmt.Errorf("auth-dir: %w", err)
		}
		cfg.AuthDir = filepath.Join(home, rest)
	}
	cfg.APIKeys = nonBlank(cfg.APIKeys)
	return cfg, nil
}

func nonBlank(values []string) []string {
	var kept []string
	for _, value := range values {
		if value = strings.TrimSpace(value); value != "" {
			kept = append(kept, value)
		}
	}
	return kept
}
