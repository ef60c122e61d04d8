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
	byOperator := func(c harness.Call) bool {
		return c.User.Username == operatorUser && c.Write() && about(c, id)
	}
	making, err := audit.Calls(t.Context(), 0, byOperator)
	require.NoError(t, err)
	require.NotEmpty(t, making, "control case: the log shows what the operator wrote to make the pool")

	mark, err := audit.Mark(t.Context())
	require.NoError(t, err)
	assert.Never(t, func() bool {
		early, err := audit.Calls(t.Context(), mark, byOperator)
		return err != nil || len(early) > 0
	}, steadyWindow, steadyTick)
	writes, err := audit.Calls(t.Context(), mark, byOperator)
	require.NoError(t, err)
	require.Empty(t, writes)
}

// about tells whether the call is about the pool: its SubPool, its namespace or something in there.
func about(c harness.Call, poolID string) bool {
	switch c.ObjectRef.Resource {
	case "subpools":
		return c.ObjectRef.Name == poolID
	case "namespaces":
		return c.ObjectRef.Name == namespaceOf(poolID)
	default:
		return c.ObjectRef.Namespace == namespaceOf(poolID)
	}
}
