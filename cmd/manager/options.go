package main

import (
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"time"

	"go.uber.org/zap/zapcore"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/example-org/subrelay-operator/internal/subpool"
)

// Defaults of the election. A pause of the API server below the renew deadline ends no process, and a leader that died is
// replaced when its Lease has run out: both as in Kubernetes' own components. The replicas ask more often than those, because
// another one is to act within 2 s of a leader's orderly end: the elector waits up to 2.2 retry periods between two looks.
const (
	defaultLeaseDuration = 15 * time.Second
	defaultRenewDeadline = 10 * time.Second
	defaultRetryPeriod   = 500 * time.Millisecond
)

// minRetryPeriod keeps the election from crowding out others: each replica makes a request in every period.
const minRetryPeriod = 100 * time.Millisecond

// bodiesLevel is the verbosity, as zap counts it, from which client-go logs the bodies of requests and answers.
const bodiesLevel = zapcore.Level(-8)

type options struct {
	version         bool
	operatorConfig  string
	sharedNamespace string
	operator        subpool.Identity
	election        election
	metricsAddress  string
	healthAddress   string
	pprofAddress    string
	logging         zap.Options
}

// election is how the replicas agree on the one that acts.
type election struct {
	enabled bool
	// leaseDuration is how long the others wait for a leader that does not renew the Lease.
	leaseDuration time.Duration
	// renewDeadline is how long a leader that cannot renew the Lease goes on.
	renewDeadline time.Duration
	// retryPeriod is how often the leader renews the Lease and the others look at it.
	retryPeriod time.Duration
}

// parseFlags ends the process when the arguments cannot be read, as the flag set is told to.
func parseFlags(flags *flag.FlagSet, args []string) *options {
	opts := &options{}
	flags.BoolVar(&opts.version, "version", false, "Print the version and end.")
	flags.StringVar(&opts.operatorConfig, "operator-config", "",
		"Name of the ConfigMap, in the operator's namespace, that holds the operator configuration. Required.")
	flags.StringVar(&opts.sharedNamespace, "shared-namespace", "subpool-gateway",
		"Namespace of the shared infrastructure (Mihomo and Gateway).")
	flags.StringVar(&opts.operator.Namespace, "namespace", os.Getenv("POD_NAMESPACE"),
		"Namespace the operator runs in. Default: $POD_NAMESPACE.")
	flags.StringVar(&opts.operator.Name, "service-account", os.Getenv("POD_SERVICE_ACCOUNT"),
		"ServiceAccount the operator runs as. Default: $POD_SERVICE_ACCOUNT.")
	opts.election.bind(flags)
	flags.StringVar(&opts.metricsAddress, "metrics-bind-address", ":8443",
		"Address of the metrics endpoint (HTTPS, for authorised clients only). 0 switches it off.")
	flags.StringVar(&opts.healthAddress, "health-probe-bind-address", ":8081",
		"Address of /healthz and /readyz.")
	flags.StringVar(&opts.pprofAddress, "pprof-bind-address", "",
		"Loopback address of the profiling endpoints /debug/pprof/, such as 127.0.0.1:6060. Empty switches them off.")
	opts.logging.BindFlags(flags)
	_ = flags.Parse(args)
	return opts
}

func (e *election) bind(flags *flag.FlagSet) {
	flags.BoolVar(&e.enabled, "leader-elect", true,
		"Act only while holding the Lease "+leaseName+". Needed with more than one replica.")
	flags.DurationVar(&e.leaseDuration, "leader-elect-lease-duration", defaultLeaseDuration,
		"How long the other replicas wait for a leader that has died. Whole seconds.")
	flags.DurationVar(&e.renewDeadline, "leader-elect-renew-deadline", defaultRenewDeadline,
		"How long a leader that cannot reach the API server stays the leader; then its process ends. Shorter than the lease duration.")
	flags.DurationVar(&e.retryPeriod, "leader-elect-retry-period", defaultRetryPeriod,
		"How often the leader renews the Lease and the others look at it. After an orderly end of the leader, "+
			"another replica acts within 2.2 periods.")
}

func (o *options) validate() error {
	var errs []error
	for _, required := range []struct{ flag, value string }{
		{"--operator-config", o.operatorConfig},
		{"--shared-namespace", o.sharedNamespace},
		{"--namespace (or $POD_NAMESPACE)", o.operator.Namespace},
		{"--service-account (or $POD_SERVICE_ACCOUNT)", o.operator.Name},
	} {
		if required.value == "" {
			errs = append(errs, fmt.Errorf("%s must be given", required.flag))
		}
	}
	if o.logging.Level != nil && o.logging.Level.Enabled(bodiesLevel) {
		errs = append(errs, fmt.Errorf("--zap-log-level must be below %d: from there on the client library logs what it sends "+
			"and receives, credentials included", -bodiesLevel))
	}
	if o.pprofAddress != "" && !isLoopback(o.pprofAddress) {
		errs = append(errs, fmt.Errorf("--pprof-bind-address is %q: it must be an IP address of the loopback with a port, such as "+
			"127.0.0.1:6060, since nobody is asked who they are there", o.pprofAddress))
	}
	return errors.Join(append(errs, o.election.validate())...)
}

func isLoopback(address string) bool {
	parsed, err := netip.ParseAddrPort(address)
	return err == nil && parsed.Addr().IsLoopback()
}

func (e *election) validate() error {
	var errs []error
	if e.retryPeriod < minRetryPeriod {
		errs = append(errs, fmt.Errorf("--leader-elect-retry-period is %s: it must be at least %s", e.retryPeriod, minRetryPeriod))
	}
	if e.renewDeadline < 2*e.retryPeriod {
		errs = append(errs, fmt.Errorf("--leader-elect-renew-deadline is %s: it must be at least twice --leader-elect-retry-period (%s), "+
			"so that one failed attempt ends no process", e.renewDeadline, e.retryPeriod))
	}
	if e.leaseDuration <= e.renewDeadline {
		errs = append(errs, fmt.Errorf("--leader-elect-lease-duration is %s: it must be longer than --leader-elect-renew-deadline (%s), "+
			"so that a leader gives up before another one begins", e.leaseDuration, e.renewDeadline))
	}
	if e.leaseDuration%time.Second != 0 {
		errs = append(errs, fmt.Errorf("--leader-elect-lease-duration is %s: a Lease counts whole seconds", e.leaseDuration))
	}
	return errors.Join(errs...)
}
