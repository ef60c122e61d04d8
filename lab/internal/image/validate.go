package image

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

var numericUser = regexp.MustCompile(`^[0-9]+(:[0-9]+)?$`)

func (s Spec) validate() error {
	if s.User != "" && !numericUser.MatchString(s.User) {
		return fmt.Errorf("user %q: write UID or UID:GID in numbers: the image has no list of user names", s.User)
	}
	if s.WorkingDir != "" {
		if err := validPath(s.WorkingDir); err != nil {
			return fmt.Errorf("working directory: %w", err)
		}
	}
	seen := map[string]bool{}
	for _, variable := range s.Environment {
		key, _, found := strings.Cut(variable, "=")
		if !found || key == "" {
			return fmt.Errorf("environment variable %q: write NAME=VALUE", key)
		}
		if seen[key] {
			return fmt.Errorf("environment variable %s is set twice", key)
		}
		seen[key] = true
	}
	return nil
}

// validPath accepts an absolute path inside an image in its shortest form.
func validPath(name string) error {
	if !path.IsAbs(name) || path.Clean(name) != name {
		return fmt.Errorf("path %q: write an absolute path in the image without . and .. and doubled or closing slashes", name)
	}
	return nil
}
