package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// paths says where the process finds its files; all are absolute.
type paths struct {
	home string
	file string
	safe []string // further folders in which provider files may lie
}

// findPaths creates the home folder when it is missing, as the real program
// does; where that is not possible, a start without -d fails.
func findPaths(homeFlag, fileFlag string) (paths, error) {
	home := homeFlag
	if home == "" {
		userHome, err := os.UserHomeDir()
		if err != nil {
			return paths{}, fmt.Errorf("no home folder, give one with -d: %w", err)
		}
		home = filepath.Join(userHome, ".config", "mihomo")
	}
	home, err := filepath.Abs(home)
	if err != nil {
		return paths{}, err
	}
	if err := os.MkdirAll(home, 0o755); err != nil {
		return paths{}, fmt.Errorf("create the home folder, give a writable one with -d: %w", err)
	}
	file := fileFlag
	if file == "" {
		file = filepath.Join(home, "config.yaml")
	}
	if file, err = filepath.Abs(file); err != nil {
		return paths{}, err
	}
	return paths{home: home, file: file, safe: filepath.SplitList(os.Getenv("SAFE_PATHS"))}, nil
}

// resolve makes a path of the configuration absolute, relative to the home
// folder. Newer releases of the real program refuse paths outside the home
// folder and SAFE_PATHS.
func (p paths) resolve(path string) (string, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.home, path)
	}
	for _, folder := range append([]string{p.home}, p.safe...) {
		relative, err := filepath.Rel(folder, path)
		if err == nil && relative != ".." && !strings.HasPrefix(relative, "../") {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s lies outside the home folder %s: move it or name its folder in SAFE_PATHS", path, p.home)
}
