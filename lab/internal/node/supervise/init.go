package supervise

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/example-org/subrelay-operator/lab/internal/node/cgroup"
	"github.com/example-org/subrelay-operator/lab/internal/node/state"
)

// runInit is the first process of a full lab's PID namespace. It puts everything that follows into
// the lab's cgroup, starts the supervisor proper as its child and clears away the orphans that
// container shims leave, which the supervisor, waiting for its own children, could not do.
// When it ends, for whatever reason, the kernel kills every other process of the lab.
func runInit(folder state.Folder, files []*os.File) error {
	self, err := state.Self()
	if err != nil {
		return err
	}
	if err := folder.WriteProcess(self); err != nil {
		return err
	}
	tree, err := cgroup.ForLab(folder.ID())
	if err != nil {
		return err
	}
	if err := tree.Join(); err != nil {
		return err
	}

	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	supervisor := exec.Command("/proc/self/exe", os.Args[1:]...)
	supervisor.Stdout, supervisor.Stderr = os.Stdout, os.Stderr
	supervisor.ExtraFiles = files
	if err := supervisor.Start(); err != nil {
		return fmt.Errorf("start the supervisor: %w", err)
	}
	go func() {
		for range signals {
			// It may have ended meanwhile, which reap notices.
			_ = supervisor.Process.Signal(syscall.SIGTERM)
		}
	}()
	return reap(supervisor.Process.Pid)
}

// reap collects ended children until the supervisor is one of them.
func reap(supervisor int) error {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("wait for the supervisor: %w", err)
		case pid != supervisor:
			continue
		case status.Signaled():
			return fmt.Errorf("the supervisor was ended by signal %d (%s)", status.Signal(), status.Signal())
		case status.ExitStatus() != 0:
			return fmt.Errorf("the supervisor ended with exit status %d", status.ExitStatus())
		}
		return nil
	}
}
