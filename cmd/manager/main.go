// Command manager runs the SubRelay operator.
package main

import (
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"time"

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
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/controllers"
	"github.com/example-org/subrelay-operator/internal/metrics"
	"github.com/example-org/subrelay-operator/internal/operatorconfig"
)

// shutdownBudget bounds the wait for passes that have begun. Their calls end with the process's context, so this is for
// trouble only. The Pod's grace period covers it and the release of the Lease.
const shutdownBudget = 5 * time.Second

// version is set by the linker.
var version = "dev"

func main() {
	opts := parseFlags(flag.CommandLine, os.Args[1:])
	if opts.version {
		fmt.Println(version)
		return
	}
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&opts.logging)))
	log := ctrl.Log.WithName("setup")
	log.Info("starting the SubRelay operator", "version", version, "operatorConfig", opts.operatorConfig)
	if err := run(opts); err != nil {
		log.Error(err, "the operator ends")
		os.Exit(1)
	}
}

// gcPercent is GOGC unless the environment sets it. Nearly all of the heap are caches that live as long as the pools, so that
// what Go's default, 100, lets come together beside them costs more than collecting it does.
const gcPercent = 40

func run(opts *options) error {
	if err := opts.validate(); err != nil {
		return err
	}
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
	restConfig, err := config.GetConfig()
	if err != nil {
		return fmt.Errorf("cannot find the API server (in a Pod this is automatic, elsewhere set --kubeconfig): %w", err)
	}
	source := &operatorconfig.Source{
		Namespace: opts.operator.Namespace, Name: opts.operatorConfig, SharedNamespace: opts.sharedNamespace,
	}
	// The buffers of a decompressor for each watch take more memory than small objects take of a cluster's network.
	restConfig.DisableCompression = true
	manager, err := newManager(restConfig, opts, source)
	if err != nil {
		return err
	}
	source.Reader = manager.GetClient()
	outcomes := metrics.NewOutcomes()
	if err := errors.Join(
		ctrlmetrics.Registry.Register(metrics.NewBuildInfo(version)),
		ctrlmetrics.Registry.Register(metrics.NewPools(manager.GetClient(), manager.Elected())),
		ctrlmetrics.Registry.Register(outcomes),
	); err != nil {
		return fmt.Errorf("cannot set up metrics: %w", err)
	}
	reconciler := &controllers.SubPoolReconciler{
		Client:   manager.GetClient(),
		Live:     manager.GetAPIReader(),
		Config:   source,
		Recorder: manager.GetEventRecorder("subpool-operator"),
		Operator: opts.operator,
		Random:   rand.Reader,
		Outcomes: outcomes,
	}
	ctx := ctrl.SetupSignalHandler()
	if err := reconciler.SetupWithManager(ctx, manager); err != nil {
		return fmt.Errorf("cannot set up the SubPool controller: %w", err)
	}
	return manager.Start(ctx)
}

func newManager(restConfig *rest.Config, opts *options, source *operatorconfig.Source) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), gatewayv1.Install(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("cannot build the scheme: %w", err)
	}
	settings := ctrl.Options{
		Scheme: scheme,
		Cache:  controllers.CacheOptions(source),
		Client: client.Options{FieldOwner: "subpool-operator"},
		Metrics: metricsserver.Options{
			BindAddress:    opts.metricsAddress,
			SecureServing:  true,
			FilterProvider: metrics.Protected,
		},
		HealthProbeBindAddress:  opts.healthAddress,
		PprofBindAddress:        opts.pprofAddress,
		GracefulShutdownTimeout: ptr.To(shutdownBudget),
		Controller:              ctrlconfig.Controller{EnableWarmup: ptr.To(true)},
	}
	var leadership *leadership
	if opts.election.enabled {
		lock, err := newLock(restConfig, scheme, opts.operator.Namespace, opts.election)
		if err != nil {
			return nil, fmt.Errorf("cannot set up leader election: %w", err)
		}
		leadership = newLeadership(lock, opts.election.renewDeadline)
		leadership.configure(&settings, opts.election)
		restConfig = rest.CopyConfig(restConfig)
		restConfig.Wrap(leadership.fence)
	}
	manager, err := ctrl.NewManager(restConfig, settings)
	if err != nil {
		return nil, fmt.Errorf("cannot set up the manager: %w", err)
	}
	warm := manager.Elected()
	if leadership != nil {
		warm = leadership.campaigning
	}
	if err := errors.Join(manager.AddHealthzCheck("ping", healthz.Ping), manager.AddReadyzCheck("warm", warmCheck(warm))); err != nil {
		return nil, fmt.Errorf("cannot set up health checks: %w", err)
	}
	return manager, nil
}

// warmCheck is behind /readyz: a replica that could act at once is ready, whether it leads or not.
func warmCheck(warm <-chan struct{}) healthz.Checker {
	return func(*http.Request) error {
		select {
		case <-warm:
			return nil
		default:
			return errors.New("the caches are not filled yet")
		}
	}
}
