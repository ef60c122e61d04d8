package harness

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// Component returns the processes of one of the lab's programs, such as kube-router, to be stopped and continued. Other
// labs on this machine are left out.
func (l *Lab) Component(name string) ([]Process, error) {
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return nil, err
	}
	var found []Process
	for _, path := range groups {
		content, err := os.ReadFile(path)
		if gone(err) || err == nil && !strings.Contains(string(content), "/subrelay-lab-"+l.name+"-") {
			continue
		}
		if err != nil {
			return nil, err
		}
		process, err := readProcess(filepath.Dir(path))
		if err != nil && !gone(err) {
			return nil, err
		}
		if err == nil && process.Command == name {
			found = append(found, process)
		}
	}
	if len(found) == 0 {
		return nil, errors.New("the lab runs no " + name)
	}
	return found, nil
}
