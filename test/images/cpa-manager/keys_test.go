package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDataKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.key")
	require.NoError(t, ensureDataKey("", path))
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	first, err := os.ReadFile(path)
	require.NoError(t, err)

	require.NoError(t, ensureDataKey("", path))
	second, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, first, second, "the key is made once")

	for _, damaged := range []string{"", "c2hvcnQ=", "not base64!"} {
		require.NoError(t, os.WriteFile(path, []byte(damaged), 0o600))
		assert.ErrorContains(t, ensureDataKey("", path), "damaged")
	}
}

func TestGivenDataKeyMakesNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.key")
	require.NoError(t, ensureDataKey("given", path))
	assert.NoFileExists(t, path)
}

func TestAdminKeyIsTakenAtTheFirstStartOnly(t *testing.T) {
	db := openTestStore(t, filepath.Join(t.TempDir(), "usage.sqlite"))
	generated, err := ensureAdminKey(t.Context(), db, adminKey)
	require.NoError(t, err)
	assert.Empty(t, generated)
	_, err = ensureAdminKey(t.Context(), db, "a later key")
	require.NoError(t, err)

	credential, found, err := db.adminCredential(t.Context())
	require.NoError(t, err)
	require.True(t, found)
	assert.True(t, credential.matches(adminKey))
	assert.False(t, credential.matches("a later key"))
	assert.False(t, credential.matches(""))
	assert.NotContains(t, string(credential.hash), adminKey)
	assert.NotEqual(t, newAdminCredential(adminKey), credential, "every credential has a salt of its own")
}

func TestAdminKeyIsGenerated(t *testing.T) {
	db := openTestStore(t, filepath.Join(t.TempDir(), "usage.sqlite"))
	generated, err := ensureAdminKey(t.Context(), db, "")
	require.NoError(t, err)
	credential, _, err := db.adminCredential(t.Context())
	require.NoError(t, err)
	assert.True(t, credential.matches(generated))
}
