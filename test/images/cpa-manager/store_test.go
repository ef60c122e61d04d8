package main

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a folder?", "usage.sqlite")
	_, err := openStore(t.Context(), path)
	require.Error(t, err, "the folder is missing")

	path = filepath.Join(t.TempDir(), "100% odd #name.sqlite")
	db, err := openStore(t.Context(), path)
	require.NoError(t, err)
	added, err := db.addEvents(t.Context(), []json.RawMessage{[]byte(`{"n":1}`), []byte(`{"n":2}`), []byte(`{"n":1}`)})
	require.NoError(t, err)
	assert.EqualValues(t, 2, added, "an event is stored once")
	assert.FileExists(t, path+"-wal")
	require.NoError(t, db.close())

	db = openTestStore(t, path)
	count, err := db.countEvents(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 2, count)
}
