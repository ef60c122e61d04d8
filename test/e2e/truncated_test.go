//go:build e2e

package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// CFG-05: cpa was interrupted while it wrote its configuration, so that the file is empty, and ends at every start. The init
// script mends that in a new Pod, and what was in the file before is not needed for it.
func TestCFG05ConfigurationLost(t *testing.T) {
	t.Parallel()
	id := createReady(t, newPool("config"))
	before := possessionsOf(t, id)
	inContainer(t, id, cpaName, ": >/cpa/config.yaml")
	end(t, id, cpaName)
	awaitTrouble(t, id, v1alpha1.ReasonContainerCrashing, "container cpa ", "Completed, exit code 0", "kubectl .*logs")
	awaitReady(t, id)
	assert.Equal(t, before.dataKey, possessionsOf(t, id).dataKey)
}
