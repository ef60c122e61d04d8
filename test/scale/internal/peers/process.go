package peers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// stopPatience is how long a process may take to end when it is asked to.
	stopPatience = 15 * time.Second

	// logTailLength is how much of a log is shown after a failure, in lines.
	logTailLength = 20
)

// process is a program that runs until it is stopped, and writes a log.
type process struct {
	cmd *exec.Cmd
	log string
	// exited is closed when the process has ended; exit is its result then.
	exited chan struct{}
	exit   error
}

func startProcess(program, log string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(program, args...), log: log, exited: make(chan struct{})}
	file, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("open a log: %w", err)
	}
	p.cmd.Stdout, p.cmd.Stderr = file, file
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", filepath.Base(program), err), file.Close())
	}
	go func() {
		p.exit = errors.Join(p.cmd.Wait(), file.Close())
		close(p.exited)
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) name() string { return filepath.Base(p.cmd.Path) }

// ended returns an error if the process has ended by itself.
func (p *process) ended() error {
	select {
	case <-p.exited:
		return errors.Join(fmt.Errorf("%s has ended", p.name()), p.exit)
	default:
		return nil
	}
}

// stop ends the process, by force if it does not listen. A process that has ended already is no error.
func (p *process) stop() error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.exited:
		return nil
	case <-time.After(stopPatience):
	}
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.exited
	return fmt.Errorf("%s did not end within %s of SIGTERM and was killed", p.name(), stopPatience)
}

func (p *process) signal(signal syscall.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s: %w", p.name(), err)
	}
	return nil
}

// logTail is the end of the log, for a person.
func (p *process) logTail() string {
	content, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.SplitAfter(string(content), "\n")
	return fmt.Sprintf("end of the log of %s:\n%s", p.name(), strings.Join(lines[max(0, len(lines)-logTailLength):], ""))
}
