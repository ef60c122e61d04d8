//go:build e2e

package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// ROL-03: an image that nobody has is named in the status, and the pool recovers by itself when the image is mended.
func TestROL03MissingImage(t *testing.T) {
	t.Parallel()
	id := createReady(t, newPool("missing"))
	const missing = "registry.example.invalid/subrelay-standin/cpa-manager:missing"
	change(t, id, func(spec *v1alpha1.SubPoolSpec) { spec.CPAManager.Image = missing })

	eventually(t, readyBudget, func(c *assert.CollectT) {
		ready := readyCondition(c, id)
		assert.Equal(c, v1alpha1.ReasonImagePullFailed, ready.Reason)
		assert.Regexp(c, "cpa-manager|initialize-manager", ready.Message)
		assert.Regexp(c, "ErrImagePull|ImagePullBackOff", ready.Message)
		assert.Contains(c, ready.Message, missing)
	})

	change(t, id, func(spec *v1alpha1.SubPoolSpec) { spec.CPAManager.Image = managerImage })
	awaitReady(t, id)
}
