// Command sizing measures what the operator needs, by the number of pools and of objects of others, and prints a Markdown
// table. It starts a control plane of its own and takes it down again. Run it from its module's folder, test/scale.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/example-org/subrelay-operator/test/scale/internal/site"
)

type options struct {
	pools   int
	foreign int
	large   int
}

func main() {
	opts := options{}
	flag.IntVar(&opts.pools, "pools", 1000, "How many pools to make. A tenth of them is made first.")
	flag.IntVar(&opts.foreign, "foreign", 5000, "How many Pods, NetworkPolicies and HTTPRoutes of others to make, of each kind.")
	flag.IntVar(&opts.large, "large", 2000, "How many Secrets and ConfigMaps of 100 KB of others to make, of each kind.")
	flag.Parse()
	if err := site.WithFiles(func() error { return run(opts) }); err != nil {
		fmt.Fprintln(os.Stderr, "sizing:", err)
		os.Exit(1)
	}
}

func (o options) validate() error {
	var errs []error
	if o.pools < 10 {
		errs = append(errs, errors.New("--pools must be 10 or more"))
	}
	if o.foreign < 0 || o.large < 0 {
		errs = append(errs, errors.New("--foreign and --large must not be negative"))
	}
	return errors.Join(errs...)
}

func run(opts options) (err error) {
	if err := errors.Join(opts.validate(), site.CheckEnvironment()); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	site, err := site.Open(ctx, fmt.Sprintf("sizing-%d", os.Getpid()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, site.Close()) }()
	if err := site.StartKubelet(ctx); err != nil {
		return err
	}
	study, err := newStudy(ctx, site.Cluster)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, study.end()) }()
	if err := study.run(ctx, opts); err != nil {
		return errors.Join(err, errors.New(study.operator.LogTail()))
	}
	return report(os.Stdout, study.rows)
}
