package host

import (
	"context"
	"fmt"
	"os"

	"github.com/example-org/subrelay-operator/lab/internal/build"
	"github.com/example-org/subrelay-operator/lab/internal/node/control"
	"github.com/example-org/subrelay-operator/lab/internal/node/controlplane"
	"github.com/example-org/subrelay-operator/lab/internal/node/gateway"
	"github.com/example-org/subrelay-operator/lab/internal/node/kubectl"
	"github.com/example-org/subrelay-operator/lab/internal/node/sandbox"
	"github.com/example-org/subrelay-operator/lab/internal/node/state"
	"github.com/example-org/subrelay-operator/lab/internal/progress"
)

// Gateway is Envoy Gateway for one running lab.
type Gateway struct {
	folder   state.Folder
	record   state.Record
	programs map[string]string
	report   progress.Reporter
}

// OpenGateway builds Envoy Gateway if the cache does not hold it.
func OpenGateway(ctx context.Context, folder state.Folder, report progress.Reporter) (*Gateway, error) {
	if err := mustRun(folder); err != nil {
		return nil, err
	}
	record, err := folder.ReadRecord()
	if err != nil {
		return nil, err
	}
	programs, err := gatewayPrograms(ctx, report)
	if err != nil {
		return nil, err
	}
	return &Gateway{folder: folder, record: record, programs: programs, report: report}, nil
}

// GatewayDefinitions returns the definitions of all kinds that Envoy Gateway works with, as YAML. It needs no running lab.
func GatewayDefinitions(ctx context.Context, report progress.Reporter) ([]byte, error) {
	programs, err := gatewayPrograms(ctx, report)
	if err != nil {
		return nil, err
	}
	return gateway.Definitions(ctx, programs["gateway-crds"])
}

func gatewayPrograms(ctx context.Context, report progress.Reporter) (map[string]string, error) {
	dirs, err := build.FindDirs()
	if err != nil {
		return nil, err
	}
	return build.Ensure(ctx, dirs, []string{gateway.Component}, report)
}

// Up starts the controller, in a layout, and returns when it judges objects. One that runs in that layout is left as it is.
func (g *Gateway) Up(ctx context.Context, layout gateway.Layout) error {
	if err := g.InstallDefinitions(ctx); err != nil {
		return err
	}
	return g.step("Envoy Gateway", func() error {
		controls, err := g.controls(layout)
		if err != nil {
			return err
		}
		already, err := controls.Prepare(ctx)
		if err != nil {
			return err
		}
		status, err := newClient(g.folder).Status(ctx)
		if err != nil {
			return err
		}
		if !already || !runs(status, gateway.Component) {
			if err := g.start(ctx, controls); err != nil {
				return err
			}
		}
		if err := controls.AwaitWork(ctx); err != nil {
			return fmt.Errorf("the controller does not work: %w; see `lab logs --name %s %s`", err, g.folder.Name(), gateway.Component)
		}
		return nil
	})
}

func (g *Gateway) start(ctx context.Context, controls gateway.Controls) error {
	client := newClient(g.folder)
	if err := client.StopGateway(ctx); err != nil {
		return err
	}
	if err := controls.RemoveDataPlanes(ctx); err != nil {
		return err
	}
	return client.StartGateway(ctx, g.programs["envoy-gateway"])
}

// Down ends the controller and removes its namespace and every data plane. Definitions stay, and objects of their kinds.
func (g *Gateway) Down(ctx context.Context) error {
	return g.step("removing Envoy Gateway", func() error {
		controls, err := g.controls(gateway.ControllerNamespace)
		if err != nil {
			return err
		}
		if err := newClient(g.folder).StopGateway(ctx); err != nil {
			return err
		}
		if err := controls.RemoveDataPlanes(ctx); err != nil {
			return err
		}
		return controls.Remove(ctx)
	})
}

// InstallDefinitions brings the definitions of all kinds to the cluster.
func (g *Gateway) InstallDefinitions(ctx context.Context) error {
	return g.step("Gateway API", func() error {
		definitions, err := gateway.Definitions(ctx, g.programs["gateway-crds"])
		if err != nil {
			return err
		}
		return gateway.InstallDefinitions(ctx, g.cluster(), definitions)
	})
}

// RemoveDefinitions removes the definitions and every object of their kinds.
func (g *Gateway) RemoveDefinitions(ctx context.Context) error {
	return g.step("removing the Gateway API", func() error {
		definitions, err := gateway.Definitions(ctx, g.programs["gateway-crds"])
		if err != nil {
			return err
		}
		return gateway.RemoveDefinitions(ctx, g.cluster(), definitions)
	})
}

func (g *Gateway) controls(layout gateway.Layout) (gateway.Controls, error) {
	plane := controlplane.Config{Folder: g.folder.Path("control-plane")}
	authority, err := os.ReadFile(plane.File("ca.crt"))
	if err != nil {
		return gateway.Controls{}, fmt.Errorf("read the cluster's authority: %w", err)
	}
	controls := gateway.Controls{
		Cluster:   g.cluster(),
		Program:   g.programs["envoy-gateway"],
		Files:     gateway.Folder(g.folder.Gateway()),
		Layout:    layout,
		Authority: authority,
	}
	if g.record.Mode == state.FullNode {
		controls.Address = sandbox.NodeIP
	}
	return controls, nil
}

func (g *Gateway) cluster() kubectl.Client {
	return kubectl.Client{
		Program: g.record.Binaries["kubectl"], Kubeconfig: g.folder.Kubeconfig(), Cache: g.folder.KubectlCache(),
	}
}

func (g *Gateway) step(name string, work func() error) error {
	done := g.report.Step(name)
	err := work()
	done(err)
	return err
}

func runs(status control.Status, component string) bool {
	for _, c := range status.Components {
		if c.Name == component {
			return true
		}
	}
	return false
}
