//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// RES-02: by default an eviction of a pool's Pod is never refused, ready or not, and the budget of a pool without a Pod
// is in order. So no node drain waits for a pool.
func TestRES02Eviction(t *testing.T) {
	t.Parallel()
	id := createReady(t, newUnrulyPool(t, "evict"))
	before := possessionsOf(t, id)

	ready := readPod(t, id)
	evict(t, ready)
	awaitOtherPod(t, id, ready.UID)
	awaitReady(t, id)

	order(t, id, managerName, once+"until [ -f /data/go ]; do sleep 1; done")
	eventually(t, truthBudget, func(c *assert.CollectT) { assert.False(c, podReady(readPod(c, id))) })
	notReady := readPod(t, id)
	evict(t, notReady)
	awaitOtherPod(t, id, notReady.UID)
	awaitReady(t, id)
	assert.Equal(t, before, possessionsOf(t, id))

	suspend(t, id, true)
	awaitNoPod(t, id)
	eventually(t, healBudget, func(c *assert.CollectT) {
		budget := read[policyv1.PodDisruptionBudget](c, namespaceOf(id), "runtime")
		assert.Zero(c, budget.Status.ExpectedPods)
		assert.GreaterOrEqual(c, budget.Status.CurrentHealthy, budget.Status.DesiredHealthy)
	})
}

// evict asks for a Pod's eviction as a node drain does.
func evict(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	require.NoError(t, admin.SubResource("eviction").Create(t.Context(), pod, eviction))
}

// API-02: the longest name that a pool may have gives names that everything accepts, up to a Pod that runs.
func TestAPI02LongestName(t *testing.T) {
	t.Parallel()
	pool := newPool("longest")
	pool.Name += strings.Repeat("x", 55-len(pool.Name))
	id := createReady(t, pool)
	assert.Len(t, namespaceOf(id), 63)
	assert.Equal(t, id, readPod(t, id).Labels[v1alpha1.LabelPool])
}
