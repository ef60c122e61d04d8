package controllers

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/internal/apply"
	"github.com/example-org/subrelay-operator/internal/subpool"
)

// assessIsolation says whether the pool's walls are known to stand: by the start gate of the Pod, and by the policies
// themselves.
func assessIsolation(seen *observation) verdict {
	gate := assessGate(seen)
	if gate.status == metav1.ConditionFalse {
		return gate
	}
	if foreign := foreignPolicies(seen); len(foreign) > 0 {
		return no(v1alpha1.ReasonForeignNetworkPolicy,
			"NetworkPolicy %s in Namespace %s was not made by the operator, and may let through more than a pool is meant to: "+
				"remove it unless you want that", strings.Join(foreign, ", "), seen.namespace.Name)
	}
	return gate
}

// keepsFromReady: the pool is not isolated. A policy that somebody added on purpose, and a gate that an administrator
// switched off, are told and no more.
func keepsFromReady(isolation verdict) bool {
	return isolation.reason == v1alpha1.ReasonIsolationNotEnforced
}

// gatePending is said from the pool's first pass until its gate has something to say.
const gatePending = "no Pod has passed its start gate yet"

// assessGate repeats the last words of the Pod's start gate.
func assessGate(seen *observation) verdict {
	gate := gateStatus(seen.pod)
	switch {
	case gate == nil && seen.config != nil && !*seen.config.Config.StartGate.Enabled:
		return verdict{metav1.ConditionUnknown, v1alpha1.ReasonGateDisabled,
			"startGate.enabled is false in the operator configuration: whether NetworkPolicies are enforced is not looked at"}
	case gate == nil:
		return verdict{metav1.ConditionUnknown, v1alpha1.ReasonGatePending, gatePending}
	case gate.State.Terminated != nil && gate.State.Terminated.ExitCode == 0:
		return verdict{metav1.ConditionTrue, v1alpha1.ReasonGatePassed, strings.TrimSpace(gate.State.Terminated.Message)}
	}
	for _, ended := range []*corev1.ContainerStateTerminated{gate.State.Terminated, gate.LastTerminationState.Terminated} {
		if ended != nil && ended.ExitCode != 0 {
			return no(v1alpha1.ReasonIsolationNotEnforced, "the start gate of Pod %s failed with %s: %s",
				seen.pod.Name, ending(ended), strings.TrimSpace(ended.Message))
		}
	}
	return verdict{metav1.ConditionUnknown, v1alpha1.ReasonGatePending, gatePending}
}

func gateStatus(pod *corev1.Pod) *corev1.ContainerStatus {
	if pod == nil {
		return nil
	}
	for i := range pod.Status.InitContainerStatuses {
		if pod.Status.InitContainerStatuses[i].Name == subpool.GateName {
			return &pod.Status.InitContainerStatuses[i]
		}
	}
	return nil
}

// foreignPolicies are the names of NetworkPolicies in the pool's namespace that are not the pool's, sorted.
func foreignPolicies(seen *observation) []string {
	var names []string
	for key, object := range seen.live {
		if key.Kind == "NetworkPolicy" && !ownedBy(object, seen.pool) {
			names = append(names, key.Name)
		}
	}
	slices.Sort(names)
	return names
}

// restoredPolicies are the names of policies whose loss or change opened the walls of a running Pod. A missing policy
// other than the default deny only closes a door.
func restoredPolicies(seen *observation, writes []apply.Write) []string {
	if seen.pod == nil {
		return nil
	}
	var names []string
	for _, write := range writes {
		if write.Key.Kind == "NetworkPolicy" &&
			(write.Cause == apply.Edited || write.Cause == apply.Missing && write.Key.Name == subpool.DefaultDenyName) {
			names = append(names, write.Key.Name)
		}
	}
	slices.Sort(names)
	return names
}
