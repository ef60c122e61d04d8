//go:build e2e

package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// truthBudget is how soon the status must say what is wrong.
const truthBudget = time.Minute

// awaitTrouble waits until Ready is False for the reason, and its message matches all patterns.
func awaitTrouble(t *testing.T, poolID, reason string, patterns ...string) {
	t.Helper()
	begin := time.Now()
	eventually(t, truthBudget, func(c *assert.CollectT) {
		ready := readyCondition(c, poolID)
		assert.Equal(c, metav1.ConditionFalse, ready.Status)
		assert.Equal(c, reason, ready.Reason, ready.Message)
		for _, pattern := range patterns {
			assert.Regexp(c, pattern, ready.Message)
		}
	})
	progress("pool %s says %s after %.1f s", poolID, reason, time.Since(begin).Seconds())
}

// awaitStartedAgain waits until a container that ran when the Pod was read is ready again after another start.
func awaitStartedAgain(t *testing.T, poolID string, before *corev1.Pod, container string) {
	t.Helper()
	eventually(t, readyBudget, func(c *assert.CollectT) {
		pod := readPod(c, poolID)
		assert.Equal(c, before.UID, pod.UID)
		now := containerStatus(c, pod, container)
		assert.Greater(c, now.RestartCount, containerStatus(c, before, container).RestartCount, "starts of %s", container)
		assert.True(c, now.Ready, "%s is ready", container)
	})
}

// possessions are what no trouble of a node or an application may change.
type possessions struct {
	poolData
	namespace, credentials, claim types.UID
}

func possessionsOf(t *testing.T, poolID string) possessions {
	t.Helper()
	return possessions{
		poolData:    dataOf(t, poolID),
		namespace:   read[corev1.Namespace](t, "", namespaceOf(poolID)).UID,
		credentials: readCredentials(t, poolID).UID,
		claim:       read[corev1.PersistentVolumeClaim](t, namespaceOf(poolID), claimName).UID,
	}
}

// notesAbout are the Events that a person finds at the SubPool.
func notesAbout(t require.TestingT, poolID string) []string {
	events := &eventsv1.EventList{}
	require.NoError(t, admin.List(context.Background(), events))
	var notes []string
	pool := readPool(t, poolID)
	for i := range events.Items {
		if event := &events.Items[i]; event.Regarding.UID == pool.UID {
			notes = append(notes, event.Type+" "+event.Reason+": "+event.Note)
		}
	}
	return notes
}
