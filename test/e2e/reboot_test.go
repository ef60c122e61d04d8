//go:build e2e

package e2e

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

// What happens to a node happens to all that run on it, so no other test runs meanwhile.
func TestNodeTrouble(t *testing.T) {
	id := createReady(t, newPool("node"))
	before := possessionsOf(t, id)
	same := func(t *testing.T) {
		t.Helper()
		awaitReady(t, id)
		// A kubelet that has just started does not know its Pods yet.
		eventually(t, healBudget, func(c *assert.CollectT) {
			_, err := lab.Kubectl(t.Context(), "exec", podName, "--namespace="+namespaceOf(id), "--", "true")
			assert.NoError(c, err)
		})
		assert.Equal(t, before, possessionsOf(t, id))
	}

	t.Run("software restarted", func(t *testing.T) {
		pod := readPod(t, id)
		restartNodeSoftware(t)
		same(t)
		assert.Equal(t, pod.UID, readPod(t, id).UID)
		for _, name := range []string{cpaName, managerName} {
			was, is := containerStatus(t, pod, name), containerStatus(t, readPod(t, id), name)
			assert.Equal(t, was.ContainerID, is.ContainerID, "%s runs on", name)
		}
	})

	// Everything ends at once, the operator and the shared Mihomo with it.
	t.Run("rebooted", func(t *testing.T) {
		pod := readPod(t, id)
		processes, err := harness.Processes(allPods(t)...)
		require.NoError(t, err)
		require.NotEmpty(t, processes)
		require.NoError(t, harness.Signal(processes, syscall.SIGKILL))
		restartNodeSoftware(t)

		awaitStartedAgain(t, id, pod, cpaName)
		awaitStartedAgain(t, id, pod, managerName)
		same(t)
		assert.Equal(t, pod.UID, readPod(t, id).UID)
	})

	t.Run("drained", func(t *testing.T) {
		node := readPod(t, id).Spec.NodeName
		uncordon := func() {
			_, err := lab.Kubectl(context.Background(), "uncordon", node)
			assert.NoError(t, err)
		}
		t.Cleanup(uncordon)
		_, err := lab.Kubectl(t.Context(), "drain", node, "--pod-selector="+v1alpha1.LabelPool+"="+id,
			"--delete-emptydir-data", "--timeout=60s")
		require.NoError(t, err)
		awaitTrouble(t, id, v1alpha1.ReasonUnschedulable, podName, "unschedulable")
		uncordon()
		same(t)
	})
}

// restartNodeSoftware ends the two programs that run Pods and returns when they are at work again.
func restartNodeSoftware(t *testing.T) {
	t.Helper()
	begin := time.Now()
	for _, component := range []string{"containerd", "kubelet"} {
		require.NoError(t, lab.Restart(t.Context(), component))
	}
	nodes := &corev1.NodeList{}
	require.NoError(t, admin.List(t.Context(), nodes))
	for i := range nodes.Items {
		eventually(t, truthBudget, func(c *assert.CollectT) {
			lease := read[coordinationv1.Lease](c, corev1.NamespaceNodeLease, nodes.Items[i].Name)
			require.NotNil(c, lease.Spec.RenewTime)
			assert.True(c, lease.Spec.RenewTime.After(begin), "the node was last heard of at %s", lease.Spec.RenewTime)
		})
	}
}

// allPods are the UIDs of all Pods on the node.
func allPods(t *testing.T) []types.UID {
	t.Helper()
	pods := &corev1.PodList{}
	require.NoError(t, admin.List(t.Context(), pods))
	var uids []types.UID
	for i := range pods.Items {
		uids = append(uids, pods.Items[i].UID)
	}
	return uids
}
