// Package process lets a test start the program under test as a process of its
// own, so that exit codes, signals and standard output can be checked.
package process

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// switchVariable makes a test binary behave as the program.
const switchVariable = "STANDIN_RUN_MAIN"

// endTimeout is how long Wait gives a process to end by itself.
const endTimeout = 20 * time.Second

// Main is the body of TestMain: it runs the tests, or the program in a process
// made by StartSelf.
func Main(m *testing.M, program func()) {
	if os.Getenv(switchVariable) != "" {
		program()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Process is a running program.
type Process struct {
	t       *testing.T
	command *exec.Cmd
	output  *lockedBuffer
	ended   chan struct{}
	err     error // of Wait, valid once ended is closed
}

// StartSelf runs the program of Main; see Start.
func StartSelf(t *testing.T, folder string, environment []string, arguments ...string) *Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Start(t, self, folder, append([]string{switchVariable + "=1"}, environment...), arguments...)
}

// Start runs a binary in the folder with only the given environment
// (KEY=value). It is killed at the end of the test at the latest.
func Start(t *testing.T, binary, folder string, environment []string, arguments ...string) *Process {
	t.Helper()
	p := &Process{t: t, command: exec.Command(binary, arguments...), output: &lockedBuffer{}, ended: make(chan struct{})}
	p.command.Dir = folder
	p.command.Env = environment
	p.command.Stdout, p.command.Stderr = p.output, p.output
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.command.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.command.Process.Kill() // an error means that it has ended
		<-p.ended
	})
	return p
}

// Wait waits for the end of the process and returns its exit code.
func (p *Process) Wait() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(endTimeout):
		p.t.Fatalf("the process did not end within %s; output:\n%s", endTimeout, p.Output())
	}
	if failed := (*exec.ExitError)(nil); p.err != nil && !errors.As(p.err, &failed) {
		p.t.Fatal(p.err)
	}
	return p.command.ProcessState.ExitCode()
}

// Signal sends a signal to the process.
func (p *Process) Signal(signal syscall.Signal) {
	p.t.Helper()
	if err := p.command.Process.Signal(signal); err != nil {
		p.t.Fatal(err)
	}
}

// Output returns what the process has printed so far.
func (p *Process) Output() string { return p.output.String() }

// FreePort returns a port of 127.0.0.1 that nobody listens on.
func FreePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}

type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}
