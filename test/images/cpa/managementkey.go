package main

import (
	"crypto/subtle"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/example-org/subrelay-operator/test/images/internal/httpjson"
)

// Numbers of the real program's ban: it is kept in memory only.
const (
	maxFailures = 5
	banDuration = 30 * time.Minute
)

// requireManagementKey guards /v0/management. The order of the checks is the
// real program's: a banned address is refused even with the right key, and a
// missing key counts as a failure.
func (s *server) requireManagementKey(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		remote := s.live.get().RemoteManagement
		if remote.SecretKey == "" && s.managementPassword == "" {
			http.NotFound(w, r)
			return
		}
		client := clientIP(r)
		if left := s.guard.banLeft(client); left > 0 {
			httpjson.Error(w, http.StatusForbidden,
				fmt.Sprintf("IP banned due to too many failed attempts. Try again in %s", left.Round(time.Second)))
			return
		}
		local := client == "127.0.0.1" || client == "::1"
		if !local && !remote.AllowRemote && s.managementPassword == "" {
			httpjson.Error(w, http.StatusForbidden, "remote management disabled")
			return
		}
		key := offeredManagementKey(r)
		if !s.isManagementKey(key, remote.SecretKey) {
			s.guard.failed(client)
			message := "invalid management key"
			if key == "" {
				message = "missing management key"
			}
			httpjson.Error(w, http.StatusUnauthorized, message)
			return
		}
		s.guard.succeeded(client)
		next.ServeHTTP(w, r)
	})
}

func offeredManagementKey(r *http.Request) string {
	if key := bearerToken(r); key != "" {
		return key
	}
	return r.Header.Get("X-Management-Key")
}

func (s *server) isManagementKey(key, hash string) bool {
	if key == "" {
		return false
	}
	if s.managementPassword != "" && subtle.ConstantTimeCompare([]byte(key), []byte(s.managementPassword)) == 1 {
		return true
	}
	return bcrypt.CompareHashAndPassword([]byte(hash), []byte(key)) == nil
}

// loginGuard counts failed logins per client address.
type loginGuard struct {
	now func() time.Time

	mu       sync.Mutex
	attempts map[string]attempts
}

type attempts struct {
	failures    int
	bannedUntil time.Time
}

func newLoginGuard() *loginGuard {
	return &loginGuard{now: time.Now, attempts: map[string]attempts{}}
}

// banLeft returns how long the client is still banned, at most 0 when it is not.
func (g *loginGuard) banLeft(client string) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.attempts[client].bannedUntil.Sub(g.now())
}

func (g *loginGuard) failed(client string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	seen := g.attempts[client]
	seen.failures++
	if seen.failures >= maxFailures {
		seen = attempts{bannedUntil: g.now().Add(banDuration)}
	}
	g.attempts[client] = seen
}

func (g *loginGuard) succeeded(client string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.attempts, client)
}
