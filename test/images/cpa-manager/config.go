package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Defaults of the real program.
const (
	defaultHTTPAddr          = "0.0.0.0:18317"
	defaultManagementKeyFile = "/run/secrets/cpa_management_key"
	defaultAdminKeyFile      = "/run/secrets/cpa_admin_key"
	defaultDataKeyFile       = "/run/secrets/cpa_data_key"
	defaultBatchSize         = 100
	defaultPollIntervalMS    = 500
)

type config struct {
	httpAddr      string
	dbPath        string
	upstream      *url.URL // of cpa; nil: not configured
	managementKey string
	adminKey      string // used at the first start only
	dataKey       string // empty: kept in dataKeyPath
	dataKeyPath   string
	batchSize     int
	pollInterval  time.Duration
}

// configured reports whether the connection to cpa is complete.
func (c config) configured() bool { return c.upstream != nil && c.managementKey != "" }

func loadConfig(getenv func(string) string) (config, error) {
	env := func(key, fallback string) string {
		if value := strings.TrimSpace(getenv(key)); value != "" {
			return value
		}
		return fallback
	}
	dataDir, dbPath := env("USAGE_DATA_DIR", ""), env("USAGE_DB_PATH", "")
	switch {
	case dataDir == "" && dbPath == "":
		return config{}, errors.New("set USAGE_DATA_DIR or USAGE_DB_PATH: there is no folder for the database")
	case dbPath == "":
		dbPath = filepath.Join(dataDir, "usage.sqlite")
	case dataDir == "":
		dataDir = filepath.Dir(dbPath)
	}
	upstream, err := parseUpstream(env("CPA_UPSTREAM_URL", ""))
	if err != nil {
		return config{}, err
	}
	// The real program has more modes; auto ends in http as well when cpa is not up first.
	if mode := env("USAGE_COLLECTOR_MODE", "auto"); mode != "http" && mode != "auto" {
		return config{}, fmt.Errorf("USAGE_COLLECTOR_MODE: this stand-in collects over http only, not %q", mode)
	}
	return config{
		httpAddr:      env("HTTP_ADDR", defaultHTTPAddr),
		dbPath:        dbPath,
		upstream:      upstream,
		managementKey: readSecret(env, "CPA_MANAGEMENT_KEY", defaultManagementKeyFile),
		adminKey:      readSecret(env, "CPA_MANAGER_ADMIN_KEY", defaultAdminKeyFile),
		dataKey:       readSecret(env, "CPA_MANAGER_DATA_KEY", defaultDataKeyFile),
		dataKeyPath:   env("CPA_MANAGER_DATA_KEY_PATH", filepath.Join(dataDir, "data.key")),
		batchSize:     positiveNumber(env("USAGE_BATCH_SIZE", ""), defaultBatchSize),
		pollInterval: time.Duration(positiveNumber(env("USAGE_POLL_INTERVAL_MS", ""), defaultPollIntervalMS)) *
			time.Millisecond,
	}, nil
}

// readSecret takes the plain variable, else the file that <key>_FILE names. A
// file that is missing or unreadable silently counts as empty, as in the real
// program.
func readSecret(env func(key, fallback string) string, key, defaultFile string) string {
	if value := env(key, ""); value != "" {
		return value
	}
	content, err := os.ReadFile(env(key+"_FILE", defaultFile))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}

func parseUpstream(value string) (*url.URL, error) {
	if value == "" {
		return nil, nil
	}
	upstream, err := url.Parse(value)
	if err != nil || upstream.Scheme == "" || upstream.Host == "" {
		return nil, errors.New("CPA_UPSTREAM_URL: give a URL with scheme and host, like http://127.0.0.1:8317")
	}
	return upstream, nil
}

// positiveNumber falls back for anything that is not a number above 0.
func positiveNumber(value string, fallback int) int {
	number, err := strconv.Atoi(value)
	if err != nil || number <= 0 {
		return fallback
	}
	return number
}
