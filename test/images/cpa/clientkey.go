package main

import (
	"net/http"
	"slices"
	"strings"

	"github.com/example-org/subrelay-operator/test/images/internal/httpjson"
)

// templateKeys are the values of the real program's example configuration.
// While one of them is configured, the API answers 403 to everybody.
var templateKeys = []string{"your-api-key-1", "your-api-key-2", "your-api-key-3"}

// requireClientKey lets a request with one of api-keys pass. With no api-keys
// at all the API is open to everybody, as in the real program.
func (s *server) requireClientKey(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys := s.live.get().APIKeys
		if slices.ContainsFunc(keys, func(key string) bool { return slices.Contains(templateKeys, key) }) {
			httpjson.Error(w, http.StatusForbidden, "unsafe_example_api_key")
			return
		}
		if len(keys) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		offered := offeredClientKeys(r)
		switch {
		case len(offered) == 0:
			httpjson.Error(w, http.StatusUnauthorized, "Missing API key")
		case !slices.ContainsFunc(offered, func(key string) bool { return slices.Contains(keys, key) }):
			httpjson.Error(w, http.StatusUnauthorized, "Invalid API key")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func offeredClientKeys(r *http.Request) []string {
	query := r.URL.Query()
	return nonBlank([]string{
		bearerToken(r),
		r.Header.Get("X-Goog-Api-Key"),
		r.Header.Get("X-Api-Key"),
		query.Get("key"),
		query.Get("auth_token"),
	})
}

// bearerToken returns the key of the Authorization header; a header without
// the Bearer scheme counts as the key itself.
func bearerToken(r *http.Request) string {
	header := r.Header.Get("Authorization")
	if scheme, token, ok := strings.Cut(header, " "); ok && strings.EqualFold(scheme, "bearer") {
		return strings.TrimSpace(token)
	}
	return header
}
