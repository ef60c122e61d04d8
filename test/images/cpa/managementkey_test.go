package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

const managementPath = "/v0/management/usage-queue"

func TestManagementKey(t *testing.T) {
	_, url := startDefault(t)
	url += managementPath
	assert.Equal(t, http.StatusOK, call(t, "GET", url, "", "Authorization", "Bearer "+managementKey).status)
	assert.Equal(t, http.StatusOK, call(t, "GET", url, "", withManagementKey()...).status)
	assert.Equal(t, http.StatusUnauthorized, call(t, "GET", url, "").status)
	assert.Equal(t, http.StatusUnauthorized, call(t, "GET", url, "", withClientKey()...).status)
	assert.Equal(t, http.StatusUnauthorized, call(t, "GET", url, "", "X-Management-Key", "wrong").status)
}

func TestWithoutSecretKeyThereIsNoManagement(t *testing.T) {
	_, url := startDefault(t, managementKey, "")
	assert.Equal(t, http.StatusNotFound, call(t, "GET", url+managementPath, "", withManagementKey()...).status)
}

func TestFiveFailuresBanTheAddress(t *testing.T) {
	s, url := startDefault(t)
	now := time.Now()
	s.guard.now = func() time.Time { return now }
	url += managementPath

	failures := [][]string{{}, {"X-Management-Key", "wrong"}, {}, {"Authorization", "Bearer wrong"}, {}}
	for _, headers := range failures {
		assert.Equal(t, http.StatusUnauthorized, call(t, "GET", url, "", headers...).status)
	}
	assert.Equal(t, http.StatusForbidden, call(t, "GET", url, "", withManagementKey()...).status,
		"banned with the right key too")

	now = now.Add(banDuration - time.Second)
	assert.Equal(t, http.StatusForbidden, call(t, "GET", url, "", withManagementKey()...).status)
	now = now.Add(2 * time.Second)
	assert.Equal(t, http.StatusOK, call(t, "GET", url, "", withManagementKey()...).status)
}

func TestTheRightKeyResetsTheCount(t *testing.T) {
	_, url := startDefault(t)
	url += managementPath
	for range 2 {
		for range maxFailures - 1 {
			assert.Equal(t, http.StatusUnauthorized, call(t, "GET", url, "").status)
		}
		assert.Equal(t, http.StatusOK, call(t, "GET", url, "", withManagementKey()...).status)
	}
}

func TestForwardedAddressIsBelieved(t *testing.T) {
	_, url := startDefault(t)
	url += managementPath
	from := func(address string) []string { return append(withManagementKey(), "X-Forwarded-For", address) }

	for range 2 * maxFailures {
		got := call(t, "GET", url, "", from("203.0.113.9")...)
		assert.Equal(t, http.StatusForbidden, got.status)
		assert.Contains(t, got.body, "remote management disabled")
	}
	assert.Equal(t, http.StatusOK, call(t, "GET", url, "", from("127.0.0.1, 203.0.113.9")...).status,
		"an outsider can claim to be local")

	for range maxFailures {
		call(t, "GET", url, "", "X-Forwarded-For", "::1")
	}
	assert.Equal(t, http.StatusForbidden, call(t, "GET", url, "", from("::1")...).status)
	assert.Equal(t, http.StatusOK, call(t, "GET", url, "", from("not an address")...).status,
		"the ban is per address, and nonsense counts as no header")
}

func TestAllowRemote(t *testing.T) {
	_, url := startDefault(t, "allow-remote: false", "allow-remote: true")
	headers := append(withManagementKey(), "X-Real-IP", "203.0.113.9")
	assert.Equal(t, http.StatusOK, call(t, "GET", url+managementPath, "", headers...).status)
}

func TestManagementPasswordOfTheEnvironment(t *testing.T) {
	s, url := startDefault(t, managementKey, "")
	s.managementPassword = "from the environment"
	headers := []string{"X-Management-Key", s.managementPassword, "X-Forwarded-For", "203.0.113.9"}
	assert.Equal(t, http.StatusOK, call(t, "GET", url+managementPath, "", headers...).status,
		"it works without secret-key and for remote addresses")
	assert.Equal(t, http.StatusUnauthorized, call(t, "GET", url+managementPath, "", withManagementKey()...).status)
}
