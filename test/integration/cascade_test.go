//go:build integration

package integration

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// DEL-02: foreground cascading ends like the default.
func TestDEL02ForegroundCascading(t *testing.T) {
	t.Parallel()
	pool := createReady(t, "foreground")
	require.NoError(t, cluster.Admin.Delete(t.Context(), pool, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	awaitGone(t, goneBudget, pool)
	awaitGone(t, goneBudget, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceOf(pool.Name)}})
}

// DEL-01, DEL-02: orphan cascading keeps the namespace and all in it. A SubPool of the same name does not take it over by
// itself, and does when an administrator hands it over.
func TestDEL01OrphanCascadingAndHandOver(t *testing.T) {
	t.Parallel()
	pool := createReady(t, "orphan")
	kept, keys := uidsOf(t, pool), credentials(t, pool).Data
	require.NoError(t, cluster.Admin.Delete(t.Context(), pool, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	awaitGone(t, readyBudget, pool)
	assert.Equal(t, kept, uidsOf(t, pool))
	get(t, &corev1.Pod{ObjectMeta: in(pool, "runtime-0")})

	again := newPool("unused")
	again.Name = pool.Name
	create(t, again)
	awaitNotReady(t, again, v1alpha1.ReasonNamespaceConflict)
	assert.Contains(t, message(t, again, v1alpha1.ConditionReady), "docs/lifecycle.md")
	assert.Equal(t, kept, uidsOf(t, again))

	for _, object := range []client.Object{poolNamespace(t, again), credentials(t, again)} {
		handOver(t, object, again)
	}
	awaitReady(t, again)
	assert.Equal(t, kept, uidsOf(t, again))
	assert.Equal(t, keys, credentials(t, again).Data)
}

// handOver does what docs/lifecycle.md tells an administrator to do.
func handOver(t *testing.T, object client.Object, pool *v1alpha1.SubPool) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": []metav1.OwnerReference{{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "SubPool", Name: pool.Name, UID: pool.UID, Controller: ptr.To(true),
	}}}})
	require.NoError(t, err)
	require.NoError(t, cluster.Admin.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, patch)))
}
