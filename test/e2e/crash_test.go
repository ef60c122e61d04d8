//go:build e2e

package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// once heads orders that are followed at one start only.
const once = "rm $orders; "

// RES-03: a container that keeps ending is named with its exit code, and the pool is ready when that is over.
func TestRES03CrashLoopEndsByItself(t *testing.T) {
	t.Parallel()
	id := createReady(t, newUnrulyPool(t, "crash"))
	before := possessionsOf(t, id)

	order(t, id, managerName, once+"exit 3")
	awaitTrouble(t, id, v1alpha1.ReasonContainerCrashing, "container cpa-manager", "exit code 3", unrulyManager)
	awaitReady(t, id)
	assert.Equal(t, before, possessionsOf(t, id))
}

// ROL-03: a good image cures a container that keeps ending, also one that ends with success, as CPA does when it cannot
// start.
func TestROL03GoodImageEndsCrashLoop(t *testing.T) {
	t.Parallel()
	id := createReady(t, newUnrulyPool(t, "crash-image"))
	before := possessionsOf(t, id)

	order(t, id, cpaName, "exit 0")
	awaitTrouble(t, id, v1alpha1.ReasonContainerCrashing, "container cpa ", "exit code 0", unrulyCPA)
	change(t, id, func(spec *v1alpha1.SubPoolSpec) { spec.CPA.Image = cpaImage })
	awaitReady(t, id)
	assert.Equal(t, before, possessionsOf(t, id))
}

// CFG-12: the kernel ends an application that needs more memory than its limit. The status says so, an Event keeps it,
// and the pool is ready again when the need is over.
func TestCFG12OutOfMemory(t *testing.T) {
	t.Parallel()
	id := createReady(t, newUnrulyPool(t, "memory"))
	before := possessionsOf(t, id)

	order(t, id, cpaName, once+"exec dd if=/dev/zero of=/dev/null bs=512M count=1")
	awaitTrouble(t, id, v1alpha1.ReasonContainerCrashing, "container cpa ", "OOMKilled")
	awaitReady(t, id)
	assert.Equal(t, before, possessionsOf(t, id))
	eventually(t, healBudget, func(c *assert.CollectT) {
		assert.Regexp(c, "container cpa .*OOMKilled", notesAbout(c, id))
	})
}
