package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
	"golang.org/x/crypto/bcrypt"
)

// looksHashed reports whether the key is taken for a bcrypt hash. A plain key
// with such a prefix therefore never matches.
func looksHashed(key string) bool {
	for _, prefix := range []string{"$2a$", "$2b$", "$2y$"} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// hashSecretKey fails for keys of more than 72 bytes, the limit of bcrypt.
func hashSecretKey(key string) (string, error) {
	hash, err := bcrypt.GenerateFromPassword([]byte(key), bcrypt.DefaultCost)
	return string(hash), err
}

// writeBackSecretKey changes the line of remote-management.secret-key and
// writes the file in place: truncate and write, never temp file and rename,
// which a mounted single file would refuse. It returns what the file now holds.
func writeBackSecretKey(path string, content []byte, hash string) ([]byte, error) {
	changed, err := replaceSecretKey(content, hash)
	if err != nil {
		return nil, err
	}
	return changed, os.WriteFile(path, changed, 0o600)
}

func replaceSecretKey(content []byte, hash string) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		return nil, err
	}
	node := childOf(childOf(document.Content[0], "remote-management"), "secret-key")
	if node == nil {
		return nil, errors.New("remote-management.secret-key not found")
	}
	lines := bytes.SplitAfter(content, []byte("\n"))
	line := string(lines[node.Line-1])
	text := strings.TrimRight(line, "\r\n")
	replaced := text[:node.Column-1] + "'" + hash + "'"
	if node.LineComment != "" {
		replaced += " " + node.LineComment
	}
	lines[node.Line-1] = []byte(replaced + line[len(text):])

	changed := bytes.Join(lines, nil)
	reread, err := parseConfig(changed)
	if err != nil || reread.RemoteManagement.SecretKey != hash {
		return nil, fmt.Errorf("line %d holds more than remote-management.secret-key", node.Line)
	}
	return changed, nil
}

// childOf returns the value of a key of a mapping, nil when there is none.
func childOf(mapping *yaml.Node, key string) *yaml.Node {
	if mapping == nil || mapping.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}
