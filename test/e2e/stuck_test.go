//go:build e2e

package e2e

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

// blockedBudget is for a deletion to be called blocked, which takes 2 minutes, and for the next look at it.
const blockedBudget = 3 * time.Minute

// DEL-05: the node cannot end the Pod of a pool that is being deleted. The pool says so from the beginning, calls it
// blocked in time, forces nothing, and goes by itself when the node can.
func TestDEL05PodThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	id := createReady(t, newPool("stuck"))
	pod := readPod(t, id)
	shims, err := harness.Shims(pod.UID)
	require.NoError(t, err)
	require.NotEmpty(t, shims)
	t.Cleanup(func() { assert.NoError(t, harness.Signal(shims, syscall.SIGCONT)) })
	require.NoError(t, harness.Signal(shims, syscall.SIGSTOP))

	require.NoError(t, admin.Delete(t.Context(), readPool(t, id)))
	awaitTrouble(t, id, v1alpha1.ReasonDeletionInProgress, podName)
	eventually(t, blockedBudget, func(c *assert.CollectT) {
		deleting := meta.FindStatusCondition(readPool(c, id).Status.Conditions, v1alpha1.ConditionDeleting)
		require.NotNil(c, deleting)
		assert.Equal(c, v1alpha1.ReasonDeletionBlocked, deleting.Reason)
		assert.Contains(c, deleting.Message, podName)
		assert.Contains(c, deleting.Message, pod.Spec.NodeName)
	})
	assert.Equal(t, pod.UID, readPod(t, id).UID)

	require.NoError(t, harness.Signal(shims, syscall.SIGCONT))
	awaitGone(t, &v1alpha1.SubPool{ObjectMeta: metav1.ObjectMeta{Name: id}})
}

// DEL-05: an application that does not react to the wish to end gets its 30 s, and the deletion goes on.
func TestDEL05DeafApplication(t *testing.T) {
	t.Parallel()
	id := createReady(t, newUnrulyPool(t, "deaf"))
	order(t, id, managerName, `trap "" TERM; "$0.real" "$@" & while :; do wait; sleep 1; done`)
	eventually(t, readyBudget, func(c *assert.CollectT) { assert.True(c, podReady(readPod(c, id))) })

	begin := time.Now()
	require.NoError(t, admin.Delete(t.Context(), readPool(t, id)))
	awaitTrouble(t, id, v1alpha1.ReasonDeletionInProgress, podName)
	awaitGone(t, &v1alpha1.SubPool{ObjectMeta: metav1.ObjectMeta{Name: id}})
	assert.Greater(t, time.Since(begin), 25*time.Second, "control case: the application did not end by itself")
}
