//go:build integration

// Package clusterwide tests what administrators do to the whole cluster: remove the operator, its definition of SubPools, or
// break the API for everybody. It has a control plane of its own, apart from test/integration, and no test runs in parallel.
package clusterwide

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

var (
	lab     *harness.Lab
	cluster *harness.Cluster
	// operator is the process that runs before and after each test.
	operator *harness.Operator
)

var background = context.Background()

const (
	// budget is for whatever has no promise of its own. It is generous, since other tests share the machine.
	budget = time.Minute

	// longBudget is for what Kubernetes itself takes up again only after a while: watches on a kind that was gone, and
	// namespaces whose deletion failed.
	longBudget = 2 * time.Minute
)

func TestMain(m *testing.M) {
	suite := harness.Suite{
		Name:  "clusterwide",
		Start: func(ctx context.Context, lab *harness.Lab) error { return lab.StartControlPlane(ctx) },
		Run:   func(l *harness.Lab) (int, error) { return run(m, l) },
	}
	os.Exit(suite.Main())
}

func run(m *testing.M, l *harness.Lab) (code int, err error) {
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	lab = l
	if cluster, err = lab.ConnectWithPaperNode(ctx); err != nil {
		return 1, err
	}
	if operator, err = cluster.StartOperator(ctx); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, operator.Kill()) }()
	code = m.Run()
	if code != 0 {
		fmt.Fprintln(os.Stderr, operator.LogTail())
	}
	return code, nil
}

// stopOperator stops the operator until startOperator, at the latest until the end of the test.
func stopOperator(t *testing.T) {
	t.Helper()
	require.NoError(t, operator.Stop())
	t.Cleanup(func() {
		select {
		case <-operator.Exited:
			startOperator(t)
		default:
		}
	})
}

func startOperator(t *testing.T) {
	t.Helper()
	fresh, err := cluster.StartOperator(background)
	require.NoError(t, err)
	operator = fresh
}

func newPool(word string) *v1alpha1.SubPool {
	return harness.NewPool(word, "registry.example.invalid/subrelay/cpa:v1", "registry.example.invalid/subrelay/cpa-manager:v1",
		harness.Resources("100m", "128Mi", "200m", "256Mi"))
}

func createReady(t *testing.T, word string) *v1alpha1.SubPool {
	t.Helper()
	pool := newPool(word)
	cluster.Create(t, pool)
	awaitReady(t, pool, budget)
	return pool
}

func awaitReady(t *testing.T, pool *v1alpha1.SubPool, within time.Duration) {
	t.Helper()
	cluster.AwaitCondition(t, pool, within, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonPoolReady)
}

func awaitNotReady(t *testing.T, pool *v1alpha1.SubPool, reason string) {
	t.Helper()
	cluster.AwaitCondition(t, pool, budget, v1alpha1.ConditionReady, metav1.ConditionFalse, reason)
}

func awaitGone(t *testing.T, within time.Duration, object client.Object) {
	t.Helper()
	harness.Eventually(t, within, func(c *assert.CollectT) { cluster.RequireGone(c, object) })
}

func remove(t *testing.T, object client.Object) {
	t.Helper()
	require.NoError(t, cluster.Admin.Delete(t.Context(), object))
}

// in returns where an object of the pool is.
func in(pool *v1alpha1.SubPool, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: harness.NamespaceOf(pool.Name), Name: name}
}

func namespaceOf(pool *v1alpha1.SubPool) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: harness.NamespaceOf(pool.Name)}}
}
