// Package supervise is the inside of a lab: it brings the cluster up, keeps its components running
// and answers the commands on the host, until it is told to stop.
package supervise

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"time"

	"github.com/example-org/subrelay-operator/lab/internal/node/control"
	"github.com/example-org/subrelay-operator/lab/internal/node/controlplane"
	"github.com/example-org/subrelay-operator/lab/internal/node/poll"
	"github.com/example-org/subrelay-operator/lab/internal/node/process"
	"github.com/example-org/subrelay-operator/lab/internal/node/state"
	"github.com/example-org/subrelay-operator/lab/internal/node/worker"
)

const (
	// Descriptors that `lab up` hands to the supervisor: the lock on the state folder and, for a
	// full node, the listener on the host's loopback.
	lockFD     = 3
	listenerFD = 4

	// How long components may take to end by themselves. Their data is thrown away, so that is
	// for their sake alone.
	stopPatience = time.Second
	// How long one part of the cluster may take to work, on a slow and busy machine.
	startPatience = 2 * time.Minute
)

// Run supervises the lab whose state folder is at path, until ctx ends.
func Run(ctx context.Context, name, path string) error {
	folder := state.At(name, path)
	record, err := folder.ReadRecord()
	if err != nil {
		return err
	}
	lock := os.NewFile(lockFD, "lock")
	if record.Mode == state.ControlPlaneOnly {
		return runControlPlane(ctx, folder, record, lock)
	}
	listener := os.NewFile(listenerFD, "listener")
	if os.Getpid() == 1 {
		return runInit(folder, []*os.File{lock, listener})
	}
	// This process keeps the lock until it ends, and then the kernel ends all others.
	defer func() { _ = lock.Close() }()
	return runNode(ctx, folder, record, listener)
}

// supervisor answers the commands on the host.
type supervisor struct {
	steps      steps
	components *process.Group
	api        *api
	// node is nil in a lab without a node.
	node *node
	// gateway says how to run the Envoy Gateway controller whose program is at a path on the host.
	gateway func(program string) (process.Spec, error)
}

// serve brings the lab up and answers commands until ctx ends, then stops the components. What
// fails on the way up is kept for the commands to tell; the rest keeps running for a person to look at.
func (s *supervisor) serve(ctx context.Context, folder state.Folder, bringUp func(context.Context) error) error {
	answering := make(chan error, 1)
	go func() { answering <- control.Serve(ctx, folder.Socket(), s) }()
	go func() {
		err := bringUp(ctx)
		if err != nil && ctx.Err() == nil {
			log.Printf("bring the lab up: %v", err)
		}
		s.steps.finish(err)
	}()
	err := <-answering

	stopping, cancel := context.WithTimeout(context.Background(), stopPatience)
	defer cancel()
	s.components.Stop(stopping)
	return err
}

// Status implements control.Supervisor.
func (s *supervisor) Status(ctx context.Context) control.Status {
	status := control.Status{Components: s.components.Status()}
	s.steps.describe(&status)
	if s.node != nil {
		status.Node = s.api.node(ctx, worker.NodeName)
	}
	return status
}

// Restart implements control.Supervisor.
func (s *supervisor) Restart(component string) error { return s.components.Restart(component) }

// LoadImages implements control.Supervisor.
func (s *supervisor) LoadImages(ctx context.Context, archive io.Reader) error {
	if s.node == nil {
		return fmt.Errorf("this lab has no node to load images into: it was started with --control-plane-only")
	}
	return s.node.importImages(ctx, archive)
}

// startControlPlane starts etcd, the API server and the controller manager and awaits that they work.
func (s *supervisor) startControlPlane(ctx context.Context, plane controlplane.Config) error {
	s.components.Start(plane.Etcd())
	s.components.Start(plane.APIServer())
	if err := poll.Until(ctx, startPatience, s.api.probe("/readyz")); err != nil {
		return fmt.Errorf("%w; see `lab logs kube-apiserver` and `lab logs etcd`", err)
	}
	s.components.Start(plane.ControllerManager())
	// One of the controller manager's many controllers makes this object, so it is at work.
	if err := poll.Until(ctx, startPatience, s.api.probe("/api/v1/namespaces/default/serviceaccounts/default")); err != nil {
		return fmt.Errorf("%w; see `lab logs kube-controller-manager`", err)
	}
	return nil
}

// runControlPlane supervises a lab without a node, as an ordinary process of the host.
func runControlPlane(ctx context.Context, folder state.Folder, record state.Record, lock *os.File) error {
	self, err := state.Self()
	if err != nil {
		return err
	}
	if err := folder.WriteProcess(self); err != nil {
		return err
	}
	etcdPort, err := controlplane.FreePort()
	if err != nil {
		return err
	}
	plane := controlplane.Config{
		Folder:           folder.Path("control-plane"),
		Data:             folder.Path("etcd"),
		AuditLog:         folder.AuditLog(),
		Binary:           func(name string) string { return record.Binaries[name] },
		BindAddress:      "127.0.0.1",
		AdvertiseAddress: "127.0.0.1",
		Port:             record.Port,
		EtcdPort:         etcdPort,
		HostKubeconfig:   folder.Kubeconfig(),
		HostPort:         record.Port,
	}
	if err := plane.Prepare(nil); err != nil {
		return err
	}
	// The components inherit the lock, so that the lab counts as running until the last has ended.
	s := &supervisor{components: process.NewGroup(folder.Logs(), environment(folder.Path()), lock)}
	if s.api, err = newAPI(plane); err != nil {
		return err
	}
	if s.gateway, err = openCells(ctx, folder, record.Port); err != nil {
		return err
	}
	return s.serve(ctx, folder, func(ctx context.Context) error {
		return s.steps.run("control plane", func() error { return s.startControlPlane(ctx, plane) })
	})
}

// environment is what the components get to see: nothing of the user who started the lab.
func environment(home string) []string {
	return []string{"PATH=" + process.SystemPath, "HOME=" + home}
}

// listenerOf turns an inherited descriptor into the listener that it is.
func listenerOf(file *os.File) (net.Listener, error) {
	listener, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("take over the listener for the API server: %w", err)
	}
	return listener, file.Close()
}
