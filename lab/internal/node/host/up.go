// Package host is what the lab's commands do on the host: start a lab's supervisor, ask it, and
// clear everything away.
package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"

	"github.com/example-org/subrelay-operator/lab/internal/image"
	"github.com/example-org/subrelay-operator/lab/internal/node/cgroup"
	"github.com/example-org/subrelay-operator/lab/internal/node/controlplane"
	"github.com/example-org/subrelay-operator/lab/internal/node/sandbox"
	"github.com/example-org/subrelay-operator/lab/internal/node/state"
	"github.com/example-org/subrelay-operator/lab/internal/progress"
)

// SuperviseVerb is the hidden command that the supervisor runs as.
const SuperviseVerb = "supervise"

// Up starts a lab and returns when it is ready. It reports whether the lab was ready already.
//
// When it fails the lab is left as it is, for a person to look at. When ctx ends it is taken down.
func Up(ctx context.Context, folder state.Folder, mode state.Mode, report progress.Reporter) (already bool, err error) {
	running, err := folder.Running()
	if err != nil {
		return false, err
	}
	if running {
		return attach(ctx, folder, mode, report)
	}
	record, err := provide(ctx, folder, mode, report)
	if ctx.Err() != nil {
		return false, errors.New("interrupted: nothing was started")
	}
	if err != nil {
		return false, err
	}
	lock, err := folder.Lock()
	if errors.Is(err, state.ErrLocked) {
		return false, fmt.Errorf("another command started lab %s meanwhile: run `lab up --name %s` again to wait for it",
			folder.Name(), folder.Name())
	}
	if err != nil {
		return false, err
	}
	err = launch(ctx, folder, record, lock, report)
	// The supervisor has the lock from now on, and nobody when it was not started.
	_ = lock.Close()
	if err == nil {
		err = awaitReady(ctx, folder, report)
	}
	if ctx.Err() != nil {
		down := Down(context.WithoutCancel(ctx), folder, report)
		return false, errors.Join(errors.New("interrupted: the lab is taken down again"), down)
	}
	return false, err
}

// attach waits for a lab that another command started.
func attach(ctx context.Context, folder state.Folder, mode state.Mode, report progress.Reporter) (already bool, err error) {
	record, err := folder.ReadRecord()
	if err != nil {
		return false, fmt.Errorf("another command is starting or stopping this lab: try again in a moment: %w", err)
	}
	if record.Mode != mode {
		return false, fmt.Errorf("lab %s runs as %q, not as %q: run `lab down --name %s` first, or choose another name",
			folder.Name(), record.Mode, mode, folder.Name())
	}
	if status, err := newClient(folder).Status(ctx); err == nil && status.Ready {
		return true, nil
	}
	return false, awaitReady(ctx, folder, report)
}

// launch makes an empty folder ready and starts the supervisor in it. The caller holds the lock.
func launch(ctx context.Context, folder state.Folder, record state.Record, lock *os.File, report progress.Reporter) error {
	// A lab of this name that died has left its cgroups and its files.
	if err := removeCgroups(ctx, folder); err != nil {
		return err
	}
	if err := folder.Clear(); err != nil {
		return err
	}
	if err := os.Mkdir(folder.Logs(), 0o700); err != nil {
		return fmt.Errorf("make the folder of logs: %w", err)
	}
	if record.Mode == state.ControlPlaneOnly {
		return launchControlPlane(folder, record, lock)
	}
	if err := os.Mkdir(folder.Images(), 0o700); err != nil {
		return fmt.Errorf("make the folder of images: %w", err)
	}
	if _, err := image.WriteLabImages(ctx, folder.Images(), record.Binaries, report); err != nil {
		return err
	}
	return launchNode(folder, record, lock)
}

// launchControlPlane starts a supervisor that is an ordinary process of the host.
func launchControlPlane(folder state.Folder, record state.Record, lock *os.File) error {
	port, err := controlplane.FreePort()
	if err != nil {
		return err
	}
	record.Port = port
	if err := folder.WriteRecord(record); err != nil {
		return err
	}
	return startSupervisor(folder, 0, lock)
}

// launchNode starts a supervisor in namespaces of its own. The listener on the host's loopback is
// opened here, in the host's network, and works in the supervisor all the same.
func launchNode(folder state.Folder, record state.Record, lock *os.File) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the API server: %w", err)
	}
	defer func() { _ = listener.Close() }()
	record.Port = listener.Addr().(*net.TCPAddr).Port
	if err := folder.WriteRecord(record); err != nil {
		return err
	}
	file, err := listener.(*net.TCPListener).File()
	if err != nil {
		return fmt.Errorf("hand over the listener for the API server: %w", err)
	}
	defer func() { _ = file.Close() }()
	return startSupervisor(folder, sandbox.Namespaces, lock, file)
}

// startSupervisor starts this program again, detached from the terminal.
func startSupervisor(folder state.Folder, namespaces uintptr, files ...*os.File) error {
	output, err := os.OpenFile(folder.Log("supervisor"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the supervisor's log: %w", err)
	}
	defer func() { _ = output.Close() }()
	supervisor := exec.Command("/proc/self/exe", SuperviseVerb, folder.Name(), folder.Path())
	supervisor.Dir = "/"
	supervisor.Stdout, supervisor.Stderr = output, output
	supervisor.ExtraFiles = files
	supervisor.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: namespaces}
	if err := supervisor.Start(); err != nil {
		return fmt.Errorf("start the lab's supervisor: %w", err)
	}
	return supervisor.Process.Release()
}

func removeCgroups(ctx context.Context, folder state.Folder) error {
	tree, err := cgroup.ForLab(folder.ID())
	if err != nil {
		return err
	}
	if !tree.Exists() {
		return nil
	}
	return tree.Remove(ctx, endPatience)
}
