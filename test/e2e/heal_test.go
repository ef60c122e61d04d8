//go:build e2e

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Whatever somebody deletes in a pool's namespace is back within the promised time. The namespace itself is another
// matter: its data is lost.
func TestDeletedObjectsComeBack(t *testing.T) {
	id := createReady(t, newPool("heal"))
	inContainer(t, id, cpaName, "echo kept >/cpa/marker")
	claim := read[corev1.PersistentVolumeClaim](t, namespaceOf(id), claimName)
	pod := readPod(t, id)

	for _, object := range poolObjects(t, id) {
		if _, ok := object.(*corev1.Namespace); ok {
			continue
		}
		deleteAndAwait(t, object)
		if _, ok := object.(*appsv1.StatefulSet); !ok {
			continue
		}
		awaitOtherPod(t, id, pod.UID)
		assert.Equal(t, "kept", inContainer(t, id, cpaName, "cat /cpa/marker"), "the new StatefulSet's Pod has the old volume")
	}
	assert.Equal(t, claim.UID, read[corev1.PersistentVolumeClaim](t, namespaceOf(id), claimName).UID)
	awaitReady(t, id)
}

// deleteAndAwait deletes an object and waits until there is another one of its name.
func deleteAndAwait(t *testing.T, object client.Object) {
	t.Helper()
	place := client.ObjectKeyFromObject(object)
	require.NoError(t, admin.Get(t.Context(), place, object))
	before := object.GetUID()
	begin := time.Now()
	require.NoError(t, admin.Delete(t.Context(), object))
	eventually(t, healBudget, func(c *assert.CollectT) {
		successor := object.DeepCopyObject().(client.Object)
		require.NoError(c, admin.Get(t.Context(), place, successor))
		assert.NotEqual(c, before, successor.GetUID(), "%T %s", object, place.Name)
	})
	t.Logf("%T %s is back after %d ms", object, place.Name, time.Since(begin).Milliseconds())
}
