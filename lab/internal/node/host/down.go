package host

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"github.com/example-org/subrelay-operator/lab/internal/node/state"
	"github.com/example-org/subrelay-operator/lab/internal/progress"
)

const (
	// How long the supervisor may take to stop its components before it is killed with them.
	stopPatience = 5 * time.Second
	// How long the kernel may take to end killed processes.
	endPatience = 20 * time.Second
	// How long a supervisor that was just started may take to say which process it is.
	introductionPatience = 5 * time.Second
)

// Down ends a lab and removes everything that it left. A lab that does not exist is no error, and
// neither is one that was killed or broke off at any point.
func Down(folder state.Folder, report progress.Reporter) (err error) {
	done := report.Step("taking lab " + folder.Name() + " down")
	defer func() { done(err) }()
	if err := stop(folder); err != nil {
		return err
	}
	if err := removeCgroups(folder); err != nil {
		return err
	}
	if !folder.Exists() {
		return nil
	}
	lock, err := folder.Lock()
	if errors.Is(err, state.ErrLocked) {
		return fmt.Errorf("lab %s was started again meanwhile: run `lab down` again", folder.Name())
	}
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	return folder.Remove()
}

// stop ends the supervisor, and with it all processes of the lab.
func stop(folder state.Folder) error {
	running, err := folder.Running()
	if err != nil || !running {
		return err
	}
	supervisor, err := awaitIntroduction(folder)
	if err != nil {
		return err
	}
	for _, attempt := range []struct {
		signal   unix.Signal
		patience time.Duration
	}{{unix.SIGTERM, stopPatience}, {unix.SIGKILL, endPatience}} {
		if err := supervisor.Signal(attempt.signal); err != nil {
			return err
		}
		ended, err := awaitEnd(folder, supervisor, attempt.patience)
		if err != nil || ended {
			return err
		}
	}
	return fmt.Errorf("lab %s still runs %s after its supervisor, process %d, was killed: end what holds %s open "+
		"(`fuser -v %s` names it) and run `lab down` again", folder.Name(), endPatience, supervisor.PID, folder.Path(), folder.Path())
}

// awaitIntroduction returns the supervisor's process, which writes it down as its first act.
func awaitIntroduction(folder state.Folder) (state.Process, error) {
	deadline := time.Now().Add(introductionPatience)
	for {
		supervisor, err := folder.ReadProcess()
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return supervisor, err
		}
		if time.Now().After(deadline) {
			return state.Process{}, fmt.Errorf("lab %s is being started by another command: interrupt that one, or wait for it",
				folder.Name())
		}
		time.Sleep(pollInterval)
	}
}

// awaitEnd reports whether the supervisor and everything that holds the lab's lock ended within patience.
func awaitEnd(folder state.Folder, supervisor state.Process, patience time.Duration) (bool, error) {
	deadline := time.Now().Add(patience)
	for {
		running, err := folder.Running()
		if err != nil {
			return false, err
		}
		if !running && !supervisor.Alive() {
			return true, nil
		}
		if time.Now().After(deadline) {
			return false, nil
		}
		time.Sleep(pollInterval)
	}
}
