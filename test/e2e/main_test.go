//go:build e2e

// Package e2e tests the product as its users have it: on a real node, installed from the shipped manifests, with
// applications that run and policies that are enforced. What can be seen without a node is tested in test/integration.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/test/harness"
)

// Namespaces of the product itself.
const (
	systemNamespace = harness.SystemNamespace
	sharedNamespace = harness.SharedNamespace
)

// The node under test, and who acts on it.
var (
	lab *harness.Lab
	// admin may do everything. It reads from the API server itself.
	admin client.Client
	audit *harness.AuditLog
	// pods serves what the admin client does not: logs.
	pods corev1client.PodsGetter
)

var started = time.Now()

// progress tells a person who waits what goes on.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "e2e [%5.1fs] %s\n", time.Since(started).Seconds(), fmt.Sprintf(format, args...))
}

func TestMain(m *testing.M) {
	suite := harness.Suite{
		Name: "e2e",
		// Few, because Pods that start together on a small machine keep each other waiting.
		Parallel: 6,
		Start:    start,
		Run:      func(l *harness.Lab) (int, error) { return run(m, l) },
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
		{"install the operator", kubectl("apply", "--server-side", "--kustomize", "../../deploy/operator")},
		{"install the shared Mihomo", kubectl("apply", "--server-side", "--kustomize", "../manifests/mihomo")},
		{"set up what is outside", kubectl("apply", "--server-side", "--filename", "manifests/outside.yaml")},
		{"start Envoy Gateway", func() error { return l.StartGateway(ctx) }},
		{"install the shared Gateway", kubectl("apply", "--server-side",
			"--filename=../../deploy/gateway/gateway.yaml", "--filename=../../deploy/gateway/policies.yaml")},
		{"wait for the operator", kubectl("rollout", "status", "deployment/subpool-operator", "--namespace="+systemNamespace,
			"--timeout=60s")},
		{"wait for Mihomo", kubectl("rollout", "status", "deployment/mihomo-gateway", "--namespace="+sharedNamespace,
			"--timeout=60s")},
		{"wait for what is outside", kubectl("wait", "pod", "--all", "--for=condition=Ready", "--namespace=outside", "--timeout=60s")},
		{"wait for the shared Gateway", kubectl("wait", "gateway/subpool-edge", "--for=condition=Programmed",
			"--namespace="+sharedNamespace, "--timeout=60s")},
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
	cluster, err := lab.Connect(context.Background())
	if err != nil {
		return 1, err
	}
	admin, audit = cluster.Admin, cluster.Audit
	if pods, err = corev1client.NewForConfig(cluster.Config); err != nil {
		return 1, err
	}
	code := m.Run()
	progress("the tests have run")
	if code == 0 {
		return 0, nil
	}
	return code, describe(context.Background())
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
