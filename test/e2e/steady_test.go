//go:build e2e

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/example-org/subrelay-operator/test/harness"
)

const (
	// steadyWindow is how long a pool is watched that nobody changes. Probes, usage polls and status updates of the node
	// go on meanwhile.
	steadyWindow = time.Minute
	steadyTick   = 5 * time.Second
)

// The operator writes nothing about a pool that is as it should be.
func TestSteadyPool(t *testing.T) {
	t.Parallel()
	id := createReady(t, newPool("steady"))
	writes := func(since harness.Mark) ([]harness.Call, error) {
		return audit.OperatorCalls(t.Context(), since, func(c harness.Call) bool { return c.Write() && c.About(id) })
	}
	making, err := writes(0)
	require.NoError(t, err)
	require.NotEmpty(t, making, "control case: the log shows what the operator wrote to make the pool")

	mark, err := audit.Mark(t.Context())
	require.NoError(t, err)
	assert.Never(t, func() bool {
		early, err := writes(mark)
		return err != nil || len(early) > 0
	}, steadyWindow, steadyTick)
	all, err := writes(mark)
	require.NoError(t, err)
	require.Empty(t, all)
}
