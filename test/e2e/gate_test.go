//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/internal/subpool"
)

const (
	// gateBudget, in seconds, is short, and long enough for many Pods to start side by side.
	gateBudget = 10

	gatedPools = 10
	// gatedStarts is how often a process that holds keys looks for holes in the walls.
	gatedStarts = 50
)

// No process that holds keys runs before the walls stand, whether the program that enforces policies is slow, absent or
// misled. The tests change the operator configuration and stop that program, so no other test runs meanwhile.
func TestStartGate(t *testing.T) {
	other := createReady(t, newPool("neighbour"))
	openWalls(t, other)
	apiServer := serviceIP(t, metav1.NamespaceDefault, "kubernetes") + ":443"
	// A new configuration restarts the other pool too, so the control case does without it.
	neighbour := fmt.Sprintf("tcp=%s:%d", serviceIP(t, namespaceOf(other), cpaName), cpaPort)
	targets := []string{
		"tcp=" + apiServer,
		fmt.Sprintf("tcp=%s:10250", readPod(t, other).Status.HostIP),
		fmt.Sprintf("tcp=%s:8080", read[corev1.Pod](t, free.namespace, free.pod).Status.PodIP),
		neighbour,
	}
	configure := func(gate map[string]any) {
		t.Helper()
		useOperatorConfig(t, func(config map[string]any) {
			maps.Copy(config["startGate"].(map[string]any), gate)
			config["runtime"] = map[string]any{"cpa": watchful(targets...)}
		})
	}
	configure(map[string]any{"budgetSeconds": gateBudget})

	resume := stopPolicyAgent(t)
	pools := []*v1alpha1.SubPool{newPool("gated")}
	create(t, pools[0])
	t.Run("agent stopped", func(t *testing.T) { testAgentStopped(t, pools[0].Name, apiServer, resume) })
	for len(pools) < gatedPools {
		pool := newPool("gated")
		create(t, pool)
		pools = append(pools, pool)
	}
	t.Run("first instruction", func(t *testing.T) { testFirstInstruction(t, pools, targets) })
	t.Run("without the gate", func(t *testing.T) {
		// The control case: with the same late agent a process without a gate before it gets out.
		resume := stopPolicyAgent(t)
		before := podUIDs(t, pools)
		configure(map[string]any{"enabled": false})
		reachedBy := map[string]int{}
		for _, pool := range pools {
			count(reachedBy, awaitWatched(t, pool.Name, before[pool.Name], targets))
		}
		resume()
		delete(reachedBy, neighbour)
		assert.Len(t, reachedBy, len(targets)-1)
		for target, pods := range reachedBy {
			assert.Equal(t, gatedPools, pods, "Pods that reached %s", target)
		}
		awaitReady(t, pools[0].Name)
		requireIsolation(t, pools[0].Name, metav1.ConditionUnknown, v1alpha1.ReasonGateDisabled)
	})
	for _, pool := range pools[1:] {
		require.NoError(t, admin.Delete(t.Context(), pool))
	}
	t.Run("never isolated", func(t *testing.T) {
		// To a Pod in which this address is forbidden the walls never stand, since the shared Mihomo answers every pool.
		mihomo := serviceIP(t, sharedNamespace, "mihomo-gateway") + ":7890"
		configure(map[string]any{"budgetSeconds": 1, "forbidden": []string{apiServer, mihomo}})
		awaitTrouble(t, pools[0].Name, v1alpha1.ReasonIsolationNotEnforced, "still reached "+mihomo+" after 1s")
		requireNothingStarted(t, pools[0].Name)
	})
}

// testAgentStopped: nothing enforces policies for a new Pod, so nothing is started in it. When something does, the pool
// becomes ready by itself.
func testAgentStopped(t *testing.T, poolID, apiServer string, resume func()) {
	t.Helper()
	awaitTrouble(t, poolID, v1alpha1.ReasonIsolationNotEnforced, "still reached "+apiServer, "does not enforce NetworkPolicies")
	requireIsolation(t, poolID, metav1.ConditionFalse, v1alpha1.ReasonIsolationNotEnforced)
	requireNothingStarted(t, poolID)
	resume()
	awaitReady(t, poolID)
	requireIsolation(t, poolID, metav1.ConditionTrue, v1alpha1.ReasonGatePassed)
}

// testFirstInstruction starts Pods again and again, half of the time with an agent that is late for all of them.
func testFirstInstruction(t *testing.T, pools []*v1alpha1.SubPool, targets []string) {
	t.Helper()
	reachedBy, starts := map[string]int{}, 0
	look := func(before map[string]types.UID) {
		for _, pool := range pools {
			count(reachedBy, awaitWatched(t, pool.Name, before[pool.Name], targets))
			starts++
		}
	}
	look(nil)
	for late := true; starts < gatedStarts; late = !late {
		before, resume := podUIDs(t, pools), func() {}
		if late {
			resume = stopPolicyAgent(t)
		}
		for _, pool := range pools {
			require.NoError(t, admin.Delete(t.Context(), &corev1.Pod{ObjectMeta: inNamespace(namespaceOf(pool.Name), podName)}))
		}
		for _, pool := range pools {
			if late {
				awaitGateAtWork(t, pool.Name, before[pool.Name])
			}
		}
		resume()
		look(before)
	}
	assert.Empty(t, reachedBy, "targets that a process with keys has reached, in %d starts", starts)
	progress("in %d starts behind the gate nothing was reached", starts)
}

// count adds the targets that were reached.
func count(reachedBy map[string]int, probes map[string]probe) {
	for target, probe := range probes {
		if probe.Reached > 0 {
			reachedBy[target]++
		}
	}
}

func podUIDs(t *testing.T, pools []*v1alpha1.SubPool) map[string]types.UID {
	t.Helper()
	uids := map[string]types.UID{}
	for _, pool := range pools {
		uids[pool.Name] = readPod(t, pool.Name).UID
	}
	return uids
}

// awaitWatched waits for another Pod of the pool and for what its cpa has seen.
func awaitWatched(t *testing.T, poolID string, before types.UID, targets []string) map[string]probe {
	t.Helper()
	var probes map[string]probe
	eventually(t, readyBudget, func(c *assert.CollectT) {
		pod := readPod(c, poolID)
		require.NotEqual(c, before, pod.UID)
		probes = watched(c, pod, targets)
	})
	return probes
}

// awaitGateAtWork waits until the gate of another Pod of the pool looks at walls that do not stand.
func awaitGateAtWork(t *testing.T, poolID string, before types.UID) {
	t.Helper()
	eventually(t, readyBudget, func(c *assert.CollectT) {
		pod := readPod(c, poolID)
		require.NotEqual(c, before, pod.UID)
		require.NotEmpty(c, pod.Status.InitContainerStatuses)
		gate := pod.Status.InitContainerStatuses[0]
		assert.True(c, gate.State.Running != nil || gate.LastTerminationState.Terminated != nil, "%+v", gate.State)
	})
	requireNothingStarted(t, poolID)
}

// requireNothingStarted: of all containers the gate alone has run.
func requireNothingStarted(t *testing.T, poolID string) {
	t.Helper()
	pod := readPod(t, poolID)
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	require.Greater(t, len(statuses), 1)
	require.Equal(t, subpool.GateName, statuses[0].Name)
	for _, status := range statuses[1:] {
		assert.Empty(t, status.ContainerID, "%s has not run", status.Name)
	}
}

func requireIsolation(t *testing.T, poolID string, status metav1.ConditionStatus, reason string) {
	t.Helper()
	condition := meta.FindStatusCondition(readPool(t, poolID).Status.Conditions, v1alpha1.ConditionIsolationEnforced)
	require.NotNil(t, condition)
	assert.Equal(t, status, condition.Status, condition.Message)
	assert.Equal(t, reason, condition.Reason, condition.Message)
}

// NET-03: a cache for names on the node, which is an address and no Pod, is reached as soon as the operator configuration
// names it, on port 53 alone and without a restart. No other test runs meanwhile.
func TestNET03NameCache(t *testing.T) {
	id := createReady(t, newPool("cached"))
	pod := readPod(t, id)
	ways := []string{"dns-udp=" + nameCacheAddress + ":53", "dns-tcp=" + nameCacheAddress + ":53"}
	elsewhere := "tcp=" + nameCacheAddress + ":80"
	for way, outcome := range inPool(id).try(t, "", ways...) {
		assert.Equal(t, refused, outcome, way)
	}
	useOperatorConfig(t, func(config map[string]any) {
		config["dns"] = append(config["dns"].([]any), map[string]any{"cidr": nameCacheAddress + "/32"})
	})
	begin := time.Now()
	eventually(t, readyBudget, func(c *assert.CollectT) {
		for way, outcome := range inPool(id).try(t, "", ways...) {
			assert.Equal(c, reached, outcome, way)
		}
	})
	progress("pool %s reaches the cache for names after %.1f s", id, time.Since(begin).Seconds())
	assert.Equal(t, refused, inPool(id).try(t, "", elsewhere)[elsewhere])
	assert.Equal(t, reached, free.try(t, "", elsewhere)[elsewhere], "control case")
	assert.Equal(t, pod.UID, readPod(t, id).UID)
	awaitReady(t, id)
}
