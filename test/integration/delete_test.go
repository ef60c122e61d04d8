//go:build integration

package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

func remove(t *testing.T, object client.Object) {
	t.Helper()
	require.NoError(t, cluster.Admin.Delete(t.Context(), object))
}

// bareNamespace names a pool's namespace.
func bareNamespace(poolID string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceOf(poolID)}}
}

func TestDeleteRemovesEverything(t *testing.T) {
	t.Parallel()
	from := markAudit(t)
	pool := createReady(t, "delete")
	remove(t, pool)
	awaitGone(t, goneBudget, pool)
	requireGone(t, bareNamespace(pool.Name))

	shared := operatorCalls(t, from, func(c harness.Call) bool {
		return c.Write() && (c.ObjectRef.Namespace == systemNamespace || c.ObjectRef.Namespace == sharedNamespace ||
			c.ObjectRef.Name == systemNamespace || c.ObjectRef.Name == sharedNamespace)
	})
	assert.Empty(t, shared, "the namespaces that belong to no pool are not touched")
	deletions := operatorCalls(t, from, func(c harness.Call) bool {
		return c.About(pool.Name) && c.Verb == "delete" && c.OK()
	})
	require.Len(t, deletions, 1, "Kubernetes' own controller empties the namespace")
	assert.Equal(t, "namespaces", deletions[0].ObjectRef.Resource)
}

// The runtime gets its grace period before the namespace goes.
func TestDeleteStopsTheWorkloadFirst(t *testing.T) {
	t.Parallel()
	from := markAudit(t)
	pool := createReady(t, "stop")
	remove(t, pool)
	awaitGone(t, goneBudget, pool)
	scaled := operatorCalls(t, from, func(c harness.Call) bool {
		return c.About(pool.Name) && c.Verb == "patch" && c.ObjectRef.Resource == "statefulsets" && c.OK()
	})
	deleted := operatorCalls(t, from, func(c harness.Call) bool {
		return c.About(pool.Name) && c.Verb == "delete" && c.ObjectRef.Resource == "namespaces"
	})
	require.NotEmpty(t, scaled)
	require.NotEmpty(t, deleted)
	assert.True(t, scaled[len(scaled)-1].Received.Before(&deleted[0].Received))
}

// DEL-03: a namespace that the operator did not make is never written to, and survives.
func TestDEL03ForeignNamespace(t *testing.T) {
	t.Parallel()
	for name, labels := range map[string]map[string]string{
		"without labels": nil,
		"with the labels of another pool": {
			v1alpha1.LabelManaged: "true",
			v1alpha1.LabelPool:    "another",
		},
		"with this pool's labels": {v1alpha1.LabelManaged: "true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := markAudit(t)
			pool := newPool("foreign")
			namespace := bareNamespace(pool.Name)
			namespace.Labels = labels
			if labels != nil && labels[v1alpha1.LabelPool] == "" {
				namespace.Labels[v1alpha1.LabelPool] = pool.Name
			}
			create(t, namespace)
			keep := &corev1.ConfigMap{ObjectMeta: in(pool, "keep")}
			secret := &corev1.Secret{ObjectMeta: in(pool, "subpool-credentials")}
			claim := &corev1.PersistentVolumeClaim{
				ObjectMeta: in(pool, "data-runtime-0"),
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources: corev1.VolumeResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
					},
				},
			}
			for _, object := range []client.Object{keep, secret, claim} {
				create(t, object)
			}

			create(t, pool)
			awaitNotReady(t, pool, v1alpha1.ReasonNamespaceConflict)
			assert.Contains(t, message(t, pool, v1alpha1.ConditionReady), namespace.Name)
			awaitOperator(t)
			remove(t, pool)
			awaitGone(t, 30*time.Second, pool)

			for _, object := range []client.Object{namespace, keep, secret, claim} {
				uid := object.GetUID()
				get(t, object)
				assert.Equal(t, uid, object.GetUID(), "%T", object)
				assert.Nil(t, object.GetDeletionTimestamp(), "%T", object)
				assert.Empty(t, object.GetOwnerReferences(), "%T", object)
			}
			written := operatorCalls(t, from, func(c harness.Call) bool {
				return c.Write() && c.OK() && c.About(pool.Name) && c.ObjectRef.Resource != "subpools"
			})
			assert.Empty(t, written)
			inside := operatorCalls(t, from, func(c harness.Call) bool {
				return c.ObjectRef.Namespace == namespace.Name && c.ObjectRef.Resource != "namespaces"
			})
			assert.Empty(t, inside, "not even read")
		})
	}
}

// DEL-05: a foreign finalizer holds the pool. The user is told which, others are not held up, and nothing is forced.
func TestDEL05ForeignFinalizer(t *testing.T) {
	from := markAudit(t)
	pool := createReady(t, "held")
	release := hold(t, pool)
	remove(t, pool)
	awaitHeld(t, pool, goneBudget, v1alpha1.ReasonDeletionInProgress)
	// It takes minutes until that counts as blocked. Meanwhile the tests that need the cluster for themselves go on.
	t.Parallel()
	awaitHeld(t, pool, blockedBudget, v1alpha1.ReasonDeletionBlocked)
	awaitOperator(t)
	get(t, pool)
	assert.Contains(t, pool.Finalizers, v1alpha1.Finalizer)

	release()
	awaitGone(t, 30*time.Second, pool)
	forced := operatorCalls(t, from, func(c harness.Call) bool {
		return c.About(pool.Name) && (c.ObjectRef.Subresource == "finalize" || c.ObjectRef.Name == "holder")
	})
	assert.Empty(t, forced)
}

// blockedBudget: the operator calls a deletion blocked after 2 minutes.
const blockedBudget = 2*time.Minute + readyBudget

// awaitHeld waits until the pool says what holds it.
func awaitHeld(t *testing.T, pool *v1alpha1.SubPool, within time.Duration, reason string) {
	t.Helper()
	eventually(t, within, func(c *assert.CollectT) {
		get(c, pool)
		deleting := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionDeleting)
		require.NotNil(c, deleting)
		assert.Equal(c, metav1.ConditionTrue, deleting.Status)
		assert.Equal(c, reason, deleting.Reason)
		assert.Contains(c, deleting.Message, "configmaps")
		assert.Contains(c, deleting.Message, foreignFinalizer)
	})
}

// DEL-06: somebody deletes the namespace instead of the SubPool.
func TestDEL06NamespaceDeleted(t *testing.T) {
	t.Parallel()
	pool := createReady(t, "lost")
	before := uidsOf(t, pool)
	release := hold(t, pool)
	remove(t, bareNamespace(pool.Name))
	from := markAudit(t)

	awaitNotReady(t, pool, v1alpha1.ReasonNamespaceTerminating)
	awaitOperator(t)
	get(t, pool)
	ready := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionReady)
	require.NotNil(t, ready)
	assert.Equal(t, v1alpha1.ReasonNamespaceTerminating, ready.Reason)
	assert.Contains(t, ready.Message, "new credentials")
	assert.NotNil(t, poolNamespace(t, pool).DeletionTimestamp)
	dying := operatorCalls(t, from, func(c harness.Call) bool {
		return c.Write() && c.About(pool.Name) && c.ObjectRef.Resource != "subpools"
	})
	assert.Empty(t, dying, "nothing is written into a namespace that goes away")
	assert.Contains(t, warnings(t, pool), v1alpha1.ReasonNamespaceTerminating)

	release()
	eventually(t, goneBudget, func(c *assert.CollectT) {
		namespace := bareNamespace(pool.Name)
		get(c, namespace)
		assert.NotEqual(c, before.namespace, string(namespace.UID))
	})
	awaitReady(t, pool)
	after := uidsOf(t, pool)
	assert.NotEqual(t, before.secret, after.secret)
	assert.NotEqual(t, before.claim, after.claim)
}

// DEL-07: the same pool id again and again, as fast as the API server lets us.
func TestDEL07DeleteAndCreateAgain(t *testing.T) {
	t.Parallel()
	const rounds = 5
	id := newPool("again").Name
	seen := map[string]bool{}
	for round := range rounds {
		pool := newPool("")
		pool.Name = id
		require.NoError(t, cluster.Admin.Create(t.Context(), pool))
		awaitReady(t, pool)
		uids := uidsOf(t, pool)
		for _, fresh := range []string{uids.namespace, uids.secret, uids.claim, string(credentials(t, pool).Data["cpa_client_key"])} {
			require.False(t, seen[fresh], "round %d has something of an earlier one", round)
			seen[fresh] = true
		}
		remove(t, pool)
		if round%2 == 0 {
			early := newPool("")
			early.Name = id
			err := cluster.Admin.Create(t.Context(), early)
			require.True(t, apierrors.IsAlreadyExists(err), "%v", err)
		}
		awaitGone(t, goneBudget, pool)
	}
}

// DEL-01: a SubPool of the same name is another pool. It does not get, and does not destroy, what the old one had.
// Its finalizer is taken away by hand, so the operator must not be there to see it.
func TestDEL01SameNameNewUID(t *testing.T) {
	pool := createReady(t, "reborn")
	before := uidsOf(t, pool)
	stopOperator(t)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	require.NoError(t, cluster.Admin.Patch(t.Context(), pool, patch))
	require.NoError(t, cluster.Admin.Delete(t.Context(), pool, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	awaitGone(t, goneBudget, pool)

	second := newPool("")
	second.Name = pool.Name
	create(t, second)
	runOperator(t)
	awaitNotReady(t, second, v1alpha1.ReasonNamespaceConflict)
	awaitOperator(t)
	assert.Equal(t, before, uidsOf(t, second))
	remove(t, second)
	awaitGone(t, goneBudget, second)
	assert.Equal(t, before, uidsOf(t, second))
	remove(t, bareNamespace(pool.Name))
}
