//go:build e2e

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// ROL-06: a manager that needs longer for its start than liveness would wait, say because it migrates its database, is left
// alone until it answers, and the status calls that a start.
func TestROL06SlowStart(t *testing.T) {
	t.Parallel()
	id := createReady(t, newUnrulyPool(t, "slow"))
	order(t, id, managerName, "until [ -f /data/migrated ]; do sleep 1; done")
	var starting corev1.ContainerStatus
	eventually(t, truthBudget, func(c *assert.CollectT) {
		starting = containerStatus(c, readPod(c, id), managerName)
		require.NotNil(c, starting.State.Running)
	})

	liveness := containerOf(t, readPod(t, id), managerName).LivenessProbe
	patience := time.Duration(liveness.PeriodSeconds*liveness.FailureThreshold+liveness.TimeoutSeconds) * time.Second
	eventually(t, patience+truthBudget, func(c *assert.CollectT) {
		assert.Greater(c, time.Since(starting.State.Running.StartedAt.Time), patience, "how long the manager has been starting")
		ready := readyCondition(c, id)
		assert.Equal(c, metav1.ConditionFalse, ready.Status)
		assert.Equal(c, v1alpha1.ReasonWorkloadsNotReady, ready.Reason)
		assert.Contains(c, ready.Message, "cpa-manager is starting")
	})
	inContainer(t, id, managerName, "touch /data/migrated")
	awaitReady(t, id)
	assert.Equal(t, starting.ContainerID, containerStatus(t, readPod(t, id), managerName).ContainerID, "the container is the same")
}
