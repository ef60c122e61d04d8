package build

import (
	"fmt"
	"os"
	"path/filepath"
)

// Dirs are the folders that a build reads and writes.
type Dirs struct {
	// Components holds the sources: one folder for each component.
	Components string
	// Cache holds what was built. Nobody but the lab writes there, and it may be deleted whenever no lab runs.
	Cache string
}

// FindDirs looks for lab/components upwards from the executable, then from the working directory, and for the cache in
// the user's cache folder ($XDG_CACHE_HOME or ~/.cache).
func FindDirs() (Dirs, error) {
	userCache, err := os.UserCacheDir()
	if err != nil {
		return Dirs{}, fmt.Errorf("find a folder for the cache: %w: set HOME or XDG_CACHE_HOME", err)
	}
	dirs := Dirs{Cache: filepath.Join(userCache, "subrelay-lab")}
	var starts []string
	if executable, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(executable))
	}
	if working, err := os.Getwd(); err == nil {
		starts = append(starts, working)
	}
	for _, start := range starts {
		if found, ok := findUpwards(start, filepath.Join("lab", "components")); ok {
			dirs.Components = found
			return dirs, nil
		}
	}
	return Dirs{}, fmt.Errorf("no folder lab/components in or above any of %q: run the command inside a checkout of the repository", starts)
}

func findUpwards(start, name string) (string, bool) {
	for folder := start; ; folder = filepath.Dir(folder) {
		candidate := filepath.Join(folder, name)
		if info, err := os.Stat(candidate); err == nil && info.IsDir() {
			return candidate, true
		}
		if folder == filepath.Dir(folder) {
			return "", false
		}
	}
}
