//go:build integration

package integration

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

// cpaTagged is an image of CPA with one of the tags that the paper node knows.
func cpaTagged(tag string) v1alpha1.ImageReference {
	return v1alpha1.ImageReference("registry.example.invalid/subrelay/cpa:" + tag)
}

// troubles are what a node, or the way to one, says of an image of CPA with this tag, and what a pool's status makes of it.
var troubles = []struct{ tag, reason, says string }{
	{harness.BrokenTag, v1alpha1.ReasonImagePullFailed, "ImagePullBackOff"},
	{harness.FailingInitTag, v1alpha1.ReasonInitializationFailed, "init container initialize-config"},
	{harness.CrashingTag, v1alpha1.ReasonContainerCrashing, "Completed, exit code 0"},
	{harness.UnreadyTag, v1alpha1.ReasonProbeFailing, "container cpa runs, but its readiness probe does not succeed"},
	{harness.UnstartableTag, v1alpha1.ReasonContainerStartFailed, "no command specified"},
	{harness.UnmountableTag, v1alpha1.ReasonVolumeNotMounted, `secret "subpool-credentials" not found`},
	// No volume comes in this cluster, whose claims are all pending.
	{harness.UnboundTag, v1alpha1.ReasonVolumePending, "unbound immediate PersistentVolumeClaims"},
}

// RES-03: each trouble has a reason of its own and the words of who found it, and a good image ends it.
func TestRES03EveryTroubleHasItsReason(t *testing.T) {
	t.Parallel()
	for _, trouble := range troubles {
		t.Run(trouble.tag, func(t *testing.T) {
			t.Parallel()
			pool := newPool(trouble.tag)
			pool.Spec.CPA.Image = cpaTagged(trouble.tag)
			create(t, pool)
			awaitNotReady(t, pool, trouble.reason)
			assert.Contains(t, message(t, pool, v1alpha1.ConditionReady), trouble.says)

			change(t, pool, func(spec *v1alpha1.SubPoolSpec) { spec.CPA.Image = cpaImage })
			awaitReady(t, pool)
		})
	}
}
