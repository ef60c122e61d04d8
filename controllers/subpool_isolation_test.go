package controllers

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	netv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/internal/apply"
	"github.com/example-org/subrelay-operator/internal/subpool"
)

func ended(code int32, message string) corev1.ContainerState {
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message}}
}

// TestIsolation: the condition rests on the gate of the Pod that runs, and tells what else may open the walls.
func TestIsolation(t *testing.T) {
	running := func(t *testing.T) *observation {
		seen := running(t)
		seen.namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "subpool-demo-pool"}}
		seen.pod.Status.InitContainerStatuses = append([]corev1.ContainerStatus{{
			Name: subpool.GateName, State: ended(0, "refused: 10.96.0.1:443; reachable: mihomo:7890\n"),
		}}, seen.pod.Status.InitContainerStatuses...)
		return seen
	}
	gate := func(o *observation) *corev1.ContainerStatus { return &o.pod.Status.InitContainerStatuses[0] }
	const still = "this Pod still reached 10.96.0.1:443"
	for name, c := range map[string]struct {
		change func(*testing.T, *observation)
		status metav1.ConditionStatus
		reason string
		says   string
		blocks bool
	}{
		"passed": {
			func(*testing.T, *observation) {}, metav1.ConditionTrue, v1alpha1.ReasonGatePassed,
			"refused: 10.96.0.1:443; reachable: mihomo:7890", false,
		},
		"no Pod": {
			func(_ *testing.T, o *observation) { o.pod = nil }, metav1.ConditionUnknown, v1alpha1.ReasonGatePending, "", false,
		},
		"running": {
			func(_ *testing.T, o *observation) {
				gate(o).State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
			}, metav1.ConditionUnknown, v1alpha1.ReasonGatePending, "no Pod has passed its start gate yet", false,
		},
		"failed": {
			func(_ *testing.T, o *observation) { gate(o).State = ended(1, still) },
			metav1.ConditionFalse, v1alpha1.ReasonIsolationNotEnforced, "runtime-0 failed with Error, exit code 1: " + still, true,
		},
		"failed, runs again": {
			func(_ *testing.T, o *observation) {
				gate(o).State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
				gate(o).LastTerminationState = ended(1, still)
			}, metav1.ConditionFalse, v1alpha1.ReasonIsolationNotEnforced, still, true,
		},
		"failed, then passed": {
			func(_ *testing.T, o *observation) { gate(o).LastTerminationState = ended(1, still) },
			metav1.ConditionTrue, v1alpha1.ReasonGatePassed, "refused", false,
		},
		"switched off": {
			func(_ *testing.T, o *observation) {
				o.config.Config.StartGate.Enabled = ptr.To(false)
				o.pod.Status.InitContainerStatuses = nil
			}, metav1.ConditionUnknown, v1alpha1.ReasonGateDisabled, "startGate.enabled", false,
		},
		"Pod from before the gate": {
			func(_ *testing.T, o *observation) { o.pod.Status.InitContainerStatuses = nil },
			metav1.ConditionUnknown, v1alpha1.ReasonGatePending, "", false,
		},
		"STA-01 policy of others": {
			func(t *testing.T, o *observation) {
				policy := &netv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "allow-all", Namespace: "subpool-demo-pool"}}
				require.NoError(t, o.live.Add(scheme.Scheme, policy))
			}, metav1.ConditionFalse, v1alpha1.ReasonForeignNetworkPolicy, "NetworkPolicy allow-all", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			seen := running(t)
			c.change(t, seen)
			got := assessIsolation(seen)
			require.Equal(t, c.status, got.status)
			require.Equal(t, c.reason, got.reason)
			require.Contains(t, got.message, c.says)
			require.Equal(t, c.blocks, keepsFromReady(got))
		})
	}
}

// TestSTA01RestoredPolicies: what opened the walls of a running Pod is told, what only closed a door is not, and neither is
// a change that the operator wants.
func TestSTA01RestoredPolicies(t *testing.T) {
	write := func(kind, name string, cause apply.Cause) apply.Write {
		key := apply.Key{GroupVersionKind: netv1.SchemeGroupVersion.WithKind(kind)}
		key.Name = name
		return apply.Write{Key: key, Cause: cause}
	}
	writes := []apply.Write{
		write("NetworkPolicy", "default-deny", apply.Missing),
		write("NetworkPolicy", "allow-mihomo", apply.Missing),
		write("NetworkPolicy", "allow-gateway", apply.Outdated),
		write("NetworkPolicy", "allow-dns", apply.Edited),
		write("RoleBinding", "subpool-operator", apply.Edited),
	}
	seen := running(t)
	require.Equal(t, []string{"allow-dns", "default-deny"}, restoredPolicies(seen, writes))
	seen.pod = nil
	require.Empty(t, restoredPolicies(seen, writes), "nothing ran")
}
