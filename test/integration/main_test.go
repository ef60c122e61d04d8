//go:build integration

// Package integration tests the operator as a process of its own against a real API server and the real
// controllers of Kubernetes, with the shipped manifests and the shipped rights. There is no node: a small kubelet of
// the tests' own binds Pods and says that they run.
package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/test/harness"
)

// Namespaces of the product itself.
const (
	systemNamespace = harness.SystemNamespace
	sharedNamespace = harness.SharedNamespace
)

// cluster is the control plane under test, and who acts on it.
var cluster struct {
	*harness.Cluster

	// operator is the process that runs during all tests. A test that stops or disturbs it does not run in
	// parallel with others.
	operator *operator
}

func TestMain(m *testing.M) {
	suite := harness.Suite{
		Name:     "integration",
		Parallel: 12,
		Start:    start,
		Run:      func(lab *harness.Lab) (int, error) { return run(m, lab) },
	}
	os.Exit(suite.Main())
}

// start brings up a control plane and does what a user does to install the operator.
func start(ctx context.Context, lab *harness.Lab) error {
	if err := lab.Up(ctx, "--control-plane-only"); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"apply", "--server-side", "-k", "../../deploy/operator"},
		{"wait", "--for=condition=Established", "--timeout=30s", "crd/subpools.subrelay.example.com"},
	} {
		if _, err := lab.Kubectl(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// run brings the cluster to life, runs the tests and returns the exit code.
func run(m *testing.M, lab *harness.Lab) (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if cluster.Cluster, err = lab.Connect(ctx); err != nil {
		return 1, err
	}
	if err := createShared(ctx); err != nil {
		return 1, err
	}
	if err := startKubelet(ctx); err != nil {
		return 1, err
	}
	if cluster.operator, err = startOperator(ctx); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, cluster.operator.stop()) }()

	code = m.Run()
	if code != 0 {
		fmt.Fprintln(os.Stderr, cluster.operator.logTail())
	}
	return code, checkRights(ctx)
}

// createShared makes what pools share: the Service of Mihomo with a ready endpoint.
func createShared(ctx context.Context) error {
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: sharedNamespace}},
		mihomoService(),
		mihomoSlice(readyEndpoint()),
	} {
		// A lab that runs already has them.
		if err := cluster.Admin.Create(ctx, object); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("create the shared %T: %w", object, err)
		}
	}
	return nil
}
