package main

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"
)

const dataKeyBytes = 32

// ensureDataKey creates the key file at the first start. The real program
// encrypts stored connections with the key; the stand-in stores none and only
// checks that the file still holds a key.
func ensureDataKey(given, path string) error {
	if given != "" {
		return nil
	}
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return createDataKey(path)
	}
	if err != nil {
		return fmt.Errorf("read the data key: %w", err)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(content)))
	if err != nil || len(key) != dataKeyBytes {
		return fmt.Errorf("data key %s is damaged: restore it from a backup", path)
	}
	return nil
}

func createDataKey(path string) error {
	key := make([]byte, dataKeyBytes)
	_, _ = rand.Read(key) // never fails
	if err := os.WriteFile(path, []byte(base64.StdEncoding.EncodeToString(key)+"\n"), 0o600); err != nil {
		return fmt.Errorf("create the data key: %w", err)
	}
	return nil
}
