//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

const (
	// tick is how often a condition is looked at.
	tick = 100 * time.Millisecond

	// healBudget is the product's promise for whatever is watched.
	healBudget = 5 * time.Second

	// readyBudget is for a Pod that stops in good order (up to 30 s) and starts again, on a machine that does much else.
	readyBudget = 2 * time.Minute

	// goneBudget is for a Pod that stops in good order and a namespace with everything in it. Kubernetes' own controller
	// waits up to 15 s between two looks at one that something holds.
	goneBudget = 2 * time.Minute
)

// Images that the node has.
const (
	cpaImage     = "registry.example.invalid/subrelay-standin/cpa:dev"
	managerImage = "registry.example.invalid/subrelay-standin/cpa-manager:dev"
)

// Names that the specification gives.
const (
	podName         = "runtime-0"
	claimName       = "data-runtime-0"
	credentialsName = "subpool-credentials"
	cpaName         = "cpa"
	managerName     = "cpa-manager"
	cpaPort         = 8317
	managerPort     = 18317
)

// namespaceOf has a short name here, since every test needs it.
var namespaceOf = harness.NamespaceOf

// newPool returns a small pool whose id begins with the given word and is not in use.
func newPool(word string) *v1alpha1.SubPool {
	return harness.NewPool(word, cpaImage, managerImage, harness.Resources("50m", "64Mi", "1", "256Mi"))
}

// create makes an object and deletes it at the end of the test, without waiting for its end.
func create(t *testing.T, object client.Object) {
	t.Helper()
	require.NoError(t, admin.Create(t.Context(), object))
	t.Cleanup(func() {
		err := admin.Delete(context.Background(), object)
		assert.NoError(t, client.IgnoreNotFound(err))
	})
}

// createReady makes a pool, waits until it is ready and returns its id.
func createReady(t *testing.T, pool *v1alpha1.SubPool) string {
	t.Helper()
	begin := time.Now()
	create(t, pool)
	awaitReady(t, pool.Name)
	progress("pool %s is ready, %.1f s after it was made", pool.Name, time.Since(begin).Seconds())
	return pool.Name
}

// read returns an object as it is now.
func read[T any, P interface {
	*T
	client.Object
}](t require.TestingT, namespace, name string) P {
	object := P(new(T))
	key := client.ObjectKey{Namespace: namespace, Name: name}
	require.NoError(t, admin.Get(context.Background(), key, object))
	return object
}

func readPool(t require.TestingT, id string) *v1alpha1.SubPool {
	return read[v1alpha1.SubPool](t, "", id)
}

func readPod(t require.TestingT, poolID string) *corev1.Pod {
	return read[corev1.Pod](t, namespaceOf(poolID), podName)
}

func readWorkload(t require.TestingT, poolID string) *appsv1.StatefulSet {
	return read[appsv1.StatefulSet](t, namespaceOf(poolID), "runtime")
}

// readCredentials returns the pool's Secret.
func readCredentials(t require.TestingT, poolID string) *corev1.Secret {
	return read[corev1.Secret](t, namespaceOf(poolID), credentialsName)
}

// key returns one of the pool's keys.
func key(t require.TestingT, poolID, name string) string {
	return string(readCredentials(t, poolID).Data[name])
}

// eventually waits until check reports no failure.
func eventually(t *testing.T, within time.Duration, check func(c *assert.CollectT)) {
	t.Helper()
	require.EventuallyWithT(t, check, within, tick)
}

// awaitReady waits until the pool is ready with its newest spec.
func awaitReady(t *testing.T, poolID string) {
	t.Helper()
	awaitCondition(t, poolID, metav1.ConditionTrue, v1alpha1.ReasonPoolReady)
}

// awaitCondition waits until Ready is this way for the pool's newest spec and returns its message.
func awaitCondition(t *testing.T, poolID string, status metav1.ConditionStatus, reason string) string {
	t.Helper()
	var message string
	eventually(t, readyBudget, func(c *assert.CollectT) {
		ready := readyCondition(c, poolID)
		assert.Equal(c, status, ready.Status, "SubPool %s: %s: %s", poolID, ready.Reason, ready.Message)
		assert.Equal(c, reason, ready.Reason, "SubPool %s: %s", poolID, ready.Message)
		message = ready.Message
	})
	return message
}

// readyCondition returns Ready as it is now; it has to be about the pool's newest spec.
func readyCondition(t require.TestingT, poolID string) metav1.Condition {
	pool := readPool(t, poolID)
	ready := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionReady)
	require.NotNil(t, ready, "SubPool %s has no condition Ready", poolID)
	require.Equal(t, pool.Generation, ready.ObservedGeneration, "generation of SubPool %s that Ready is about", poolID)
	return *ready
}

// change edits the pool's spec as a user would.
func change(t *testing.T, poolID string, edit func(*v1alpha1.SubPoolSpec)) {
	t.Helper()
	pool := readPool(t, poolID)
	base := pool.DeepCopy()
	edit(&pool.Spec)
	require.NoError(t, admin.Patch(t.Context(), pool, client.MergeFrom(base)))
}

func suspend(t *testing.T, poolID string, suspended bool) {
	t.Helper()
	change(t, poolID, func(spec *v1alpha1.SubPoolSpec) { spec.Suspend = suspended })
}

// restart deletes the pool's Pod and waits until its successor is ready.
func restart(t *testing.T, poolID string) {
	t.Helper()
	before := readPod(t, poolID)
	require.NoError(t, admin.Delete(t.Context(), before))
	awaitOtherPod(t, poolID, before.UID)
	awaitReady(t, poolID)
}

// awaitOtherPod waits until the pool has a ready Pod that is not the one with this UID.
func awaitOtherPod(t *testing.T, poolID string, before types.UID) {
	t.Helper()
	eventually(t, readyBudget, func(c *assert.CollectT) {
		pod := readPod(c, poolID)
		require.NotEqual(c, before, pod.UID, "Pod of pool %s", poolID)
		require.True(c, podReady(pod), "Pod of pool %s: %s", poolID, pod.Status.Phase)
	})
}

func podReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// awaitNoPod waits until nothing runs in the pool.
func awaitNoPod(t *testing.T, poolID string) {
	t.Helper()
	eventually(t, goneBudget, func(c *assert.CollectT) {
		pods := &corev1.PodList{}
		require.NoError(c, admin.List(t.Context(), pods, client.InNamespace(namespaceOf(poolID))))
		assert.Empty(c, pods.Items)
	})
}

// awaitGone waits until an object does not exist.
func awaitGone(t *testing.T, object client.Object) {
	t.Helper()
	eventually(t, goneBudget, func(c *assert.CollectT) {
		err := admin.Get(t.Context(), client.ObjectKeyFromObject(object), object)
		assert.True(c, apierrors.IsNotFound(err), "%T %s should be gone: %v", object, client.ObjectKeyFromObject(object), err)
	})
}

// requireGone checks that an object does not exist.
func requireGone(t *testing.T, object client.Object) {
	t.Helper()
	err := admin.Get(t.Context(), client.ObjectKeyFromObject(object), object)
	require.True(t, apierrors.IsNotFound(err), "%T %s should be gone: %v", object, client.ObjectKeyFromObject(object), err)
}

// inContainer runs a shell script in a container of the pool's Pod, as a user would, and returns what it printed.
func inContainer(t *testing.T, poolID, container, script string) string {
	t.Helper()
	out, err := execIn(t, poolID, container, script)
	require.NoError(t, err)
	return out
}

// end asks the first process of a container to end. The container's end may kill the asking process too, before it has said
// that it succeeded; callers wait for what they expect of the container.
func end(t *testing.T, poolID, container string) {
	t.Helper()
	if _, err := execIn(t, poolID, container, "kill 1"); err != nil {
		require.ErrorContains(t, err, "exit code 137")
	}
}

func execIn(t *testing.T, poolID, container, script string) (string, error) {
	t.Helper()
	return lab.Kubectl(t.Context(), "exec", podName, "--namespace="+namespaceOf(poolID), "--container="+container,
		"--", "sh", "-c", script)
}

// toJSON is an object as the API server shows it.
func toJSON(t *testing.T, object any) string {
	t.Helper()
	content, err := json.Marshal(object)
	require.NoError(t, err)
	return string(content)
}
