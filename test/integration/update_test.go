//go:build integration

package integration

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

func TestUpdateConverges(t *testing.T) {
	t.Parallel()
	pool := createReady(t, "update")
	kept := uidsOf(t, pool)
	const image = "registry.example.invalid/subrelay/cpa:v2"
	change(t, pool, func(spec *v1alpha1.SubPoolSpec) {
		spec.CPA.Image = image
		spec.CPAManager.Resources.Limits.Memory = resource.MustParse("512Mi")
	})
	awaitReady(t, pool)

	assert.Equal(t, image+imageDigest, pool.Status.Images[0].ImageID)
	pod := &corev1.Pod{ObjectMeta: in(pool, "runtime-0")}
	get(t, pod)
	assert.Equal(t, image, pod.Spec.Containers[0].Image)
	for _, container := range pod.Spec.InitContainers {
		if container.Name == "initialize-config" {
			assert.Equal(t, image, container.Image)
		}
	}
	assert.Equal(t, "512Mi", pod.Spec.Containers[1].Resources.Limits.Memory().String())
	assert.Equal(t, kept, uidsOf(t, pool))
}

// STA-04: suspended is not broken, and not empty.
func TestSTA04SuspendAndResume(t *testing.T) {
	t.Parallel()
	pool := createReady(t, "suspend")
	kept := uidsOf(t, pool)
	change(t, pool, func(spec *v1alpha1.SubPoolSpec) { spec.Suspend = true })
	awaitNotReady(t, pool, v1alpha1.ReasonSuspended)
	awaitCondition(t, pool, readyBudget, v1alpha1.ConditionSuspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended)
	awaitGone(t, readyBudget, &corev1.Pod{ObjectMeta: in(pool, "runtime-0")})
	assert.Equal(t, kept, uidsOf(t, pool))

	// Somebody scales it up.
	workload := &appsv1.StatefulSet{ObjectMeta: in(pool, "runtime")}
	get(t, workload)
	base := workload.DeepCopy()
	workload.Spec.Replicas = ptr.To[int32](1)
	require.NoError(t, cluster.Admin.Patch(t.Context(), workload, client.MergeFrom(base)))
	eventually(t, readyBudget, func(c *assert.CollectT) {
		get(c, workload)
		assert.Equal(c, ptr.To[int32](0), workload.Spec.Replicas)
		assert.Equal(c, workload.Generation, workload.Status.ObservedGeneration,
			"until then the StatefulSet's controller may still make the Pod that was asked for")
	})
	awaitGone(t, readyBudget, &corev1.Pod{ObjectMeta: in(pool, "runtime-0")})

	// What changes meanwhile waits for the resumption, and the old version does not start first.
	const image = "registry.example.invalid/subrelay/cpa:v2"
	change(t, pool, func(spec *v1alpha1.SubPoolSpec) { spec.CPA.Image = image })
	awaitNotReady(t, pool, v1alpha1.ReasonSuspended)
	requireGone(t, &corev1.Pod{ObjectMeta: in(pool, "runtime-0")})

	change(t, pool, func(spec *v1alpha1.SubPoolSpec) { spec.Suspend = false })
	awaitReady(t, pool)
	awaitCondition(t, pool, readyBudget, v1alpha1.ConditionSuspended, metav1.ConditionFalse, v1alpha1.ReasonRunning)
	assert.Equal(t, image+imageDigest, pool.Status.Images[0].ImageID)
	assert.Equal(t, kept, uidsOf(t, pool))
}

// A pool whose image cannot be pulled can be suspended, and resumed with a good one.
func TestROL03SuspendWhileBroken(t *testing.T) {
	t.Parallel()
	pool := newPool("broken")
	pool.Spec.CPA.Image = "registry.example.invalid/subrelay/cpa:" + brokenTag
	create(t, pool)
	awaitNotReady(t, pool, v1alpha1.ReasonImagePullFailed)
	change(t, pool, func(spec *v1alpha1.SubPoolSpec) { spec.Suspend = true })
	awaitNotReady(t, pool, v1alpha1.ReasonSuspended)
	awaitGone(t, readyBudget, &corev1.Pod{ObjectMeta: in(pool, "runtime-0")})
	change(t, pool, func(spec *v1alpha1.SubPoolSpec) {
		spec.Suspend = false
		spec.CPA.Image = cpaImage
	})
	awaitReady(t, pool)
}

func TestEnvelopeExceeded(t *testing.T) {
	t.Parallel()
	pool := newPool("huge")
	pool.Spec.CPA.Resources.Requests.CPU = resource.MustParse("4")
	pool.Spec.CPA.Resources.Limits.CPU = resource.MustParse("4")
	pool.Spec.Storage.Size = resource.MustParse("200Gi")
	create(t, pool)
	awaitNotReady(t, pool, v1alpha1.ReasonResourcesExceedBaseline)
	for _, part := range []string{"requests.cpu 4100m > 4", "storage.size 200Gi > 100Gi", operatorConfig} {
		assert.Contains(t, message(t, pool, v1alpha1.ConditionReady), part)
	}
	assert.NotContains(t, message(t, pool, v1alpha1.ConditionReady), "memory")
	awaitCondition(t, pool, readyBudget, v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonResourcesExceedBaseline)
	awaitOperator(t)
	requireGone(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceOf(pool.Name)}})
}
