package main

import (
	"crypto/subtle"
	"net/http"

	"github.com/example-org/subrelay-operator/test/images/internal/httpjson"
)

// controllerHandler is the part of the external controller that says whether
// the process is there. With a secret every path wants it as Bearer token.
func controllerHandler(secret string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		httpjson.Write(w, http.StatusOK, map[string]any{"meta": true, "version": version})
	})
	if secret == "" {
		return mux
	}
	want := []byte("Bearer " + secret)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			httpjson.Write(w, http.StatusUnauthorized, map[string]string{"message": "Unauthorized"})
			return
		}
		mux.ServeHTTP(w, r)
	})
}
