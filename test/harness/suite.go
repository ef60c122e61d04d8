// Package harness is what tests on a cluster share: a lab of their own that is taken down whatever becomes of the
// tests, and the API server's record of who asked for what.
package harness

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
)

// labVariable names the lab that tests run on. The first process of a suite sets it for the second. A person may set it
// to a lab that runs already, with everything that Suite.Start installs, and that is to stay.
const labVariable = "SUBRELAY_TEST_LAB"

// Suite is a test program that runs twice. The first process starts a lab and runs the second, which has the tests;
// whatever becomes of that one, a panic or a time limit, the first takes the lab down again.
type Suite struct {
	// Name is the beginning of the lab's name.
	Name string
	// Parallel is how many tests may run side by side unless -parallel says otherwise. Tests on a cluster wait far more
	// than they compute, so the number of processors, which Go takes if this is 0, is no measure.
	Parallel int
	// Start brings the lab up with everything that the tests need. It is called in the first process.
	Start func(context.Context, *Lab) error
	// Run runs the tests and returns their exit code. It is called in the second process.
	Run func(*Lab) (int, error)
}

// Main reads the flags and returns the exit code of the program. It says on standard error what kept the tests from
// running.
func (s Suite) Main() int {
	flag.Parse()
	code, err := s.main()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", s.Name, err)
		return 1
	}
	return code
}

func (s Suite) main() (code int, err error) {
	if name := os.Getenv(labVariable); name != "" {
		return s.runTests(name)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	lab, err := NewLab(fmt.Sprintf("%s-%d", s.Name, os.Getpid()))
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, lab.Down()) }()
	if err := s.Start(ctx, lab); err != nil {
		return 1, err
	}
	return runSecond(ctx, lab)
}

// runTests is the second process.
func (s Suite) runTests(labName string) (int, error) {
	lab, err := NewLab(labName)
	if err != nil {
		return 1, err
	}
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given && s.Parallel > 0 {
		if err := flag.Set("test.parallel", strconv.Itoa(s.Parallel)); err != nil {
			return 1, fmt.Errorf("let tests run side by side: %w", err)
		}
	}
	return s.Run(lab)
}

// runSecond runs this program again, in a process group of its own that ends with it. What it leaves in its folder for
// temporary files is removed.
func runSecond(ctx context.Context, lab *Lab) (code int, err error) {
	program, err := os.Executable()
	if err != nil {
		return 1, fmt.Errorf("find the test program: %w", err)
	}
	files, err := os.MkdirTemp("", "subrelay-test-")
	if err != nil {
		return 1, fmt.Errorf("make a folder for files of the tests: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(files)) }()
	tests := exec.CommandContext(ctx, program, os.Args[1:]...)
	tests.Env = append(os.Environ(), labVariable+"="+lab.name, "TMPDIR="+files)
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
	if ctx.Err() != nil {
		return 1, errors.New("interrupted")
	}
	if exit := (&exec.ExitError{}); err != nil && !errors.As(err, &exit) {
		return 1, fmt.Errorf("run the tests: %w", err)
	}
	return tests.ProcessState.ExitCode(), nil
}
