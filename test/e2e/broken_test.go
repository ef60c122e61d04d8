//go:build e2e

package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// An image that nobody has is named in the status, and the pool can still be suspended and, mended, resumed.
func TestMissingImage(t *testing.T) {
	t.Parallel()
	id := createReady(t, newPool("missing"))
	const missing = "registry.example.invalid/subrelay-standin/cpa-manager:missing"
	change(t, id, func(spec *v1alpha1.SubPoolSpec) { spec.CPAManager.Image = missing })

	eventually(t, readyBudget, func(c *assert.CollectT) {
		ready := readyCondition(c, id)
		assert.Equal(c, v1alpha1.ReasonWorkloadsNotReady, ready.Reason)
		assert.Contains(c, ready.Message, "container cpa-manager waits")
		assert.Regexp(c, "ErrImagePull|ImagePullBackOff", ready.Message)
		assert.Contains(c, ready.Message, missing)
	})

	suspend(t, id, true)
	awaitNoPod(t, id)
	awaitCondition(t, id, metav1.ConditionFalse, v1alpha1.ReasonSuspended)
	change(t, id, func(spec *v1alpha1.SubPoolSpec) {
		spec.CPAManager.Image = managerImage
		spec.Suspend = false
	})
	awaitReady(t, id)
}
