// Package httpjson writes JSON answers for the stand-in applications.
package httpjson

import (
	"encoding/json"
	"net/http"
)

// Write sends value as JSON with the given status code.
// A failing write means that the client has gone; there is nobody left to tell.
func Write(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

// Error sends {"error": message}, the shape of both cpa and cpa-manager.
func Error(w http.ResponseWriter, status int, message string) {
	Write(w, status, map[string]string{"error": message})
}
