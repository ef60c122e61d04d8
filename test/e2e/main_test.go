//go:build e2e

// Package e2e tests the product as its users have it: on a real node, installed from the shipped manifests, with
// applications that run and policies that are enforced. What can be seen without a node is tested in test/integration.
package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

// Namespaces of the product itself.
const (
	systemNamespace = "subpool-system"
	sharedNamespace = "subpool-gateway"
)

// operatorUser is who the operator is to the API server.
const operatorUser = "system:serviceaccount:" + systemNamespace + ":subpool-operator"

// parallelTests is how many tests may run side by side unless -parallel says otherwise. They wait more than they compute,
// so the number of processors is no measure; but Pods that start together on a small machine keep each other waiting.
const parallelTests = 6

// The node under test, and who acts on it.
var (
	lab *harness.Lab
	// admin may do everything. It reads from the API server itself.
	admin client.Client
	audit *harness.AuditLog
)

var started = time.Now()

// progress tells a person who waits what goes on.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "e2e [%5.1fs] %s\n", time.Since(started).Seconds(), fmt.Sprintf(format, args...))
}

func TestMain(m *testing.M) {
	flag.Parse()
	suite := harness.Suite{
		Name:  "e2e",
		Start: start,
		Run:   func(l *harness.Lab) (int, error) { return run(m, l) },
	}
	os.Exit(suite.Main())
}

// start brings up a node and does what the manuals say to install the product.
func start(ctx context.Context, l *harness.Lab) error {
	archives, err := filepath.Glob("../../bin/images/*.tar")
	if err != nil || len(archives) == 0 {
		return errors.Join(errors.New("bin/images has no images: make them with `make images`"), err)
	}
	kubectl := func(args ...string) func() error {
		return func() error {
			_, err := l.Kubectl(ctx, args...)
			return err
		}
	}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"start a node", func() error { return l.Up(ctx) }},
		{"load images", func() error { return l.Load(ctx, archives...) }},
		{"install the operator", kubectl("apply", "--server-side", "--kustomize", "../manifests/operator")},
		{"install the shared Mihomo", kubectl("apply", "--server-side", "--kustomize", "../manifests/mihomo")},
		{"set up a provider outside", kubectl("apply", "--server-side", "--filename", "manifests/outside.yaml")},
		{"give the provider its address", kubectl("patch", "service/provider", "--namespace=outside", "--subresource=status",
			`--patch={"status":{"loadBalancer":{"ingress":[{"ip":"`+providerAddress+`","ipMode":"VIP"}]}}}`)},
		{"wait for the operator", kubectl("rollout", "status", "deployment/subpool-operator", "--namespace="+systemNamespace,
			"--timeout=60s")},
		{"wait for Mihomo", kubectl("rollout", "status", "deployment/mihomo-gateway", "--namespace="+sharedNamespace,
			"--timeout=60s")},
		{"wait for the provider", kubectl("wait", "pod", "--all", "--for=condition=Ready", "--namespace=outside", "--timeout=60s")},
	} {
		progress("%s", step.name)
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	progress("everything is installed")
	return nil
}

// run runs the tests on a node that start has made.
func run(m *testing.M, l *harness.Lab) (int, error) {
	lab = l
	if err := connect(context.Background()); err != nil {
		return 1, err
	}
	if err := allowParallel(); err != nil {
		return 1, err
	}
	code := m.Run()
	progress("the tests have run")
	if code == 0 {
		return 0, nil
	}
	return code, describe(context.Background())
}

// connect makes the clients.
func connect(ctx context.Context) error {
	// Controller-runtime complains at length when nobody has said where its log goes.
	ctrl.SetLogger(zap.New(zap.WriteTo(io.Discard)))
	kubeconfig, err := lab.Kubeconfig(ctx)
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read the node's kubeconfig: %w", err)
	}
	config.QPS, config.Burst = -1, -1 // the tests poll a lot
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("build the scheme: %w", err)
	}
	admin, err = client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("make a client for the administrator: %w", err)
	}
	audit = harness.NewAuditLog(kubeconfig, admin)
	return nil
}

// allowParallel sets -parallel if the command line does not.
func allowParallel() error {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return nil
	}
	return flag.Set("test.parallel", fmt.Sprint(parallelTests))
}

// describe shows what a person needs to understand a failure; the node is gone afterwards.
func describe(ctx context.Context) error {
	for _, args := range [][]string{
		{"get", "subpools,pods", "--all-namespaces", "--output=wide"},
		{"logs", "--namespace=" + systemNamespace, "--selector=app.kubernetes.io/name=subpool-operator", "--prefix", "--tail=100"},
	} {
		out, err := lab.Kubectl(ctx, args...)
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, out)
	}
	return nil
}
