//go:build integration

package integration

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

const brokenImage = "registry.example.invalid/subrelay/cpa:" + brokenTag

// ROL-03: a bad image is cured by a good one, without a person and without touching what is Ready or the volume.
func TestROL03GoodImageAfterBadOne(t *testing.T) {
	t.Parallel()
	pool := createReady(t, "cured")
	kept := uidsOf(t, pool)

	change(t, pool, func(spec *v1alpha1.SubPoolSpec) { spec.CPA.Image = brokenImage })
	awaitNotReady(t, pool, v1alpha1.ReasonImagePullFailed)
	assert.Contains(t, message(t, pool, v1alpha1.ConditionReady), brokenImage)

	change(t, pool, func(spec *v1alpha1.SubPoolSpec) { spec.CPA.Image = cpaImage })
	awaitReady(t, pool)
	assert.Equal(t, cpaImage+imageDigest, pool.Status.Images[0].ImageID)
	assert.Equal(t, kept, uidsOf(t, pool))
	eventually(t, readyBudget, func(c *assert.CollectT) {
		assert.True(c, slices.ContainsFunc(poolEvents(c, pool), func(event corev1.Event) bool {
			return event.Reason == v1alpha1.EventPodReplaced
		}))
	})
}

// ROL-03: also when the very first image was bad, so that there is no older good revision.
func TestROL03FirstImageBad(t *testing.T) {
	t.Parallel()
	pool := newPool("first-bad")
	pool.Spec.CPA.Image = brokenImage
	create(t, pool)
	awaitNotReady(t, pool, v1alpha1.ReasonImagePullFailed)
	change(t, pool, func(spec *v1alpha1.SubPoolSpec) { spec.CPA.Image = cpaImage })
	awaitReady(t, pool)
}

// RES-02: a node drain is not held up by a pool, whether its Pod is healthy or not.
func TestRES02DrainsGoOn(t *testing.T) {
	t.Parallel()
	pool := createReady(t, "drained")
	pod := &corev1.Pod{ObjectMeta: in(pool, "runtime-0")}
	get(t, pod)
	eviction := &policyv1.Eviction{ObjectMeta: in(pool, pod.Name)}
	// The disruption controller needs a moment to count the Pod.
	eventually(t, readyBudget, func(c *assert.CollectT) {
		assert.NoError(c, cluster.Admin.SubResource("eviction").Create(t.Context(), pod, eviction))
	})
	eventually(t, readyBudget, func(c *assert.CollectT) {
		replaced := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
		get(c, replaced)
		assert.NotEqual(c, pod.UID, replaced.UID)
	})
	awaitReady(t, pool)
}
