//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	netv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// NET-09: pools run on while the shared Mihomo is down, and start while it does not exist. They say so within seconds,
// nothing goes out past it, and all is well by itself when it is back. No other test runs meanwhile.
func TestNET09ProxyDown(t *testing.T) {
	running := createReady(t, newPool("running"))
	useProvider(t, running)
	pod := readPod(t, running)
	cpa := forward(t, "http", namespaceOf(running), cpaName, cpaPort)
	complete := func(t require.TestingT) int {
		return cpa.ask(t, http.MethodPost, "/v1/chat/completions", key(t, running, "cpa_client_key"), `{"model":"small-model"}`).status
	}
	t.Run("seen by Mihomo and nobody else", func(t *testing.T) {
		lines := mihomoLog(t, pod.Status.PodIP)
		assert.True(t, slices.ContainsFunc(lines, func(line string) bool {
			return strings.Contains(line, "host="+providerAddress+":80") && strings.Contains(line, "decision=nodes-or-nothing[exit]")
		}), "%q", lines)
		requireOnlyExitCalls(t)
	})

	scaleProxy(t, 0)
	down := time.Now()
	eventually(t, healBudget, func(c *assert.CollectT) { requireProxyReady(c, running, metav1.ConditionFalse) })
	progress("pool %s says that Mihomo is down after %.1f s", running, time.Since(down).Seconds())
	awaitProxyPods(t, 0)

	starting := newPool("starting")
	create(t, starting)
	eventually(t, readyBudget, func(c *assert.CollectT) {
		requireProxyReady(c, starting.Name, metav1.ConditionFalse)
		ready := readyCondition(c, starting.Name)
		assert.Equal(c, v1alpha1.ReasonEndpointsUnavailable, ready.Reason, ready.Message)
		assert.True(c, podReady(readPod(c, starting.Name)), "the applications run")
	})
	started := readPod(t, starting.Name)

	outside := "tcp=" + providerAddress + ":80"
	for _, id := range []string{running, starting.Name} {
		assert.Equal(t, refused, inPool(id).try(t, "", outside)[outside], "pool %s, directly", id)
	}
	require.Equal(t, reached, free.try(t, "", outside)[outside], "control case")
	assert.Equal(t, http.StatusInternalServerError, complete(t), "a call without Mihomo")
	requireOnlyExitCalls(t)

	scaleProxy(t, 2)
	awaitProxyPods(t, 2)
	for id, before := range map[string]*corev1.Pod{running: pod, starting.Name: started} {
		awaitReady(t, id)
		now := readPod(t, id)
		assert.Equal(t, before.UID, now.UID, "Pod of pool %s", id)
		for _, container := range now.Status.ContainerStatuses {
			assert.Zero(t, container.RestartCount, "restarts of %s of pool %s", container.Name, id)
		}
	}
	eventually(t, healBudget, func(c *assert.CollectT) { assert.Equal(c, http.StatusOK, complete(c)) })
}

// requireOnlyExitCalls: whoever asked the provider came from the node behind Mihomo.
func requireOnlyExitCalls(t *testing.T) {
	t.Helper()
	exits := &corev1.PodList{}
	require.NoError(t, admin.List(t.Context(), exits, client.InNamespace("mihomo-exit")))
	var addresses []string
	for i := range exits.Items {
		addresses = append(addresses, exits.Items[i].Status.PodIP)
	}
	calls := providerCalls(t)
	assert.NotEmpty(t, calls)
	for _, source := range calls {
		assert.Contains(t, addresses, source)
	}
}

func requireProxyReady(t require.TestingT, poolID string, want metav1.ConditionStatus) {
	proxy := meta.FindStatusCondition(readPool(t, poolID).Status.Conditions, v1alpha1.ConditionProxyReady)
	require.NotNil(t, proxy)
	require.Equal(t, want, proxy.Status)
	if want == metav1.ConditionFalse {
		require.Equal(t, v1alpha1.ReasonEndpointsUnavailable, proxy.Reason)
	}
}

// scaleProxy sets the number of the shared Mihomo's replicas. Those that go do not drain: this is about their absence.
func scaleProxy(t *testing.T, replicas int32) {
	t.Helper()
	scale := func(ctx context.Context, replicas int32) error {
		deployment := &appsv1.Deployment{ObjectMeta: inNamespace(sharedNamespace, "mihomo-gateway")}
		patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
		return admin.Patch(ctx, deployment, client.RawPatch("application/merge-patch+json", []byte(patch)))
	}
	require.NoError(t, scale(t.Context(), replicas))
	if replicas == 0 {
		t.Cleanup(func() { assert.NoError(t, scale(context.Background(), 2)) })
		require.NoError(t, admin.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(sharedNamespace),
			client.MatchingLabels{"app.kubernetes.io/name": "mihomo-gateway"}, client.GracePeriodSeconds(0)))
	}
}

func awaitProxyPods(t *testing.T, count int) {
	t.Helper()
	eventually(t, readyBudget, func(c *assert.CollectT) {
		list := &corev1.PodList{}
		require.NoError(c, admin.List(t.Context(), list, client.InNamespace(sharedNamespace),
			client.MatchingLabels{"app.kubernetes.io/name": "mihomo-gateway"}))
		require.Len(c, list.Items, count)
		for i := range list.Items {
			assert.True(c, podReady(&list.Items[i]))
		}
	})
}

// NET-02: another port behind the shared Mihomo's Service, by number or by name, reaches every pool, and no Pod restarts.
// No other test runs meanwhile.
func TestNET02ProxyPortMoves(t *testing.T) {
	var pools []string
	for range 2 {
		pool := newPool("follower")
		create(t, pool)
		pools = append(pools, pool.Name)
	}
	setUpOtherProxy(t)
	uids := map[string]types.UID{}
	for _, id := range pools {
		awaitReady(t, id)
		uids[id] = readPod(t, id).UID
	}
	other := map[string]string{"app": "other-proxy"}
	service := read[corev1.Service](t, sharedNamespace, "mihomo-gateway")
	original := service.DeepCopy()
	t.Cleanup(func() {
		restored := read[corev1.Service](t, sharedNamespace, "mihomo-gateway")
		restored.Spec.Selector, restored.Spec.Ports = original.Spec.Selector, original.Spec.Ports
		assert.NoError(t, admin.Update(context.Background(), restored))
	})
	target, way := "get="+providerAddress+":80", service.Spec.ClusterIP+":7890"
	for _, step := range []struct {
		name       string
		selector   map[string]string
		targetPort intstr.IntOrString
		podPort    int32
	}{
		{"another number", other, intstr.FromInt32(17890), 17890},
		{"a name", other, intstr.FromString("moved"), 27890},
		{"a name and other Pods", original.Spec.Selector, intstr.FromString("http-proxy"), 7890},
	} {
		t.Run(step.name, func(t *testing.T) {
			service := read[corev1.Service](t, sharedNamespace, "mihomo-gateway")
			service.Spec.Selector, service.Spec.Ports[0].TargetPort = step.selector, step.targetPort
			require.NoError(t, admin.Update(t.Context(), service))
			for _, id := range pools {
				eventually(t, 2*healBudget, func(c *assert.CollectT) {
					assert.Equal(c, []int32{step.podPort}, egressPorts(c, id, "allow-mihomo"))
					out, err := lab.Kubectl(t.Context(), "exec", podName, "--namespace="+namespaceOf(id), "--container="+cpaName, "--",
						"prober", "try", "-proxy="+way, target)
					require.NoError(c, err)
					assert.Equal(c, reached, readProbes(c, out)[target].outcome(), out)
				})
				assert.Equal(t, uids[id], readPod(t, id).UID)
			}
		})
	}
}

// setUpOtherProxy runs what manifests/other-proxy.yaml describes for as long as the test runs.
func setUpOtherProxy(t *testing.T) {
	t.Helper()
	const manifest = "--filename=manifests/other-proxy.yaml"
	t.Cleanup(func() {
		_, err := lab.Kubectl(context.Background(), "delete", "--wait=false", manifest)
		assert.NoError(t, err)
	})
	_, err := lab.Kubectl(t.Context(), "apply", "--server-side", manifest)
	require.NoError(t, err)
	_, err = lab.Kubectl(t.Context(), "wait", "pod/other-proxy", "--for=condition=Ready", "--namespace="+sharedNamespace, "--timeout=60s")
	require.NoError(t, err)
}

// egressPorts are the ports that a pool's policy opens.
func egressPorts(t require.TestingT, poolID, policy string) []int32 {
	var ports []int32
	for _, rule := range read[netv1.NetworkPolicy](t, namespaceOf(poolID), policy).Spec.Egress {
		for _, port := range rule.Ports {
			ports = append(ports, port.Port.IntVal)
		}
	}
	return ports
}
