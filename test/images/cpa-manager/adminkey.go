package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"strings"
)

const saltBytes = 16

// adminCredential is what the database keeps of the admin key.
type adminCredential struct {
	salt []byte
	hash []byte // HMAC-SHA256 of the key, keyed with the salt
}

func newAdminCredential(key string) adminCredential {
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // never fails
	return adminCredential{salt: salt, hash: hashAdminKey(key, salt)}
}

func (c adminCredential) matches(key string) bool {
	return key != "" && hmac.Equal(hashAdminKey(key, c.salt), c.hash)
}

func hashAdminKey(key string, salt []byte) []byte {
	mac := hmac.New(sha256.New, salt)
	mac.Write([]byte(key))
	return mac.Sum(nil)
}

// ensureAdminKey stores the admin key at the first start. Later starts keep
// what is stored, whatever key is given. It returns the key if it had to
// generate one.
func ensureAdminKey(ctx context.Context, db *store, given string) (string, error) {
	if _, found, err := db.adminCredential(ctx); err != nil || found {
		return "", err
	}
	if given != "" {
		return "", db.saveAdminCredential(ctx, newAdminCredential(given))
	}
	generated := generateAdminKey()
	return generated, db.saveAdminCredential(ctx, newAdminCredential(generated))
}

func generateAdminKey() string { return "cpamp_" + rand.Text() }

func bearerToken(r *http.Request) string {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}
