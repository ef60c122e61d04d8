//go:build integration

package clusterwide

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

const deadGroup = "dead.example.org"

// deadAPI is an API of which another Service should take care, and that Service does not exist.
func deadAPI() *unstructured.Unstructured {
	api := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": deadGroup, "version": "v1", "groupPriorityMinimum": int64(1000), "versionPriority": int64(15),
		"insecureSkipTLSVerify": true,
		"service":               map[string]any{"namespace": "default", "name": "dead"},
	}}}
	api.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
	api.SetName("v1." + deadGroup)
	return api
}

// DEL-09: an API that nobody serves keeps Kubernetes from deleting namespaces. The pool repeats that in the namespace's own
// words, others are built meanwhile, and the deletion ends by itself when the API is gone.
func TestDEL09DeadAPI(t *testing.T) {
	// The operator calls a deletion blocked after 2 minutes.
	const blockedBudget = 2*time.Minute + budget
	pool := createReady(t, "held")
	dead := deadAPI()
	cluster.Create(t, dead)
	awaitNotDiscovered(t)
	remove(t, pool)
	awaitHeld(t, pool, budget, v1alpha1.ReasonDeletionInProgress)
	createReady(t, "meanwhile")

	awaitHeld(t, pool, blockedBudget, v1alpha1.ReasonDeletionBlocked)
	cluster.Get(t, pool)
	assert.Contains(t, pool.Finalizers, v1alpha1.Finalizer, "nothing is forced")
	remove(t, dead)
	awaitGone(t, longBudget, pool)
	cluster.RequireGone(t, namespaceOf(pool))
}

// awaitNotDiscovered waits until the API server says that the group is there and cannot be reached.
func awaitNotDiscovered(t *testing.T) {
	t.Helper()
	harness.Eventually(t, budget, func(c *assert.CollectT) {
		api := deadAPI()
		cluster.Get(c, api)
		conditions, _, err := unstructured.NestedSlice(api.Object, "status", "conditions")
		require.NoError(c, err)
		require.Len(c, conditions, 1)
		assert.Equal(c, "ServiceNotFound", conditions[0].(map[string]any)["reason"])
	})
}

func awaitHeld(t *testing.T, pool *v1alpha1.SubPool, within time.Duration, reason string) {
	t.Helper()
	harness.Eventually(t, within, func(c *assert.CollectT) {
		cluster.Get(c, pool)
		deleting := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionDeleting)
		require.NotNil(c, deleting)
		assert.Equal(c, metav1.ConditionTrue, deleting.Status)
		assert.Equal(c, reason, deleting.Reason)
		assert.Contains(c, deleting.Message, "Discovery failed for some groups")
		assert.Contains(c, deleting.Message, deadGroup)
	})
}
