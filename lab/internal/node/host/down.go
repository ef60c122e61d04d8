package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/example-org/subrelay-operator/lab/internal/node/poll"
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
func Down(ctx context.Context, folder state.Folder, report progress.Reporter) (err error) {
	done := report.Step("taking lab " + folder.Name() + " down")
	defer func() { done(err) }()
	if err := stop(ctx, folder); err != nil {
		return err
	}
	if err := removeCgroups(ctx, folder); err != nil {
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
func stop(ctx context.Context, folder state.Folder) error {
	running, err := folder.Running()
	if err != nil || !running {
		return err
	}
	supervisor, err := awaitIntroduction(ctx, folder)
	if err != nil {
		return err
	}
	if err := supervisor.Signal(unix.SIGTERM); err != nil {
		return err
	}
	ended := func(context.Context) error { return checkEnded(folder, supervisor) }
	if err := poll.Until(ctx, stopPatience, ended); err == nil || ctx.Err() != nil {
		return err
	}
	if err := supervisor.Signal(unix.SIGKILL); err != nil {
		return err
	}
	if err := poll.Until(ctx, endPatience, ended); err != nil {
		return fmt.Errorf("end lab %s: %w: end what holds its folder open (`fuser -v %s` names it) and run `lab down` again",
			folder.Name(), err, folder.Path())
	}
	return nil
}

// awaitIntroduction returns the supervisor's process, which writes it down as its first act.
func awaitIntroduction(ctx context.Context, folder state.Folder) (state.Process, error) {
	var supervisor state.Process
	err := poll.Until(ctx, introductionPatience, func(context.Context) error {
		var err error
		supervisor, err = folder.ReadProcess()
		return err
	})
	if err != nil {
		return supervisor, fmt.Errorf("another command is starting lab %s: interrupt that one, or wait for it: %w", folder.Name(), err)
	}
	return supervisor, nil
}

// checkEnded fails while the supervisor, or anything else that holds the lab's lock, is alive.
func checkEnded(folder state.Folder, supervisor state.Process) error {
	running, err := folder.Running()
	if err != nil {
		return err
	}
	if running || supervisor.Alive() {
		return fmt.Errorf("its supervisor, process %d, or a child of it still runs", supervisor.PID)
	}
	return nil
}
