// Package addons holds the objects that a full node's cluster starts with: DNS, the default
// StorageClass, and the permissions of the programs that run beside the cluster.
package addons

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
)

//go:embed manifests/*.yaml
var manifests embed.FS

// Manifests returns all objects as one YAML stream.
func Manifests() ([]byte, error) {
	files, err := fs.Glob(manifests, "manifests/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list the lab's manifests: %w", err)
	}
	var documents [][]byte
	for _, file := range files {
		content, err := manifests.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read the lab's manifests: %w", err)
		}
		documents = append(documents, content)
	}
	return bytes.Join(documents, []byte("---\n")), nil
}
