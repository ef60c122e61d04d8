package main

import (
	"io"
	"log/slog"
	"net/http"

	"github.com/coder/websocket"
)

// echoMessages takes the place of the real program's WebSocket, over which browsers offer themselves as providers: it
// sends every message back.
func echoMessages(w http.ResponseWriter, r *http.Request) {
	connection, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return // Accept has answered
	}
	defer func() { _ = connection.CloseNow() }()
	for {
		kind, message, err := connection.Read(r.Context())
		if err != nil {
			return // the client has gone
		}
		if err := connection.Write(r.Context(), kind, message); err != nil {
			slog.Warn("a WebSocket message was not sent", "error", err)
			return
		}
	}
}

// finishSignIn is where a provider sends the browser back to after a sign-in. It is public, as in the real program, which
// keeps what the query says for the sign-in that waits for it.
func finishSignIn(w http.ResponseWriter, r *http.Request) {
	if query := r.URL.Query(); query.Get("code") == "" || query.Get("state") == "" {
		http.Error(w, "code and state are required", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, "<html><body>The sign-in is complete. You can close this window.</body></html>")
}
