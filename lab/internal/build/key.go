package build

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// sourceKey digests everything that decides what a build makes: the files of the component's folder, by name and
// content, and recipe, which holds the compiler and its settings.
func sourceKey(folder string, recipe []string) (string, error) {
	hash := sha256.New()
	fmt.Fprintf(hash, "%q\n", recipe)
	// WalkDir goes in lexical order, so the digest does not depend on the file system.
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(hash, "%q %d\n", name, info.Size())
		return copyFile(hash, path)
	})
	if err != nil {
		return "", fmt.Errorf("read the sources: %w", err)
	}
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}

func copyFile(to io.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(to, file)
	return err
}
