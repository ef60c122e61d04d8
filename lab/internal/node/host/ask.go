package host

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/example-org/subrelay-operator/lab/internal/image"
	"github.com/example-org/subrelay-operator/lab/internal/node/control"
	"github.com/example-org/subrelay-operator/lab/internal/node/state"
)

// ErrDown says that no lab of the name runs.
var ErrDown = errors.New("the lab is not running")

// Status asks a lab how it is. The error is ErrDown, or wraps it, when none runs.
func Status(ctx context.Context, folder state.Folder) (state.Record, control.Status, error) {
	if err := mustRun(folder); err != nil {
		return state.Record{}, control.Status{}, err
	}
	record, err := folder.ReadRecord()
	if err != nil {
		return state.Record{}, control.Status{}, err
	}
	status, err := newClient(folder).Status(ctx)
	if err != nil {
		return state.Record{}, control.Status{}, fmt.Errorf("lab %s is starting or stopping, try again in a moment: %w", folder.Name(), err)
	}
	return record, status, nil
}

// Load imports an image archive into a lab's node and returns the names of its images.
func Load(ctx context.Context, folder state.Folder, path string) ([]string, error) {
	if err := mustRun(folder); err != nil {
		return nil, err
	}
	record, err := folder.ReadRecord()
	if err != nil {
		return nil, err
	}
	if record.Mode != state.FullNode {
		return nil, fmt.Errorf("lab %s has no node to load images into: it was started with --control-plane-only", folder.Name())
	}
	names, err := image.Names(path)
	if err != nil {
		return nil, err
	}
	archive, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the image archive: %w", err)
	}
	defer func() { _ = archive.Close() }()
	if err := newClient(folder).LoadImages(ctx, archive); err != nil {
		return nil, fmt.Errorf("load %s: %w", path, err)
	}
	return names, nil
}

// Restart ends a component of a lab; it starts again at once.
func Restart(ctx context.Context, folder state.Folder, component string) error {
	if err := mustRun(folder); err != nil {
		return err
	}
	return newClient(folder).Restart(ctx, component)
}

func mustRun(folder state.Folder) error {
	running, err := folder.Running()
	if err != nil {
		return err
	}
	if !running {
		return fmt.Errorf("%w: start it with `lab up --name %s`", ErrDown, folder.Name())
	}
	return nil
}
