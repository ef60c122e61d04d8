//go:build e2e

package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	netv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

// A deleted pool leaves nothing behind, and what all pools share is not touched.
func TestDelete(t *testing.T) {
	t.Parallel()
	mark, err := audit.Mark(t.Context())
	require.NoError(t, err)
	shared := sharedUIDs(t)
	id := createReady(t, newPool("delete"))
	volume := read[corev1.PersistentVolumeClaim](t, namespaceOf(id), claimName).Spec.VolumeName

	require.NoError(t, admin.Delete(t.Context(), readPool(t, id)))
	awaitGone(t, &v1alpha1.SubPool{ObjectMeta: metav1.ObjectMeta{Name: id}})
	requireGone(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceOf(id)}})
	awaitGone(t, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume}})

	assert.Equal(t, shared, sharedUIDs(t))
	requireNoWrites(t, mark, func(c harness.Call) bool { return c.ObjectRef.Namespace == sharedNamespace })
}

// sharedUIDs are the identities of what runs in the shared namespace.
func sharedUIDs(t *testing.T) []types.UID {
	t.Helper()
	return []types.UID{
		read[corev1.Namespace](t, "", sharedNamespace).UID,
		read[netv1.NetworkPolicy](t, sharedNamespace, "mihomo-gateway").UID,
		read[corev1.Service](t, sharedNamespace, "mihomo-gateway").UID,
		read[appsv1.Deployment](t, sharedNamespace, "mihomo-gateway").UID,
	}
}

// requireNoWrites checks that the operator wrote nothing of the kind, and tried nothing, since the mark.
func requireNoWrites(t *testing.T, since harness.Mark, of func(harness.Call) bool) {
	t.Helper()
	writes, err := audit.OperatorCalls(t.Context(), since, func(c harness.Call) bool { return c.Write() && of(c) })
	require.NoError(t, err)
	assert.Empty(t, writes)
}

// A namespace of a pool's name that the operator has not made keeps what is in it, whatever becomes of the pool.
func TestForeignNamespace(t *testing.T) {
	t.Parallel()
	mark, err := audit.Mark(t.Context())
	require.NoError(t, err)
	pool := newPool("foreign")
	in := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespaceOf(pool.Name), Name: name}
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceOf(pool.Name)}}
	objects := []client.Object{
		&corev1.ConfigMap{ObjectMeta: in("settings"), Data: map[string]string{"mine": "yes"}},
		&corev1.Secret{ObjectMeta: in(credentialsName), StringData: map[string]string{"cpa_client_key": "mine"}},
		&corev1.PersistentVolumeClaim{ObjectMeta: in(claimName), Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		}},
	}
	create(t, namespace)
	for _, object := range objects {
		create(t, object)
	}

	create(t, pool)
	assert.Contains(t, awaitCondition(t, pool.Name, metav1.ConditionFalse, v1alpha1.ReasonNamespaceConflict), namespace.Name)
	require.NoError(t, admin.Delete(t.Context(), pool))
	awaitGone(t, &v1alpha1.SubPool{ObjectMeta: metav1.ObjectMeta{Name: pool.Name}})

	requireNoWrites(t, mark, func(c harness.Call) bool {
		// The refused attempt to make the namespace is how the operator finds out that it exists.
		return c.About(pool.Name) && c.ObjectRef.Resource != "subpools" && (c.OK() || c.ObjectRef.Resource != "namespaces")
	})
	assert.Nil(t, read[corev1.Namespace](t, "", namespace.Name).DeletionTimestamp)
	assert.Equal(t, "yes", read[corev1.ConfigMap](t, namespace.Name, "settings").Data["mine"])
	assert.Equal(t, "mine", string(read[corev1.Secret](t, namespace.Name, credentialsName).Data["cpa_client_key"]))
	assert.Nil(t, read[corev1.PersistentVolumeClaim](t, namespace.Name, claimName).DeletionTimestamp)
}
