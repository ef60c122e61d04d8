//go:build integration

package integration

import (
	"context"
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

// background is for what also happens after a test's own context has ended.
var background = context.Background()

const (
	// healBudget is the product's promise for whatever is watched.
	healBudget = 5 * time.Second

	// readyBudget is for whatever has no promise of its own, like the way of a pool to Ready. It is generous, since
	// many tests share the machine, which may be slow.
	readyBudget = 2 * time.Minute

	// goneBudget is for a namespace with everything in it. Kubernetes' own controller waits up to 15 s between two
	// looks at one that something holds, and many namespaces wait for it at once.
	goneBudget = 4 * time.Minute
)

// Images that the kubelet of the tests can run.
const (
	cpaImage     = "registry.example.invalid/subrelay/cpa:v1"
	managerImage = "registry.example.invalid/subrelay/cpa-manager:v1"
)

// namespaceOf has a short name here, since every test needs it.
var namespaceOf = harness.NamespaceOf

// newPool returns a small pool whose id begins with the given word and is not in use.
func newPool(word string) *v1alpha1.SubPool {
	return harness.NewPool(word, cpaImage, managerImage, harness.Resources("100m", "128Mi", "200m", "256Mi"))
}

// create makes an object and deletes it at the end of the test, without waiting for its end.
func create(t *testing.T, object client.Object) {
	t.Helper()
	cluster.Create(t, object)
}

// createReady makes a pool and waits until it is ready.
func createReady(t *testing.T, word string) *v1alpha1.SubPool {
	t.Helper()
	pool := newPool(word)
	create(t, pool)
	awaitReady(t, pool)
	return pool
}

// get reads an object anew.
func get(t require.TestingT, object client.Object) { cluster.Get(t, object) }

// eventually waits until check reports no failure.
func eventually(t *testing.T, within time.Duration, check func(c *assert.CollectT)) {
	t.Helper()
	harness.Eventually(t, within, check)
}

// awaitReady waits until the pool is ready with its newest spec, and updates pool.
func awaitReady(t *testing.T, pool *v1alpha1.SubPool) {
	t.Helper()
	awaitCondition(t, pool, readyBudget, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonPoolReady)
}

// awaitNotReady waits until the pool's newest spec is judged with this reason, and updates pool.
func awaitNotReady(t *testing.T, pool *v1alpha1.SubPool, reason string) {
	t.Helper()
	awaitCondition(t, pool, readyBudget, v1alpha1.ConditionReady, metav1.ConditionFalse, reason)
}

func awaitCondition(t *testing.T, pool *v1alpha1.SubPool, within time.Duration,
	kind string, status metav1.ConditionStatus, reason string,
) {
	t.Helper()
	cluster.AwaitCondition(t, pool, within, kind, status, reason)
}

// message returns the message of a condition of the pool as it was read last.
func message(t *testing.T, pool *v1alpha1.SubPool, kind string) string {
	t.Helper()
	return harness.Message(t, pool, kind)
}

// change edits the pool's spec as a user would.
func change(t *testing.T, pool *v1alpha1.SubPool, edit func(*v1alpha1.SubPoolSpec)) {
	t.Helper()
	base := pool.DeepCopy()
	edit(&pool.Spec)
	require.NoError(t, cluster.Admin.Patch(t.Context(), pool, client.MergeFrom(base)))
}

// in returns where an object of the pool is.
func in(pool *v1alpha1.SubPool, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespaceOf(pool.Name), Name: name}
}

// requireGone checks that an object does not exist.
func requireGone(t require.TestingT, object client.Object) { cluster.RequireGone(t, object) }

// awaitGone waits until an object does not exist.
func awaitGone(t *testing.T, within time.Duration, object client.Object) {
	t.Helper()
	eventually(t, within, func(c *assert.CollectT) { requireGone(c, object) })
}

// poolNamespace returns the pool's namespace as it is now.
func poolNamespace(t *testing.T, pool *v1alpha1.SubPool) *corev1.Namespace {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceOf(pool.Name)}}
	get(t, namespace)
	return namespace
}

// credentials returns the pool's Secret. No value in it may become part of a test's output.
func credentials(t require.TestingT, pool *v1alpha1.SubPool) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: in(pool, "subpool-credentials")}
	get(t, secret)
	return secret
}

// awaitOperator proves that the operator acts, and that time has passed for it: a pool made now becomes ready.
func awaitOperator(t *testing.T) {
	t.Helper()
	createReady(t, "marker")
}

// hold makes an object in the pool's namespace with a finalizer that nobody serves, and returns how to release it.
func hold(t *testing.T, pool *v1alpha1.SubPool) (release func()) {
	t.Helper()
	holder := &corev1.ConfigMap{ObjectMeta: in(pool, "holder")}
	holder.Finalizers = []string{foreignFinalizer}
	require.NoError(t, cluster.Admin.Create(t.Context(), holder))
	release = func() {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		err := cluster.Admin.Patch(background, holder, patch)
		assert.NoError(t, client.IgnoreNotFound(err))
	}
	t.Cleanup(release)
	return release
}

const foreignFinalizer = "example.org/hold"
