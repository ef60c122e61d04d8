//go:build integration || chaos

// Package availability tests that the operator goes on, and ends up right, while processes end, the API server pauses and
// calls get lost. It has a control plane of its own; each test runs its own operators, one test after the other.
package availability

import (
	"context"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

var (
	lab     *harness.Lab
	cluster *harness.Cluster
)

// background is for what also happens after a test's own context has ended.
var background = context.Background()

// budget is for whatever has no promise of its own. It is generous, since other tests share the machine.
const budget = 2 * time.Minute

const (
	cpaImage     = "registry.example.invalid/subrelay/cpa:v1"
	managerImage = "registry.example.invalid/subrelay/cpa-manager:v1"
)

func TestMain(m *testing.M) {
	suite := harness.Suite{
		Name:  "availability",
		Start: func(ctx context.Context, lab *harness.Lab) error { return lab.StartControlPlane(ctx) },
		Run:   func(l *harness.Lab) (int, error) { return run(m, l) },
	}
	os.Exit(suite.Main())
}

func run(m *testing.M, l *harness.Lab) (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	lab = l
	if cluster, err = lab.ConnectWithPaperNode(ctx); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// start runs an operator until the end of the test.
func start(t *testing.T, behind *harness.Cluster, flags ...string) *harness.Operator {
	t.Helper()
	operator, err := behind.StartOperator(context.Background(), append([]string{"--zap-log-level=info"}, flags...)...)
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(operator.LogTail())
		}
		_ = operator.Stop() // gives up the Lease; a process that has ended by itself has failed
		assert.NoError(t, operator.Kill())
	})
	return operator
}

// behind returns the cluster as operators see it whose calls go through meddle, until they have ended with the test.
func behind(t *testing.T, meddle func(http.Handler) http.Handler) *harness.Cluster {
	t.Helper()
	ctx, end := context.WithCancel(background)
	t.Cleanup(end)
	meddled, err := cluster.Behind(ctx, meddle)
	require.NoError(t, err)
	return meddled
}

func keyOf(object client.Object) client.ObjectKey { return client.ObjectKeyFromObject(object) }

// newPools returns pools that do not exist yet.
func newPools(word string, count int) []*v1alpha1.SubPool {
	pools := make([]*v1alpha1.SubPool, count)
	for i := range pools {
		pools[i] = harness.NewPool(word, cpaImage, managerImage, harness.Resources("10m", "16Mi", "20m", "32Mi"))
	}
	return pools
}

// create makes pools, which stay: the cluster ends with the tests.
func create(t *testing.T, pools ...*v1alpha1.SubPool) {
	t.Helper()
	for _, pool := range pools {
		require.NoError(t, cluster.Admin.Create(t.Context(), pool))
	}
}

// change edits the pools' specs as their users would.
func change(t *testing.T, edit func(*v1alpha1.SubPoolSpec), pools ...*v1alpha1.SubPool) {
	t.Helper()
	for _, pool := range pools {
		base := pool.DeepCopy()
		edit(&pool.Spec)
		require.NoError(t, cluster.Admin.Patch(t.Context(), pool, client.MergeFrom(base)))
	}
}

func awaitReady(t *testing.T, pools ...*v1alpha1.SubPool) {
	t.Helper()
	for _, pool := range pools {
		awaitReadyWithin(t, budget, pool)
	}
}

func awaitReadyWithin(t *testing.T, within time.Duration, pool *v1alpha1.SubPool) {
	t.Helper()
	cluster.AwaitCondition(t, pool, within, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonPoolReady)
}

func awaitSuspended(t *testing.T, pools ...*v1alpha1.SubPool) {
	t.Helper()
	for _, pool := range pools {
		cluster.AwaitCondition(t, pool, budget, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonSuspended)
	}
}

func awaitGone(t *testing.T, pools ...*v1alpha1.SubPool) {
	t.Helper()
	for _, pool := range pools {
		harness.Eventually(t, budget, func(c *assert.CollectT) { cluster.RequireGone(c, pool) })
		cluster.RequireGone(t, namespaceOf(pool))
	}
}

func markAudit(t *testing.T) harness.Mark {
	t.Helper()
	mark, err := cluster.Audit.Mark(t.Context())
	require.NoError(t, err)
	return mark
}

// writesSince returns the operators' changes of pools.
func writesSince(t *testing.T, since harness.Mark) []harness.Call {
	t.Helper()
	writes, err := cluster.Audit.OperatorCalls(t.Context(), since, harness.Call.Write)
	require.NoError(t, err)
	return writes
}
