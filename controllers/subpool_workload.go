package controllers

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/internal/subpool"
)

// assessWorkload says whether the runtime Pod is Ready on the current revision and reachable through both
// Services, or names the first thing in its way, in the order in which a Pod comes up.
func assessWorkload(seen *observation, done outcome) verdict {
	if seen.pool.Spec.Suspend {
		return suspendedWorkload(seen)
	}
	workload, pod := seen.workload, seen.pod
	switch {
	case workload == nil:
		return no(v1alpha1.ReasonWorkloadMissing, "StatefulSet %s does not exist yet", subpool.RuntimeName)
	case done.workloadWritten:
		return notReady("StatefulSet %s was changed, its Pod has yet to follow", subpool.RuntimeName)
	case pod == nil:
		return notReady("Pod %s does not exist yet; if it stays so, see: kubectl -n %s describe statefulset %s",
			subpool.PodName(), workload.Namespace, subpool.RuntimeName)
	}
	if problem := podProblem(seen); problem != "" {
		return notReady("%s", problem)
	}
	if !rolledOut(workload) || pod.Labels[appsv1.StatefulSetRevisionLabel] != workload.Status.UpdateRevision {
		return notReady("Pod %s runs an older revision and is being replaced", pod.Name)
	}
	if workload.Status.ReadyReplicas < 1 {
		return notReady("Pod %s became ready, the StatefulSet has not counted it yet", pod.Name)
	}
	for _, name := range []string{subpool.CPAName, subpool.CPAManagerName} {
		if !seen.hasService(name) {
			return no(v1alpha1.ReasonServiceMissing, "Service %s does not exist yet", name)
		}
	}
	return yes(v1alpha1.ReasonReplicaReady)
}

func suspendedWorkload(seen *observation) verdict {
	if seen.pod != nil {
		return no(v1alpha1.ReasonSuspended, "Pod %s is stopping", seen.pod.Name)
	}
	return no(v1alpha1.ReasonSuspended, "no Pod runs")
}

func notReady(format string, args ...any) verdict {
	return no(v1alpha1.ReasonWorkloadsNotReady, format, args...)
}

// rolledOut: the StatefulSet controller has seen the current template and nothing of an older one is left.
func rolledOut(workload *appsv1.StatefulSet) bool {
	return workload != nil &&
		workload.Status.ObservedGeneration >= workload.Generation &&
		workload.Status.CurrentRevision == workload.Status.UpdateRevision
}

// podProblem says why the Pod is not Ready, empty when it is.
func podProblem(seen *observation) string {
	pod := seen.pod
	if !pod.DeletionTimestamp.IsZero() {
		return fmt.Sprintf("Pod %s is stopping", pod.Name)
	}
	if scheduled := podCondition(pod, corev1.PodScheduled); scheduled != nil && scheduled.Status == corev1.ConditionFalse {
		if claim := seen.claim; claim != nil && claim.Status.Phase == corev1.ClaimPending && pod.Spec.NodeName == "" {
			return fmt.Sprintf("Pod %s is not scheduled: %s (its volume claim %s is pending, storage class %q)",
				pod.Name, scheduled.Message, claim.Name, ptr.Deref(claim.Spec.StorageClassName, ""))
		}
		return fmt.Sprintf("Pod %s is not scheduled: %s", pod.Name, scheduled.Message)
	}
	for _, status := range pod.Status.InitContainerStatuses {
		if status.State.Running != nil {
			return fmt.Sprintf("init container %s is running", status.Name)
		}
		if !initDone(status) {
			return fmt.Sprintf("init container %s %s", status.Name, containerProblem(status))
		}
	}
	for _, status := range pod.Status.ContainerStatuses {
		if !status.Ready {
			return fmt.Sprintf("container %s %s", status.Name, containerProblem(status))
		}
	}
	if ready := podCondition(pod, corev1.PodReady); ready == nil || ready.Status != corev1.ConditionTrue {
		return fmt.Sprintf("Pod %s is starting", pod.Name)
	}
	return ""
}

func initDone(status corev1.ContainerStatus) bool {
	return status.State.Terminated != nil && status.State.Terminated.ExitCode == 0
}

// Waiting reasons of a container whose turn has simply not come.
const (
	waitsForInit    = "PodInitializing"
	waitsForCreator = "ContainerCreating"
)

// containerProblem repeats what the node says of a container that is not ready, or of an init container that is not
// done. CPA ends with exit code 0 when its configuration is bad, so an exit is a problem whatever its code.
func containerProblem(status corev1.ContainerStatus) string {
	state, last := status.State, status.LastTerminationState.Terminated
	switch {
	case state.Running != nil && ptr.Deref(status.Started, false):
		return "runs, but its readiness probe does not succeed"
	case state.Running != nil:
		return "is starting"
	case state.Terminated != nil:
		return fmt.Sprintf("ended with %s, exit code %d; image %s",
			state.Terminated.Reason, state.Terminated.ExitCode, status.Image)
	case state.Waiting == nil || state.Waiting.Reason == waitsForInit || state.Waiting.Reason == waitsForCreator:
		return "is about to start"
	case last != nil:
		return fmt.Sprintf("waits to be restarted (%s) after it ended with %s, exit code %d; image %s",
			state.Waiting.Reason, last.Reason, last.ExitCode, status.Image)
	default:
		return fmt.Sprintf("waits: %s: %s; image %s", state.Waiting.Reason, state.Waiting.Message, status.Image)
	}
}

func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}
