package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/example-org/subrelay-operator/lab/internal/hostpkg"
	"github.com/example-org/subrelay-operator/lab/internal/progress"
)

// unfinished begins the names of folders in which a build is under way, or was when it died.
const unfinished = ".unfinished-"

// Ensure returns the path of each program of the named components, all components if none is named, by the program's
// name and by its links. It builds what the cache does not hold. Labs that need the same component at the same time
// wait for one build.
func Ensure(ctx context.Context, dirs Dirs, names []string, report progress.Reporter) (map[string]string, error) {
	components, err := selectComponents(Components(), names)
	if err != nil {
		return nil, err
	}
	return ensure(ctx, dirs, components, report)
}

func selectComponents(all []Component, names []string) ([]Component, error) {
	if len(names) == 0 {
		return all, nil
	}
	var chosen []Component
	for _, name := range names {
		i := slices.IndexFunc(all, func(c Component) bool { return c.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no component %q: there are %s", name, strings.Join(componentNames(all), ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

func componentNames(components []Component) []string {
	var names []string
	for _, c := range components {
		names = append(names, c.Name)
	}
	return names
}

func ensure(ctx context.Context, dirs Dirs, components []Component, report progress.Reporter) (map[string]string, error) {
	compiler, err := compilerVersion(ctx)
	if err != nil {
		return nil, err
	}
	paths := map[string]string{}
	for _, component := range components {
		b := builder{Component: component, source: filepath.Join(dirs.Components, component.Name), report: report}
		folder, err := b.ensure(ctx, filepath.Join(dirs.Cache, "components", component.Name), compiler)
		if err != nil {
			return nil, fmt.Errorf("component %s: %w", component.Name, err)
		}
		for _, program := range component.Programs {
			for _, name := range append([]string{program.Name}, program.Links...) {
				paths[name] = filepath.Join(folder, name)
			}
		}
	}
	return paths, nil
}

// compilerVersion tells the Go version and the platform that it compiles for.
func compilerVersion(ctx context.Context) (string, error) {
	output, err := exec.CommandContext(ctx, "go", "env", "GOVERSION", "GOOS", "GOARCH").Output()
	if err != nil {
		return "", fmt.Errorf("ask the go command for its version: %w: install Go and put it into PATH", err)
	}
	return string(output), nil
}

// builder makes one component.
type builder struct {
	Component
	source string
	report progress.Reporter
}

// ensure returns the folder below cache that holds the component's programs as its sources have them now.
func (b builder) ensure(ctx context.Context, cache, compiler string) (string, error) {
	key, err := sourceKey(b.source, append([]string{compiler}, b.recipe()...))
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, strings.TrimPrefix(b.Version+"-"+key, "-"))
	if exists(folder) {
		return folder, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	unlock, err := b.lock(ctx, filepath.Join(cache, ".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if exists(folder) { // another lab built it meanwhile
		return folder, nil
	}
	if err := hostpkg.Ensure(ctx, b.HostPackages, b.report); err != nil {
		return "", err
	}
	done := b.report.Step("building " + b.Title())
	err = b.buildInto(ctx, cache, folder)
	done(err)
	return folder, err
}

func exists(folder string) bool {
	_, err := os.Stat(folder)
	return err == nil
}

// lock waits until this process alone builds the component. The kernel gives the lock back when the process dies.
func (b builder) lock(ctx context.Context, path string) (unlock func(), err error) {
	lock := flock.New(path)
	taken, err := lock.TryLock()
	if err == nil && !taken {
		done := b.report.Step("waiting for another build of " + b.Title())
		_, err = lock.TryLockContext(ctx, 200*time.Millisecond)
		done(err)
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { _ = lock.Unlock() }, nil
}

// buildInto makes all programs in a folder of its own and renames it when they are complete, so that folder never holds
// half of them. The caller holds the component's lock.
func (b builder) buildInto(ctx context.Context, cache, folder string) error {
	if err := removeUnfinished(cache); err != nil {
		return err
	}
	work, err := os.MkdirTemp(cache, unfinished)
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	programs := filepath.Join(work, "programs")
	if err := os.Mkdir(programs, 0o755); err != nil {
		return err
	}
	for _, program := range b.Programs {
		if err := b.compile(ctx, program, programs, work); err != nil {
			return err
		}
		for _, link := range program.Links {
			if err := os.Symlink(program.Name, filepath.Join(programs, link)); err != nil {
				return err
			}
		}
	}
	return os.Rename(programs, folder)
}

// removeUnfinished removes what builds that were killed left behind.
func removeUnfinished(cache string) error {
	entries, err := os.ReadDir(cache)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), unfinished) {
			if err := os.RemoveAll(filepath.Join(cache, entry.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// compile makes one program. The compiler's own temporary files go to work.
func (b builder) compile(ctx context.Context, program Program, output, work string) error {
	arguments := slices.Concat([]string{"build"}, b.flags(), []string{"-o", filepath.Join(output, program.Name), program.Package})
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = b.source
	command.Env = slices.Concat(os.Environ(), b.environment(), []string{"GOTMPDIR=" + work})
	// The compilers that the go command runs are in its process group and are interrupted with it. When this process is
	// killed, the kernel interrupts the go command alone; a compiler then ends with the package it is at.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGINT}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGINT) }
	command.WaitDelay = 10 * time.Second
	// The kernel sends that signal when the thread that started the command ends, so the thread has to stay.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var messages bytes.Buffer
	command.Stdout, command.Stderr = &messages, &messages
	if err := command.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("go %s in %s: %w\n%s", strings.Join(arguments, " "), b.source, err, withoutDownloads(messages.String()))
	}
	return nil
}

// withoutDownloads keeps what the go command says beside the modules that it fetches.
func withoutDownloads(messages string) string {
	lines := slices.DeleteFunc(strings.Split(messages, "\n"), func(line string) bool {
		return strings.HasPrefix(line, "go: downloading ")
	})
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// recipe is all that, beside the sources and the compiler, decides what a build makes.
func (b builder) recipe() []string {
	recipe := slices.Concat(b.flags(), b.environment())
	for _, program := range b.Programs {
		recipe = append(recipe, program.Name, program.Package)
		recipe = append(recipe, program.Links...)
	}
	return recipe
}

func (b builder) flags() []string {
	linker := []string{"-s", "-w"}
	for _, variable := range b.VersionVariables {
		linker = append(linker, "-X", variable+"="+b.Version)
	}
	for _, variable := range b.Variables {
		linker = append(linker, "-X", variable)
	}
	flags := []string{"-trimpath", "-buildvcs=false", "-ldflags", strings.Join(linker, " ")}
	if len(b.Tags) > 0 {
		flags = append(flags, "-tags", strings.Join(b.Tags, ","))
	}
	return flags
}

// environment overrides settings of the user that would change the result.
func (b builder) environment() []string {
	cgo := "CGO_ENABLED=0"
	if b.Cgo {
		cgo = "CGO_ENABLED=1"
	}
	return []string{cgo, "GOFLAGS=-mod=readonly", "GOWORK=off"}
}
