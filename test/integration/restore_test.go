//go:build integration

package integration

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// DEL-01: SubPools are restored from a backup together with their status. One has its old namespace beside it, the other's
// status claims the namespace of a neighbour. The status is rebuilt from the world; what it claimed is neither adopted nor
// destroyed. The operator is away meanwhile, since it would not let the old status stand.
func TestDEL01RestoredWithStatus(t *testing.T) {
	orphaned, neighbour := createReady(t, "orphaned"), createReady(t, "neighbour")
	kept, before := uidsOf(t, orphaned), uidsOf(t, neighbour)
	stopOperator(t)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	require.NoError(t, cluster.Admin.Patch(t.Context(), orphaned.DeepCopy(), patch))
	orphan := client.PropagationPolicy(metav1.DeletePropagationOrphan)
	require.NoError(t, cluster.Admin.Delete(t.Context(), orphaned.DeepCopy(), orphan))
	awaitGone(t, goneBudget, orphaned.DeepCopy())
	claiming := newPool("claiming")
	claiming.Spec.Suspend = true
	backup := orphaned.Status.DeepCopy()
	meta.SetStatusCondition(&backup.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionDeleting, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonDeletionInProgress,
	})
	restore(t, orphaned, backup)
	backup.Namespace = namespaceOf(neighbour.Name)
	restore(t, claiming, backup)

	runOperator(t)
	awaitNotReady(t, orphaned, v1alpha1.ReasonNamespaceConflict)
	awaitNotReady(t, claiming, v1alpha1.ReasonSuspended)
	assert.Equal(t, namespaceOf(claiming.Name), claiming.Status.Namespace)
	for _, pool := range []*v1alpha1.SubPool{orphaned, claiming} {
		assert.Empty(t, pool.Status.Images, "%s has no Pod", pool.Name)
		assert.Nil(t, meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionDeleting), pool.Name)
	}
	for _, pool := range []*v1alpha1.SubPool{orphaned, claiming} {
		remove(t, pool)
		awaitGone(t, goneBudget, pool)
	}
	assert.Equal(t, kept, uidsOf(t, orphaned), "the namespace that was left belongs to nobody")
	assert.Equal(t, before, uidsOf(t, neighbour))
	remove(t, bareNamespace(orphaned.Name))
}

// restore makes a pool with this status, as tools for backups do.
func restore(t *testing.T, pool *v1alpha1.SubPool, status *v1alpha1.SubPoolStatus) {
	t.Helper()
	pool.ResourceVersion, pool.UID = "", ""
	create(t, pool)
	pool.Status = *status.DeepCopy()
	require.NoError(t, cluster.Admin.Status().Update(t.Context(), pool))
}
