//go:build integration

// Package integration tests the operator as a process of its own against a real API server and the real
// controllers of Kubernetes, with the shipped manifests and the shipped rights. There is no node: a small kubelet of
// the tests' own binds Pods and says that they run.
//
// The test binary runs twice. The first process starts the control plane, installs the operator and runs the second,
// which has the tests; whatever becomes of that one, the first takes everything down again.
package integration

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// kubeconfigVariable names the file with the administrator's access to the control plane. The first process sets
// it for the second.
const kubeconfigVariable = "SUBRELAY_INTEGRATION_KUBECONFIG"

func TestMain(m *testing.M) {
	flag.Parse()
	run := superviseTests
	if kubeconfig := os.Getenv(kubeconfigVariable); kubeconfig != "" {
		run = func() (int, error) { return runTests(m, kubeconfig) }
	}
	code, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "integration:", err)
		code = 1
	}
	os.Exit(code)
}

// superviseTests runs the second process and returns its exit code.
func superviseTests() (code int, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	lab, err := newLab(fmt.Sprintf("it-%d", os.Getpid()))
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, lab.down()) }()
	kubeconfig, err := lab.up(ctx)
	if err != nil {
		return 1, err
	}
	if err := lab.install(ctx); err != nil {
		return 1, err
	}
	// Logs of the operator and other files of the tests.
	files, err := os.MkdirTemp("", "subrelay-integration-")
	if err != nil {
		return 1, fmt.Errorf("make a folder for files of the tests: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(files)) }()
	return runSecond(ctx, kubeconfigVariable+"="+kubeconfig, "TMPDIR="+files)
}

// runSecond runs this program again, in a process group of its own that ends with it.
func runSecond(ctx context.Context, env ...string) (int, error) {
	program, err := os.Executable()
	if err != nil {
		return 1, fmt.Errorf("find the test program: %w", err)
	}
	tests := exec.CommandContext(ctx, program, os.Args[1:]...)
	tests.Env = append(os.Environ(), env...)
	tests.Stdout, tests.Stderr = os.Stdout, os.Stderr
	tests.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endGroup := func() error { return syscall.Kill(-tests.Process.Pid, syscall.SIGKILL) }
	tests.Cancel = endGroup
	if err := tests.Start(); err != nil {
		return 1, fmt.Errorf("start the tests: %w", err)
	}
	err = tests.Wait()
	if groupErr := endGroup(); groupErr != nil && !errors.Is(groupErr, syscall.ESRCH) {
		return 1, fmt.Errorf("end what the tests started: %w", groupErr)
	}
	if exit := (&exec.ExitError{}); err != nil && !errors.As(err, &exit) {
		return 1, fmt.Errorf("run the tests: %w", err)
	}
	if ctx.Err() != nil {
		return 1, errors.New("interrupted")
	}
	return tests.ProcessState.ExitCode(), nil
}

// lab is a control plane of the project's own command.
type lab struct {
	command string
	name    string
}

func newLab(name string) (*lab, error) {
	command, err := program("LAB", "../../bin/lab")
	if err != nil {
		return nil, err
	}
	return &lab{command: command, name: name}, nil
}

// up starts the control plane and returns the path of the administrator's kubeconfig.
func (l *lab) up(ctx context.Context) (kubeconfig string, err error) {
	if _, err := l.run(ctx, "up", "--control-plane-only"); err != nil {
		return "", err
	}
	return l.run(ctx, "kubeconfig")
}

// install does what a user does to install the operator.
func (l *lab) install(ctx context.Context) error {
	for _, args := range [][]string{
		{"apply", "--server-side", "-k", "../../deploy/operator"},
		{"wait", "--for=condition=Established", "--timeout=30s", "crd/subpools.subrelay.example.com"},
	} {
		if _, err := l.run(ctx, "kubectl", append([]string{"--"}, args...)...); err != nil {
			return err
		}
	}
	return nil
}

// down is also right after an interrupt, so it takes no context.
func (l *lab) down() error {
	_, err := l.run(context.Background(), "down")
	return err
}

// run returns the trimmed standard output. Progress goes to standard error.
func (l *lab) run(ctx context.Context, verb string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, l.command, append([]string{verb, "--name", l.name}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stderr = os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return strings.TrimSpace(string(output)), nil
}

// program returns the absolute path of a program that the project builds.
func program(variable, standard string) (string, error) {
	path := os.Getenv(variable)
	if path == "" {
		path = standard
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", standard, err)
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w: run `make test-integration`, which builds it, or set %s to the program", err, variable)
	}
	return path, nil
}
