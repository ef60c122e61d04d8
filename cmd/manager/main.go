// Command manager runs the SubRelay operator.
package main

import (
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"os"

	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/controllers"
	"github.com/example-org/subrelay-operator/internal/operatorconfig"
	"github.com/example-org/subrelay-operator/internal/subpool"
)

// leaseName is the Lease by which the replicas agree on the one that acts.
const leaseName = "subpool-operator"

// bodiesLevel is the verbosity, as zap counts it, from which client-go logs the bodies of requests and answers.
const bodiesLevel = zapcore.Level(-8)

// version is set by the linker.
var version = "dev"

type options struct {
	operatorConfig  string
	sharedNamespace string
	operator        subpool.Identity
	leaderElect     bool
	metricsAddress  string
	healthAddress   string
	logging         zap.Options
}

func main() {
	opts := parseFlags(flag.CommandLine, os.Args[1:])
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&opts.logging)))
	log := ctrl.Log.WithName("setup")
	log.Info("starting the SubRelay operator", "version", version, "operatorConfig", opts.operatorConfig)
	if err := run(opts); err != nil {
		log.Error(err, "the operator ends")
		os.Exit(1)
	}
}

// parseFlags ends the process when the arguments cannot be read, as the flag set is told to.
func parseFlags(flags *flag.FlagSet, args []string) *options {
	opts := &options{}
	flags.StringVar(&opts.operatorConfig, "operator-config", "",
		"Name of the ConfigMap, in the operator's namespace, that holds the operator configuration. Required.")
	flags.StringVar(&opts.sharedNamespace, "shared-namespace", "subpool-gateway",
		"Namespace of the shared infrastructure (Mihomo and Gateway).")
	flags.StringVar(&opts.operator.Namespace, "namespace", os.Getenv("POD_NAMESPACE"),
		"Namespace the operator runs in. Default: $POD_NAMESPACE.")
	flags.StringVar(&opts.operator.Name, "service-account", os.Getenv("POD_SERVICE_ACCOUNT"),
		"ServiceAccount the operator runs as. Default: $POD_SERVICE_ACCOUNT.")
	flags.BoolVar(&opts.leaderElect, "leader-elect", true,
		"Act only while holding the Lease "+leaseName+". Needed with more than one replica.")
	flags.StringVar(&opts.metricsAddress, "metrics-bind-address", ":8443",
		"Address of the metrics endpoint (HTTPS, for authorised clients only). 0 switches it off.")
	flags.StringVar(&opts.healthAddress, "health-probe-bind-address", ":8081",
		"Address of /healthz and /readyz.")
	opts.logging.BindFlags(flags)
	_ = flags.Parse(args)
	return opts
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
	return errors.Join(errs...)
}

func run(opts *options) error {
	if err := opts.validate(); err != nil {
		return err
	}
	restConfig, err := config.GetConfig()
	if err != nil {
		return fmt.Errorf("cannot find the API server (in a Pod this is automatic, elsewhere set --kubeconfig): %w", err)
	}
	source := &operatorconfig.Source{
		Namespace: opts.operator.Namespace, Name: opts.operatorConfig, SharedNamespace: opts.sharedNamespace,
	}
	manager, err := newManager(restConfig, opts, source)
	if err != nil {
		return err
	}
	source.Reader = manager.GetClient()
	reconciler := &controllers.SubPoolReconciler{
		Client:   manager.GetClient(),
		Live:     manager.GetAPIReader(),
		Config:   source,
		Recorder: manager.GetEventRecorder("subpool-operator"),
		Operator: opts.operator,
		Random:   rand.Reader,
	}
	ctx := ctrl.SetupSignalHandler()
	if err := reconciler.SetupWithManager(ctx, manager); err != nil {
		return fmt.Errorf("cannot set up the SubPool controller: %w", err)
	}
	if err := errors.Join(
		manager.AddHealthzCheck("ping", healthz.Ping),
		manager.AddReadyzCheck("ping", healthz.Ping),
	); err != nil {
		return fmt.Errorf("cannot set up health checks: %w", err)
	}
	return manager.Start(ctx)
}

func newManager(restConfig *rest.Config, opts *options, source *operatorconfig.Source) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), gatewayv1.Install(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("cannot build the scheme: %w", err)
	}
	manager, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme: scheme,
		Cache:  controllers.CacheOptions(source),
		Client: client.Options{FieldOwner: "subpool-operator"},
		Metrics: metricsserver.Options{
			BindAddress:    opts.metricsAddress,
			SecureServing:  true,
			FilterProvider: filters.WithAuthenticationAndAuthorization,
		},
		HealthProbeBindAddress:  opts.healthAddress,
		LeaderElection:          opts.leaderElect,
		LeaderElectionID:        leaseName,
		LeaderElectionNamespace: opts.operator.Namespace,
		// The process ends right after, so a successor need not wait for the lease to run out.
		LeaderElectionReleaseOnCancel: true,
		Controller:                    ctrlconfig.Controller{EnableWarmup: ptr.To(true)},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot set up the manager: %w", err)
	}
	return manager, nil
}
