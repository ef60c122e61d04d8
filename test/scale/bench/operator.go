package main

import (
	"context"
	"fmt"

	"github.com/example-org/subrelay-operator/test/harness"
	"github.com/example-org/subrelay-operator/test/scale/internal/load"
)

// operator is the subject that all this is about: a process under the shipped ServiceAccount.
type operator struct {
	// userAgent is how its requests begin: with the name of the program.
	userAgent string
	// flags come on top of those that every process gets.
	flags   []string
	cluster *harness.Cluster
	process *harness.Operator
}

func (o *operator) Name() string { return "operator" }

func (o *operator) Start(ctx context.Context, cluster *harness.Cluster) (err error) {
	o.cluster = cluster
	o.process, err = cluster.StartOperator(ctx, append([]string{"--zap-log-level=info"}, o.flags...)...)
	return err
}

func (o *operator) Make(ctx context.Context, poolID string) error {
	return o.cluster.Admin.Create(ctx, load.NamedPool(poolID))
}

func (o *operator) Workers() int         { return 8 }
func (o *operator) Processes() []int     { return []int{o.process.PID()} }
func (o *operator) UserAgents() []string { return []string{o.userAgent} }

func (o *operator) Stop() error {
	if o.process == nil {
		return nil
	}
	err := o.process.Stop()
	if err != nil {
		err = fmt.Errorf("stop the operator: %w\n%s", err, o.process.LogTail())
	}
	o.process = nil
	return err
}
