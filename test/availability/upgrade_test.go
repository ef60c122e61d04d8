//go:build integration || chaos

package availability

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

// fleetSize is how many pools an upgrade concerns.
const fleetSize = 50

// fleet are pools that several tests use; none changes them.
var fleet []*v1alpha1.SubPool

// createFleet makes the pools for the first test that asks for them.
func createFleet(t *testing.T) []*v1alpha1.SubPool {
	t.Helper()
	if fleet == nil {
		maker := start(t, cluster)
		fleet = newPools("fleet", fleetSize)
		create(t, fleet...)
		awaitReady(t, fleet...)
		require.NoError(t, maker.Stop())
	}
	return fleet
}

func workloadOf(pool *v1alpha1.SubPool) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: in(pool, "runtime")}
}

// The operator is replaced by the next version, with other settings, and then by the one before again: no Pod is restarted, nothing is
// written, and the pools stay Ready.
func TestUpgradeAndRollback(t *testing.T) {
	pools := createFleet(t)
	before := stateOf(t, pools)
	present, err := harness.Program("MANAGER", "manager")
	require.NoError(t, err)
	next := t.TempDir()
	built, err := exec.CommandContext(t.Context(), "../../hack/build.sh", "v99.0.0-next", next).CombinedOutput()
	require.NoError(t, err, string(built))

	for _, version := range []struct {
		name, program string
		flags         []string
	}{
		{"n", present, nil},
		{"n+1", next + "/manager", []string{
			"--leader-elect-lease-duration=20s", "--leader-elect-renew-deadline=12s", "--leader-elect-retry-period=1s",
		}},
		{"n again", present, nil},
	} {
		t.Setenv("MANAGER", version.program)
		from := markAudit(t)
		operator := start(t, cluster, version.flags...)
		harness.Eventually(t, budget, func(c *assert.CollectT) { assert.Len(c, lookedAt(c, from, operator, pools), fleetSize) })
		require.NoError(t, operator.Stop())
		calls, writes := 0, []harness.Call{}
		for _, call := range callsAbout(t, from, pools) {
			calls++
			if call.Write() {
				writes = append(writes, call)
			}
		}
		t.Logf("%s: %.1f calls for each pool, %d writes in all", version.name, float64(calls)/fleetSize, len(writes))
		assert.Empty(t, writes, version.name)
		assert.Equal(t, before, stateOf(t, pools), version.name)
	}
}

// stateOf returns the version of each SubPool, with its status, and the identity of its Pod.
func stateOf(t *testing.T, pools []*v1alpha1.SubPool) map[string]string {
	t.Helper()
	state := map[string]string{}
	for _, pool := range pools {
		pod := &corev1.Pod{ObjectMeta: in(pool, "runtime-0")}
		cluster.Get(t, pod)
		cluster.Get(t, pool)
		state[pool.Name] = pool.ResourceVersion + " " + string(pod.UID)
	}
	return state
}

// callsAbout returns the operator's calls that name one of the pools.
func callsAbout(t require.TestingT, since harness.Mark, pools []*v1alpha1.SubPool) []harness.Call {
	calls, err := cluster.Audit.OperatorCalls(background, since, func(c harness.Call) bool {
		for _, pool := range pools {
			if c.About(pool.Name) {
				return true
			}
		}
		return false
	})
	require.NoError(t, err)
	return calls
}

// lookedAt returns the pools whose Secret the process watches, which their first pass begins with.
func lookedAt(t require.TestingT, since harness.Mark, operator *harness.Operator, pools []*v1alpha1.SubPool) map[string]bool {
	found := map[string]bool{}
	for _, call := range callsAbout(t, since, pools) {
		if call.ObjectRef.Resource == "secrets" && call.Verb == "watch" && call.OK() && call.TokenID() == operator.TokenID {
			found[call.ObjectRef.Namespace] = true
		}
	}
	return found
}
