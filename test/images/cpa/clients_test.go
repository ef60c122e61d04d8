package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWebSocketNeedsAKeyAndEchoes(t *testing.T) {
	_, base := startDefault(t)
	address := strings.Replace(base, "http://", "ws://", 1) + "/v1/ws"
	_, refusal, err := websocket.Dial(t.Context(), address, nil) //nolint:bodyclose // Dial closes it.
	require.Error(t, err)
	require.Equal(t, http.StatusUnauthorized, refusal.StatusCode)

	connection, _, err := websocket.Dial(t.Context(), address+"?key="+clientKey, nil) //nolint:bodyclose // Dial closes it.
	require.NoError(t, err)
	defer func() { _ = connection.CloseNow() }()
	require.NoError(t, connection.Write(t.Context(), websocket.MessageText, []byte("hello")))
	kind, message, err := connection.Read(t.Context())
	require.NoError(t, err)
	assert.Equal(t, websocket.MessageText, kind)
	assert.Equal(t, "hello", string(message))
}

func TestSignInsComeBackWithoutAKey(t *testing.T) {
	_, base := startDefault(t)
	assert.Equal(t, http.StatusOK, call(t, "GET", base+"/codex/callback?code=a&state=b", "").status)
	assert.Equal(t, http.StatusBadRequest, call(t, "GET", base+"/codex/callback?code=a", "").status)
}
