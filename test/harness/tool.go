package harness

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// LabTool returns the path of a program that the lab has built beside the one that it runs, from the newest build.
func LabTool(component, program string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the lab's cache: %w", err)
	}
	builds, err := filepath.Glob(filepath.Join(cache, "subrelay-lab", "components", component, "*", program))
	if err != nil || len(builds) == 0 {
		return "", errors.Join(err, fmt.Errorf("the lab has built no %s: run `bin/lab build %s`", program, component))
	}
	built := func(path string) int64 {
		info, err := os.Stat(path)
		if err != nil {
			return 0 // removed meanwhile
		}
		return info.ModTime().UnixNano()
	}
	return slices.MaxFunc(builds, func(a, b string) int { return cmp.Compare(built(a), built(b)) }), nil
}
