package build

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/example-org/subrelay-operator/lab/internal/progress"
)

// steps is a Reporter that remembers the names of the steps.
type steps struct {
	mu    sync.Mutex
	names []string
}

func (s *steps) Step(name string) func(error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names = append(s.names, name)
	return func(error) {}
}

func (s *steps) builds() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := 0
	for _, name := range s.names {
		if strings.HasPrefix(name, "building ") {
			count++
		}
	}
	return count
}

// greeter is a component whose program prints a greeting, its version and the name that it was called with.
var greeter = Component{
	Name:             "greeter",
	Version:          "v1.2.3",
	Programs:         []Program{{Name: "greeter", Package: ".", Links: []string{"hello"}}},
	VersionVariables: []string{"main.version"},
}

func newGreeter(t *testing.T, greeting string) Dirs {
	t.Helper()
	dirs := Dirs{Components: t.TempDir(), Cache: t.TempDir()}
	require.NoError(t, os.Mkdir(filepath.Join(dirs.Components, "greeter"), 0o755))
	writeSource(t, dirs, "go.mod", "module example.com/greeter\n\ngo 1.26.0\n")
	writeGreeting(t, dirs, greeting)
	return dirs
}

func writeGreeting(t *testing.T, dirs Dirs, greeting string) {
	t.Helper()
	writeSource(t, dirs, "main.go", `package main

import (
	"fmt"
	"os"
	"path/filepath"
)

var version string

func main() { fmt.Print("`+greeting+` ", version, " ", filepath.Base(os.Args[0])) }
`)
}

func writeSource(t *testing.T, dirs Dirs, name, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dirs.Components, "greeter", name), []byte(content), 0o644))
}

func run(t *testing.T, program string) string {
	t.Helper()
	output, err := exec.Command(program).Output()
	require.NoError(t, err)
	return string(output)
}

func TestEnsureBuildsOnceForTheSameSources(t *testing.T) {
	dirs, report := newGreeter(t, "good morning"), &steps{}

	first, err := ensure(t.Context(), dirs, []Component{greeter}, report)
	require.NoError(t, err)
	assert.Equal(t, "good morning v1.2.3 greeter", run(t, first["greeter"]))
	assert.Equal(t, "good morning v1.2.3 hello", run(t, first["hello"]))

	second, err := ensure(t.Context(), dirs, []Component{greeter}, report)
	require.NoError(t, err)
	assert.Equal(t, first, second)
	assert.Equal(t, []string{"building greeter v1.2.3"}, report.names)
}

func TestEnsureBuildsAgainWhenAnythingThatMattersChanges(t *testing.T) {
	changed := map[string]func(t *testing.T, dirs Dirs, c *Component){
		"a file's content": func(t *testing.T, dirs Dirs, _ *Component) { writeGreeting(t, dirs, "good evening") },
		"a new file":       func(t *testing.T, dirs Dirs, _ *Component) { writeSource(t, dirs, "doc.go", "package main\n") },
		"a build tag":      func(_ *testing.T, _ Dirs, c *Component) { c.Tags = []string{"quiet"} },
		"a variable":       func(_ *testing.T, _ Dirs, c *Component) { c.Variables = []string{"main.version=v9"} },
		"a link":           func(_ *testing.T, _ Dirs, c *Component) { c.Programs = []Program{{Name: "greeter", Package: "."}} },
	}
	for name, change := range changed {
		t.Run(name, func(t *testing.T) {
			dirs, component := newGreeter(t, "good morning"), greeter
			before, err := ensure(t.Context(), dirs, []Component{component}, progress.Discard)
			require.NoError(t, err)

			change(t, dirs, &component)
			after, err := ensure(t.Context(), dirs, []Component{component}, progress.Discard)
			require.NoError(t, err)
			assert.NotEqual(t, before["greeter"], after["greeter"])
			assert.FileExists(t, before["greeter"], "another checkout may still use it")
		})
	}
}

func TestEnsureLeavesNothingOfABuildThatFails(t *testing.T) {
	dirs := newGreeter(t, "good morning")
	writeSource(t, dirs, "broken.go", "package main\n\nfunc broken() { undefinedName() }\n")

	_, err := ensure(t.Context(), dirs, []Component{greeter}, progress.Discard)
	require.ErrorContains(t, err, "component greeter")
	require.ErrorContains(t, err, "undefinedName")
	assert.Equal(t, []string{".lock"}, cached(t, dirs))
}

func TestEnsureStopsTheCompilersWhenItsContextEnds(t *testing.T) {
	dirs, folder := newGreeter(t, "good morning"), t.TempDir()
	// This go command leads a process group, as the real one does here, and waits for a compiler that takes long.
	script := "#!/bin/sh\n[ $1 = env ] || { echo $$ > " + folder + "/group.new; mv " + folder + "/group.new " + folder + "/group; sleep 600; }\n"
	require.NoError(t, os.WriteFile(filepath.Join(folder, "go"), []byte(script), 0o755))
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))

	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := ensure(ctx, dirs, []Component{greeter}, progress.Discard)
		result <- err
	}()
	require.Eventually(t, func() bool { return exists(filepath.Join(folder, "group")) }, 30*time.Second, 10*time.Millisecond)
	cancel()
	require.ErrorIs(t, <-result, context.Canceled)
	assert.Equal(t, []string{".lock"}, cached(t, dirs))

	text, err := os.ReadFile(filepath.Join(folder, "group"))
	require.NoError(t, err)
	group, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) },
		30*time.Second, 10*time.Millisecond, "a process of the build goes on")
}

func TestEnsureDoesNotUseWhatAKilledBuildLeft(t *testing.T) {
	dirs := newGreeter(t, "good morning")
	half := filepath.Join(dirs.Cache, "components", "greeter", unfinished+"1", "programs")
	require.NoError(t, os.MkdirAll(half, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(half, "greeter"), []byte("half a program"), 0o755))

	programs, err := ensure(t.Context(), dirs, []Component{greeter}, progress.Discard)
	require.NoError(t, err)
	assert.Equal(t, "good morning v1.2.3 greeter", run(t, programs["greeter"]))
	assert.NoDirExists(t, half)
}

func TestEnsureBuildsOnceForTwoAtATime(t *testing.T) {
	dirs, report := newGreeter(t, "good morning"), &steps{}
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			_, err := ensure(t.Context(), dirs, []Component{greeter}, report)
			assert.NoError(t, err)
		})
	}
	group.Wait()
	assert.Equal(t, 1, report.builds())
}

func cached(t *testing.T, dirs Dirs) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dirs.Cache, "components", "greeter"))
	require.NoError(t, err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func TestEnsureRefusesAnUnknownComponent(t *testing.T) {
	_, err := Ensure(t.Context(), Dirs{}, []string{"pause", "dockerd"}, progress.Discard)
	require.ErrorContains(t, err, `no component "dockerd"`)
	require.ErrorContains(t, err, "kubernetes, containerd")
}

func TestFindDirsFindsTheCheckout(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "/somewhere")
	dirs, err := FindDirs()
	require.NoError(t, err)
	assert.Equal(t, "/somewhere/subrelay-lab", dirs.Cache)
	for _, component := range Components() {
		assert.FileExists(t, filepath.Join(dirs.Components, component.Name, "go.mod"))
	}
}

func TestFindDirsTellsWhereToRunIt(t *testing.T) {
	t.Chdir(t.TempDir())
	_, err := FindDirs()
	require.ErrorContains(t, err, "inside a checkout")
}

// The table repeats the version that go.mod pins, for the linker and for people; the two must agree.
func TestVersionsAreThoseOfTheModules(t *testing.T) {
	dirs, err := FindDirs()
	require.NoError(t, err)
	for _, component := range Components() {
		if component.Module == "" {
			continue
		}
		edit := exec.Command("go", "mod", "edit", "-json")
		edit.Dir = filepath.Join(dirs.Components, component.Name)
		output, err := edit.Output()
		require.NoError(t, err)
		var module struct {
			Require []struct{ Path, Version string }
		}
		require.NoError(t, json.Unmarshal(output, &module))
		assert.Contains(t, module.Require, struct{ Path, Version string }{component.Module, component.Version})
	}
}
