package supervise

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/example-org/subrelay-operator/lab/internal/node/control"
	"github.com/example-org/subrelay-operator/lab/internal/node/controlplane"
	"github.com/example-org/subrelay-operator/lab/internal/node/gateway"
	"github.com/example-org/subrelay-operator/lab/internal/node/process"
	"github.com/example-org/subrelay-operator/lab/internal/node/state"
)

// StartGateway implements control.Supervisor.
func (s *supervisor) StartGateway(_ context.Context, program string) error {
	controller, err := s.gateway(program)
	if err != nil {
		return err
	}
	s.removeGateway()
	s.components.Start(controller)
	return nil
}

// StopGateway implements control.Supervisor.
func (s *supervisor) StopGateway(context.Context) { s.removeGateway() }

func (s *supervisor) removeGateway() {
	ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
	defer cancel()
	s.components.Remove(ctx, gateway.Component)
}

// gatewayController runs the controller in the node's own network, where Pods reach it.
func (n *node) gatewayController(folder state.Folder, program string) (process.Spec, error) {
	inside, err := insidePath(n.cache, program)
	if err != nil {
		return process.Spec{}, err
	}
	files := gateway.Folder(folder.Gateway())
	// The root file system is the lab's own.
	for place, source := range files.Places() {
		if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
			return process.Spec{}, fmt.Errorf("show Envoy Gateway its files: %w", err)
		}
		if err := os.Symlink(source, place); err != nil && !errors.Is(err, fs.ErrExist) {
			return process.Spec{}, fmt.Errorf("show Envoy Gateway its files: %w", err)
		}
	}
	return gateway.Controller(inside, files, controlplane.NodePort), nil
}

// openCells offers the API server on the socket that cells dial, and returns how to run the controller in one: it opens
// ports and reads a folder that cannot be chosen, so that without a node it gets a network and a file system of its own.
func openCells(ctx context.Context, folder state.Folder, apiPort int) (func(program string) (process.Spec, error), error) {
	listener, err := control.Listen(folder.APISocket())
	if err != nil {
		return nil, err
	}
	go forward(ctx, listener, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(apiPort)))
	return func(program string) (process.Spec, error) {
		const programInside, filesInside = "/program", "/gateway"
		shown := gateway.Folder(folder.Gateway()).Places()
		shown[programInside] = program
		shown[filesInside] = folder.Gateway()
		return cell{
			Root:      folder.Path("cell"),
			Shown:     shown,
			APISocket: folder.APISocket(),
			APIPort:   apiPort,
		}.confine(gateway.Controller(programInside, filesInside, apiPort))
	}, nil
}
