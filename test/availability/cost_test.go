//go:build integration || chaos

package availability

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	netv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/test/harness"
)

// What the operator may ask of the API server and hold in memory. Nothing here depends on how fast the machine is; what does
// is measured by `make bench`.
const (
	// objectsOfPool is how many objects an internal pool has.
	objectsOfPool = 13

	// besidesObjects are the requests that making a pool takes beside one for each object: the finalizer, the watch on the
	// Secret, an Event, and a status for each phase that a pass happens to see, usually two.
	besidesObjects = 6

	// repairRequests: one write, and an Event if a running Pod's walls were open.
	repairRequests = 2

	// startRequests are those of a starting process that are about no pool: lists, watches, discovery.
	startRequests = 100

	// mostMemory is what a process with the fleet may hold at most, in MiB. It was 75 when this was written.
	mostMemory = 110
)

// TestMakingIsCheap: a pool takes hardly more requests than it has objects, and none of them is a read.
func TestMakingIsCheap(t *testing.T) {
	const count = 20
	start(t, cluster)
	from := markAudit(t)
	pools := newPools("cheap", count)
	create(t, pools...)
	awaitReady(t, pools...)

	calls := callsAbout(t, from, pools)
	t.Logf("%.1f requests for each pool", float64(len(calls))/count)
	assert.LessOrEqual(t, len(calls), count*(objectsOfPool+besidesObjects))
	for _, call := range calls {
		assert.True(t, call.Write() || call.Verb == "watch", "%s", call)
	}
}

// TestRepairIsCheap: what somebody has deleted comes back with one write, and nothing is read for it.
func TestRepairIsCheap(t *testing.T) {
	pool := createFleet(t)[:1]
	operator := start(t, cluster)
	harness.Eventually(t, budget, func(c *assert.CollectT) { assert.NotEmpty(c, lookedAt(c, 0, operator, pool)) })
	for _, object := range []client.Object{
		&corev1.Service{ObjectMeta: in(pool[0], "cpa")},
		&netv1.NetworkPolicy{ObjectMeta: in(pool[0], "default-deny")},
	} {
		from := markAudit(t)
		cluster.Get(t, object)
		deleted := object.GetUID()
		require.NoError(t, cluster.Admin.Delete(t.Context(), object))
		harness.Eventually(t, budget, func(c *assert.CollectT) {
			cluster.Get(c, object)
			assert.NotEqual(c, deleted, object.GetUID())
		})
		calls := callsAbout(t, from, pool)
		assert.NotEmpty(t, calls)
		assert.LessOrEqual(t, len(calls), repairRequests, "%v", calls)
	}
}

// TestStartIsCheap: a new process writes nothing about pools, asks once for each, and keeps little in memory.
func TestStartIsCheap(t *testing.T) {
	pools := createFleet(t)
	from := markAudit(t)
	operator := start(t, cluster)
	harness.Eventually(t, budget, func(c *assert.CollectT) { assert.Len(c, lookedAt(c, from, operator, pools), fleetSize) })

	calls := callsAbout(t, from, pools)
	for _, call := range calls {
		assert.False(t, call.Write(), "%s", call)
	}
	// A Secret about which the API server says nothing for a second, on a busy machine, is read as well.
	assert.Less(t, len(calls), fleetSize*3/2)
	aboutNoPool, err := cluster.Audit.OperatorCalls(t.Context(), from, func(call harness.Call) bool {
		inPool := call.ObjectRef.Namespace != "" && call.ObjectRef.Namespace != harness.SystemNamespace && call.ObjectRef.Namespace != harness.SharedNamespace
		ofPool := call.ObjectRef.Resource == "subpools" && call.ObjectRef.Name != "" // other tests have left some
		return !inPool && !ofPool && call.ObjectRef.Resource != "leases"
	})
	require.NoError(t, err)
	assert.LessOrEqual(t, len(aboutNoPool), startRequests)
	assert.LessOrEqual(t, residentMiB(t, operator), mostMemory)
}

// residentMiB is the most memory that the process has held.
func residentMiB(t *testing.T, operator *harness.Operator) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", operator.PID()))
	require.NoError(t, err)
	_, after, found := strings.Cut(string(status), "VmHWM:")
	require.True(t, found)
	kib, err := strconv.Atoi(strings.Fields(after)[0])
	require.NoError(t, err)
	t.Logf("%d MiB", kib>>10)
	return kib >> 10
}
