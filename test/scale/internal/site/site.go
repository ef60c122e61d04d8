// Package site is where things are measured: a control plane of its own for each, which is taken down again.
package site

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/example-org/subrelay-operator/test/harness"
)

// tuning are the variables that change how a program in Go uses its machine.
var tuning = []string{"GOGC", "GOMEMLIMIT", "GOMAXPROCS"}

// CheckEnvironment complains about variables that would change what is measured.
func CheckEnvironment() error {
	var errs []error
	for _, name := range tuning {
		if _, set := os.LookupEnv(name); set {
			errs = append(errs, fmt.Errorf("unset %s: the operator would inherit it, and the shipped Deployment has none", name))
		}
	}
	return errors.Join(errs...)
}

// WithFiles runs a program that leaves its temporary files in a folder of their own, and removes that.
func WithFiles(run func() error) (err error) {
	files, err := os.MkdirTemp("", "scale-")
	if err != nil {
		return fmt.Errorf("make a folder for what the measured processes leave: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(files)) }()
	if err := os.Setenv("TMPDIR", files); err != nil {
		return err
	}
	return run()
}

// Site is a control plane without a node, with everything that is installed before the operator's Deployment, and what pools
// share.
type Site struct {
	*harness.Cluster
	lab *harness.Lab
}

// Open starts a site. The name must differ from those of other labs on this machine.
func Open(ctx context.Context, name string) (_ *Site, err error) {
	lab, err := harness.NewLab(name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, lab.Down())
		}
	}()
	if err := lab.StartControlPlane(ctx); err != nil {
		return nil, err
	}
	cluster, err := lab.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(cluster.InstallGatewayAPI(ctx, harness.GatewayAPIPlurals...), cluster.CreateShared(ctx)); err != nil {
		return nil, err
	}
	return &Site{Cluster: cluster, lab: lab}, nil
}

// PID returns the process id of a program of the control plane, such as kube-apiserver.
func (s *Site) PID(ctx context.Context, program string) (int, error) { return s.lab.PID(ctx, program) }

// Close takes the site down. It is also right after an interrupt.
func (s *Site) Close() error { return s.lab.Down() }
