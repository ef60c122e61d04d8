package harness

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// awaitTick is how often a condition is looked at.
const awaitTick = 50 * time.Millisecond

// Eventually waits until check reports no failure.
func Eventually(t *testing.T, within time.Duration, check func(c *assert.CollectT)) {
	t.Helper()
	require.EventuallyWithT(t, check, within, awaitTick)
}

// Get reads an object anew, also after the test's own context has ended.
func (c *Cluster) Get(t require.TestingT, object client.Object) {
	require.NoError(t, c.Admin.Get(context.Background(), client.ObjectKeyFromObject(object), object))
}

// Create makes an object and deletes it at the end of the test, without waiting for its end.
func (c *Cluster) Create(t *testing.T, object client.Object) {
	t.Helper()
	require.NoError(t, c.Admin.Create(t.Context(), object))
	t.Cleanup(func() {
		err := c.Admin.Delete(context.Background(), object)
		// The kind itself may be gone by then.
		assert.True(t, err == nil || apierrors.IsNotFound(err) || meta.IsNoMatchError(err), "%v", err)
	})
}

// AwaitCondition waits until the pool's newest spec is judged so, and updates pool.
func (c *Cluster) AwaitCondition(t *testing.T, pool *v1alpha1.SubPool, within time.Duration,
	kind string, status metav1.ConditionStatus, reason string,
) {
	t.Helper()
	Eventually(t, within, func(collect *assert.CollectT) {
		c.Get(collect, pool)
		found := meta.FindStatusCondition(pool.Status.Conditions, kind)
		require.NotNil(collect, found, "condition %s of SubPool %s", kind, pool.Name)
		assert.Equal(collect, status, found.Status, "%s: %s: %s", kind, found.Reason, found.Message)
		assert.Equal(collect, reason, found.Reason, "%s: %s", kind, found.Message)
		assert.Equal(collect, pool.Generation, found.ObservedGeneration, "generation that %s is about", kind)
		assert.Equal(collect, pool.Generation, pool.Status.ObservedGeneration, "observed generation")
	})
}

// RequireGone checks that an object does not exist.
func (c *Cluster) RequireGone(t require.TestingT, object client.Object) {
	err := c.Admin.Get(context.Background(), client.ObjectKeyFromObject(object), object)
	require.True(t, apierrors.IsNotFound(err), "%T %s should be gone: %v", object, client.ObjectKeyFromObject(object), err)
}

// Message returns the message of a condition of the pool as it was read last.
func Message(t *testing.T, pool *v1alpha1.SubPool, kind string) string {
	t.Helper()
	condition := meta.FindStatusCondition(pool.Status.Conditions, kind)
	require.NotNil(t, condition, "condition %s of SubPool %s", kind, pool.Name)
	return condition.Message
}
