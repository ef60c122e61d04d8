package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/example-org/subrelay-operator/test/images/internal/httpjson"
)

// maxBody bounds what a request may make the stand-in hold in memory.
const maxBody = 8 << 20

func (s *server) getConfigFile(w http.ResponseWriter, _ *http.Request) {
	content, err := os.ReadFile(s.live.path)
	if err != nil {
		configFileError(w, http.StatusInternalServerError, "read_failed", err)
		return
	}
	w.Header().Set("Content-Type", "application/yaml; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(content)
}

// putConfigFile is the panel's whole-file editor. Like the real program it
// tries the new content in a file beside config.yaml, so it needs a writable
// folder and not only a writable file, and accepts all that can be read: an
// empty file too, or a port with which the next start fails.
func (s *server) putConfigFile(w http.ResponseWriter, r *http.Request) {
	content, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		configFileError(w, http.StatusBadRequest, "invalid_yaml", err)
		return
	}
	if _, err := parseConfig(content); err != nil {
		configFileError(w, http.StatusBadRequest, "invalid_yaml", err)
		return
	}
	trial, err := writeTrial(filepath.Dir(s.live.path), content)
	if err != nil {
		configFileError(w, http.StatusInternalServerError, "write_failed", err)
		return
	}
	defer func() { _ = os.Remove(trial) }()
	if _, _, err := loadConfig(trial, content); err != nil {
		configFileError(w, http.StatusUnprocessableEntity, "invalid_config", err)
		return
	}
	if err := s.live.replace(content); err != nil {
		configFileError(w, http.StatusInternalServerError, "write_failed", err)
		return
	}
	httpjson.Write(w, http.StatusOK, map[string]any{"ok": true, "changed": []string{"config"}})
}

func writeTrial(folder string, content []byte) (string, error) {
	file, err := os.CreateTemp(folder, "config-validate-*.yaml")
	if err != nil {
		return "", err
	}
	_, err = file.Write(content)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return "", fmt.Errorf("write %s: %w", file.Name(), err)
	}
	return file.Name(), nil
}

func configFileError(w http.ResponseWriter, status int, code string, err error) {
	httpjson.Write(w, status, map[string]string{"error": code, "message": err.Error()})
}
