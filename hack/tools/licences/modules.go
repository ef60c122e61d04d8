package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// standardLibrary stands for the part of Go that is linked into every program. Its version is that of the compiler.
const standardLibrary = "Go standard library"

var (
	// documentNames are what files with licences and notices are called. Others, such as LICENSE.docs, are about other things
	// than code.
	documentNames = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)(\.txt|\.md)?$`)
	// noticeNames are those of them that are passed on, but are no licence.
	noticeNames = regexp.MustCompile(`(?i)^(notice|patents)`)
)

// module is one that packages are linked from.
type module struct {
	name, version string
	// documents are the texts of licences and notices in the folders of the linked packages and above, by their path in the
	// module.
	documents map[string]string
	licences  []string
}

func isNotice(path string) bool { return noticeNames.MatchString(filepath.Base(path)) }

// files returns the paths of the documents in a fixed order.
func (m *module) files() []string { return slices.Sorted(maps.Keys(m.documents)) }

func (m *module) texts() string {
	var text strings.Builder
	for _, path := range m.files() {
		fmt.Fprintf(&text, "==== %s %s: %s\n\n%s\n\n", m.name, m.version, path, strings.TrimSpace(m.documents[path]))
	}
	return text.String()
}

// goPackage is what `go list` tells of a package.
type goPackage struct {
	Dir      string
	Standard bool
	Module   *struct {
		Path, Version, Dir string
		Main               bool
	}
}

// linkedModules returns the modules of all packages that the given ones are built from, without the project's own.
func linkedModules(packages []string) (map[string]*module, error) {
	root, err := goOutput("env", "GOROOT")
	if err != nil {
		return nil, err
	}
	listed, err := goOutput(append([]string{"list", "-deps", "-json=Dir,Standard,Module"}, packages...)...)
	if err != nil {
		return nil, err
	}
	modules := map[string]*module{}
	for decoder := json.NewDecoder(strings.NewReader(listed)); ; {
		var found goPackage
		if err := decoder.Decode(&found); errors.Is(err, io.EOF) {
			return modules, nil
		} else if err != nil {
			return nil, fmt.Errorf("read what go list says: %w", err)
		}
		name, version, folder := standardLibrary, "", strings.TrimSpace(root)
		switch {
		case found.Standard:
			// What lies deeper belongs to object files that are linked only by a build with C.
			found.Dir = folder
		case found.Module.Main:
			continue
		default:
			name, version, folder = found.Module.Path, found.Module.Version, found.Module.Dir
		}
		if modules[name] == nil {
			modules[name] = &module{name: name, version: version, documents: map[string]string{}}
		}
		if err := modules[name].collect(folder, found.Dir); err != nil {
			return nil, err
		}
	}
}

// collect reads the documents in the package's folder and in those above, up to the module's own.
func (m *module) collect(root, folder string) error {
	for ; ; folder = filepath.Dir(folder) {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if entry.IsDir() || !documentNames.MatchString(entry.Name()) {
				continue
			}
			path := filepath.Join(folder, entry.Name())
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			m.documents[strings.TrimPrefix(path, root+"/")] = string(content)
		}
		if folder == root || len(folder) <= len(root) {
			return nil
		}
	}
}

// goOutput runs the go command as the programs are built: without C.
func goOutput(args ...string) (string, error) {
	cmd := exec.CommandContext(context.Background(), "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", args[0], err)
	}
	return string(out), nil
}
