package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"
)

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Sys().(*syscall.Stat_t).Ino
}

func TestSecretKeyIsHashedInPlace(t *testing.T) {
	for name, line := range map[string]string{
		"single quotes": "  secret-key: '" + managementKey + "'",
		"double quotes": `  secret-key: "` + managementKey + `"`,
		"plain":         "  secret-key: " + managementKey,
		"with comment":  "  secret-key: " + managementKey + " # from the Secret",
	} {
		t.Run(name, func(t *testing.T) {
			before := strings.Replace(fullConfig(8317, t.TempDir()), "  secret-key: '"+managementKey+"'", line, 1)
			path := writeConfig(t, before)
			number := inode(t, path)

			live, err := newLiveConfig(path)
			require.NoError(t, err)

			hash := live.get().RemoteManagement.SecretKey
			require.NoError(t, bcrypt.CompareHashAndPassword([]byte(hash), []byte(managementKey)))
			after := readFile(t, path)
			assert.Equal(t, strings.Replace(before, line, hashedLine(line, hash), 1), after, "no other line changes")
			assert.Equal(t, number, inode(t, path), "the file is written in place")

			again, err := newLiveConfig(path)
			require.NoError(t, err)
			assert.Equal(t, hash, again.get().RemoteManagement.SecretKey)
			assert.Equal(t, after, readFile(t, path), "a hash is not hashed again")
		})
	}
}

func hashedLine(line, hash string) string {
	changed := "  secret-key: '" + hash + "'"
	if strings.Contains(line, "#") {
		changed += " # from the Secret"
	}
	return changed
}

func TestSecretKeyThatCannotBeSavedIsUsedAnyway(t *testing.T) {
	content := []byte(fullConfig(8317, t.TempDir()))
	unwritable := filepath.Join(t.TempDir(), "missing folder", "config.yaml")
	cfg, kept, err := loadConfig(unwritable, content)
	require.NoError(t, err)
	assert.NoError(t, bcrypt.CompareHashAndPassword([]byte(cfg.RemoteManagement.SecretKey), []byte(managementKey)))
	assert.Equal(t, content, kept)
}

func TestSecretKeyInsideALineIsNotSaved(t *testing.T) {
	content := "port: 8317\nauth-dir: /x\nremote-management: {secret-key: abc, allow-remote: true}\n"
	path := writeConfig(t, content)
	live, err := newLiveConfig(path)
	require.NoError(t, err)
	assert.True(t, looksHashed(live.get().RemoteManagement.SecretKey))
	assert.Equal(t, content, readFile(t, path))
}

func TestSecretKeyLength(t *testing.T) {
	config := func(length int) string {
		return strings.Replace(fullConfig(8317, t.TempDir()), managementKey, strings.Repeat("k", length), 1)
	}
	_, err := newLiveConfig(writeConfig(t, config(72)))
	require.NoError(t, err)
	_, err = newLiveConfig(writeConfig(t, config(73)))
	assert.ErrorContains(t, err, "72 bytes")
}

func TestSecretKeyWithAHashPrefixNeverMatches(t *testing.T) {
	key := "$2a$looks-like-a-hash"
	_, url := startDefault(t, managementKey, key)
	got := call(t, "GET", url+"/v0/management/usage-queue", "", "X-Management-Key", key)
	assert.Equal(t, 401, got.status)
}
