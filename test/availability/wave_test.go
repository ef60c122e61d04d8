//go:build integration || chaos

package availability

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

const (
	// waveSize is how many pools are made at once when something goes wrong.
	waveSize = 20

	// begunSize is how many of them exist in part by then.
	begunSize = 5

	// handoverBudget is how long it takes until another replica acts when the leader ends in good order.
	handoverBudget = 2 * time.Second
)

// CTL-04: the API server pauses, or the leader ends, in the middle of a wave of creations. All pools become as if nothing
// had happened. Pauses below the renew deadline of 10 s end no process.
func TestCTL04CreationWave(t *testing.T) {
	for _, c := range []struct {
		name    string
		disturb func(t *testing.T, leader *harness.Operator)
		goesOn  bool
	}{
		{"API server pauses for 4 s", func(t *testing.T, _ *harness.Operator) { pause(t, apiServer(t), 4*time.Second) }, true},
		{"API server pauses for 8 s", func(t *testing.T, _ *harness.Operator) { pause(t, apiServer(t), 8*time.Second) }, true},
		{"leader is killed", func(t *testing.T, leader *harness.Operator) { require.NoError(t, leader.Kill()) }, false},
		{"leader ends", func(t *testing.T, leader *harness.Operator) { require.NoError(t, leader.Stop()) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			leader, standby := startTwo(t)
			from := markAudit(t)
			pools := beginWave(t)
			c.disturb(t, leader)
			if !c.goesOn {
				start(t, cluster) // as a Deployment does it
			}
			requireWave(t, from, budget, pools)
			if c.goesOn {
				assert.Empty(t, changesBy(t, from, standby), "the leader stays the leader")
				requireRuns(t, leader)
			}
			requireRuns(t, standby)
		})
	}
}

// CTL-04: a leader that cannot reach the API server for longer than its renew deadline ends. The replica that waits goes
// on waiting, and acts when the API server is back.
func TestCTL04LongPause(t *testing.T) {
	leader, standby := startTwo(t)
	from := markAudit(t)
	pause(t, apiServer(t), 20*time.Second)
	requireExits(t, leader)
	pool := newPools("later", 1)[0]
	create(t, pool)
	awaitReady(t, pool)
	require.NotEmpty(t, changesBy(t, from, standby))
	requireRuns(t, standby)
}

// CTL-04: a leader that sleeps for longer than its Lease lasts, with passes under way, is replaced. When it wakes up it
// writes nothing, not even the Lease, and ends.
func TestCTL04SleepingLeader(t *testing.T) {
	brisk := []string{
		"--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s", "--leader-elect-retry-period=200ms",
	}
	leader, standby := startTwo(t, brisk...)
	from := markAudit(t)
	pools := beginWave(t)
	require.NotEmpty(t, changesBy(t, from, leader), "it has begun")
	require.NoError(t, syscall.Kill(leader.PID(), syscall.SIGSTOP))
	requireWave(t, from, budget, pools)
	awake := markAudit(t)
	require.NoError(t, syscall.Kill(leader.PID(), syscall.SIGCONT))
	requireExits(t, leader)
	assert.Empty(t, changesBy(t, awake, leader), "it slept for too long")
	require.NotEmpty(t, changesBy(t, from, standby))
	requireRuns(t, standby)
}

// CTL-04: when the leader ends in good order, another replica acts within 2 s.
func TestCTL04HandOver(t *testing.T) {
	leader, standby := startTwo(t)
	pool, from := newPools("turn", 1)[0], markAudit(t)
	require.NoError(t, syscall.Kill(leader.PID(), syscall.SIGTERM))
	asked := time.Now()
	create(t, pool)
	awaitReady(t, pool)
	requireExits(t, leader)
	first := changesBy(t, from, standby)[0].Received.Sub(asked)
	t.Logf("the other replica acted %s after SIGTERM", first.Round(time.Millisecond))
	assert.Less(t, first, handoverBudget)
}

// startTwo runs two replicas, of which the first leads.
func startTwo(t *testing.T, flags ...string) (leader, standby *harness.Operator) {
	t.Helper()
	from := markAudit(t)
	leader = start(t, cluster, flags...)
	harness.Eventually(t, budget, func(c *assert.CollectT) {
		renewals, err := cluster.Audit.OperatorCalls(t.Context(), from, func(call harness.Call) bool {
			return call.ObjectRef.Resource == "leases" && call.Verb == "update" && call.OK() && call.TokenID() == leader.TokenID
		})
		require.NoError(c, err)
		assert.NotEmpty(c, renewals)
	})
	return leader, start(t, cluster, flags...)
}

// beginWave makes pools and returns when the operator has begun with some of them.
func beginWave(t *testing.T) []*v1alpha1.SubPool {
	t.Helper()
	pools := newPools("wave", waveSize)
	create(t, pools...)
	harness.Eventually(t, budget, func(c *assert.CollectT) {
		begun := 0
		for _, pool := range pools {
			if err := cluster.Admin.Get(t.Context(), keyOf(namespaceOf(pool)), namespaceOf(pool)); err == nil {
				begun++
			}
		}
		assert.GreaterOrEqual(c, begun, begunSize)
	})
	return pools
}

// requireWave waits until the pools are ready, and all alike.
func requireWave(t *testing.T, from harness.Mark, within time.Duration, pools []*v1alpha1.SubPool) {
	t.Helper()
	for _, pool := range pools {
		awaitReadyWithin(t, within, pool)
	}
	want := contents(t, pools[0])
	require.NotEmpty(t, want)
	for _, pool := range pools {
		harness.Eventually(t, budget, func(c *assert.CollectT) { requireContents(c, want, 1, pool) })
	}
	requireNoKeysTwice(t, from, pools)
}

func apiServer(t *testing.T) int {
	t.Helper()
	pid, err := lab.PID(t.Context(), "kube-apiserver")
	require.NoError(t, err)
	return pid
}

// pause stops a process for a while.
func pause(t *testing.T, pid int, duration time.Duration) {
	t.Helper()
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	defer func() { require.NoError(t, syscall.Kill(pid, syscall.SIGCONT)) }()
	<-time.After(duration)
}

// changesBy returns what one process wrote, Leases included.
func changesBy(t *testing.T, since harness.Mark, process *harness.Operator) []harness.Call {
	t.Helper()
	calls, err := cluster.Audit.OperatorCalls(t.Context(), since, func(c harness.Call) bool {
		changed := c.Write() || c.ObjectRef.Resource == "leases" && c.Verb != "get"
		return changed && c.OK() && c.TokenID() == process.TokenID
	})
	require.NoError(t, err)
	return calls
}

func requireRuns(t *testing.T, operator *harness.Operator) {
	t.Helper()
	select {
	case <-operator.Exited:
		require.Fail(t, "a replica ended", operator.LogTail())
	default:
	}
}

func requireExits(t *testing.T, operator *harness.Operator) {
	t.Helper()
	select {
	case <-operator.Exited:
	case <-time.After(budget):
		require.Fail(t, "a replica that does not lead any more goes on", operator.LogTail())
	}
}
