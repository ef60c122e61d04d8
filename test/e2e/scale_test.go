//go:build e2e

package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/test/harness"
)

// CFG-03: a running pool that somebody scales up is put back. Meanwhile no second Pod comes, since the pool's quota
// allows one volume claim, and no claim is left behind.
func TestCFG03ScaledByHand(t *testing.T) {
	t.Parallel()
	id := createReady(t, newPool("scaled"))
	pod := readPod(t, id)
	mark, err := audit.Mark(t.Context())
	require.NoError(t, err)

	_, err = lab.Kubectl(t.Context(), "scale", "statefulset/runtime", "--replicas=2", "--namespace="+namespaceOf(id))
	require.NoError(t, err)
	eventually(t, healBudget, func(c *assert.CollectT) {
		workload := readWorkload(c, id)
		assert.EqualValues(c, 1, *workload.Spec.Replicas)
		assert.Equal(c, workload.Generation, workload.Status.ObservedGeneration)
	})
	awaitReady(t, id)
	assert.Equal(t, pod.UID, readPod(t, id).UID, "the Pod is the same")
	claims := &corev1.PersistentVolumeClaimList{}
	require.NoError(t, admin.List(t.Context(), claims, client.InNamespace(namespaceOf(id))))
	require.Len(t, claims.Items, 1)
	assert.Equal(t, claimName, claims.Items[0].Name)
	second, err := audit.Calls(t.Context(), mark, func(c harness.Call) bool {
		return c.Verb == "create" && c.OK() && c.ObjectRef.Namespace == namespaceOf(id) && c.ObjectRef.Resource == "pods"
	})
	require.NoError(t, err)
	assert.Empty(t, second, "Pods that were made")
}
