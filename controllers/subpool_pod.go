package controllers

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// Reasons that the node gives for a waiting container, and for events of a Pod.
const (
	waitsForInit    = "PodInitializing"
	waitsForCreator = "ContainerCreating"
	waitsAfterCrash = "CrashLoopBackOff"

	endedForMemory = "OOMKilled"

	// sandboxFailed is the one of startReasons that is not about a volume.
	sandboxFailed = "FailedCreatePodSandBox"
)

// probeGrace is how long a container may run without being ready before its readiness probe is held against it: the
// probe's period is 10 s, and the first answer may come late.
const probeGrace = 30 * time.Second

// imagePullReasons are those of a container whose image cannot be had.
var imagePullReasons = map[string]bool{
	"ErrImagePull": true, "ImagePullBackOff": true, "InvalidImageName": true, "ErrImageNeverPull": true,
	"ImageInspectError": true, "RegistryUnavailable": true,
}

// Reasons of Events that stop a Pod before a container of it runs.
var (
	createReasons = map[string]bool{"FailedCreate": true}
	startReasons  = map[string]bool{
		"FailedMount": true, "FailedAttachVolume": true, "FailedMapVolume": true, sandboxFailed: true,
	}
)

// assessPod names the first thing that keeps the Pod from being Ready, in the order in which a Pod comes up: scheduling,
// volumes, images, init containers, containers.
func assessPod(seen *observation) verdict {
	pod := seen.pod
	if !pod.DeletionTimestamp.IsZero() {
		return notReady("%s", stopping(pod))
	}
	if problem := assessScheduling(seen); !problem.ok() {
		return problem
	}
	if seen.warning != nil && aboutToStart(pod) {
		reason := v1alpha1.ReasonVolumeNotMounted
		if seen.warning.Reason == sandboxFailed {
			reason = v1alpha1.ReasonContainerStartFailed
		}
		return no(reason, "Pod %s cannot start: %s", pod.Name, seen.warning.Message)
	}
	for _, status := range pod.Status.InitContainerStatuses {
		if problem := assessInitContainer(status, seen.now); !problem.ok() {
			return withLogs(problem, pod, status.Name)
		}
	}
	for _, status := range pod.Status.ContainerStatuses {
		if problem := assessContainer("container "+status.Name, status, seen.now); !problem.ok() {
			return withLogs(problem, pod, status.Name)
		}
	}
	if !podReady(pod) {
		return starting()
	}
	return yes(v1alpha1.ReasonReplicaReady)
}

// stopping: only the node can say that a Pod has ended, so a node that is lost holds it.
func stopping(pod *corev1.Pod) string {
	if pod.Spec.NodeName == "" {
		return fmt.Sprintf("Pod %s is stopping", pod.Name)
	}
	return fmt.Sprintf("Pod %s is stopping, which node %s has yet to confirm", pod.Name, pod.Spec.NodeName)
}

// withLogs adds where to read what a container that ended has said.
func withLogs(problem verdict, pod *corev1.Pod, container string) verdict {
	if problem.reason == v1alpha1.ReasonContainerCrashing || problem.reason == v1alpha1.ReasonInitializationFailed {
		problem.message += fmt.Sprintf("; see: kubectl -n %s logs %s -c %s", pod.Namespace, pod.Name, container)
	}
	return problem
}

func assessScheduling(seen *observation) verdict {
	scheduled := podCondition(seen.pod, corev1.PodScheduled)
	if scheduled == nil || scheduled.Status != corev1.ConditionFalse {
		return yes(v1alpha1.ReasonReplicaReady)
	}
	if claim := seen.claim; claim != nil && claim.Status.Phase == corev1.ClaimPending && aboutVolumes(scheduled.Message) {
		return no(v1alpha1.ReasonVolumePending, "volume claim %s is pending (storage class %q), and Pod %s waits for it: %s",
			claim.Name, ptr.Deref(claim.Spec.StorageClassName, ""), seen.pod.Name, scheduled.Message)
	}
	return no(v1alpha1.ReasonUnschedulable, "no node takes Pod %s: %s", seen.pod.Name, scheduled.Message)
}

// aboutVolumes tells whether the scheduler found no node because of volumes. A claim that is pending proves nothing: that of
// a StorageClass that waits for the first consumer is so until the Pod has a node, whatever keeps it from having one.
func aboutVolumes(schedulersWords string) bool {
	words := strings.ToLower(schedulersWords)
	return strings.Contains(words, "volume") || strings.Contains(words, "storageclass") || strings.Contains(words, "free storage")
}

// aboutToStart: the Pod has a node and none of its containers has run.
func aboutToStart(pod *corev1.Pod) bool {
	if pod.Spec.NodeName == "" {
		return false
	}
	for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		if status.State.Waiting == nil || !waitsItsTurn(status.State.Waiting) {
			return false
		}
	}
	return true
}

func waitsItsTurn(waiting *corev1.ContainerStateWaiting) bool {
	return waiting.Reason == waitsForInit || waiting.Reason == waitsForCreator
}

func assessInitContainer(status corev1.ContainerStatus, now time.Time) verdict {
	name, state := "init container "+status.Name, status.State
	switch {
	case state.Terminated != nil && state.Terminated.ExitCode == 0:
		return yes(v1alpha1.ReasonReplicaReady)
	case state.Running != nil:
		return notReady("%s is running", name)
	}
	problem := assessContainer(name, status, now)
	if problem.reason == v1alpha1.ReasonContainerCrashing {
		problem.reason = v1alpha1.ReasonInitializationFailed
	}
	return problem
}

// assessContainer repeats what the node says of a container that is not ready.
func assessContainer(name string, status corev1.ContainerStatus, now time.Time) verdict {
	if status.Ready {
		return yes(v1alpha1.ReasonReplicaReady)
	}
	state, last := status.State, status.LastTerminationState.Terminated
	switch {
	case state.Terminated != nil:
		return no(v1alpha1.ReasonContainerCrashing, "%s ended with %s; image %s", name, ending(state.Terminated), status.Image)
	case state.Waiting != nil && imagePullReasons[state.Waiting.Reason]:
		return no(v1alpha1.ReasonImagePullFailed, "%s has no image %s: %s: %s",
			name, status.Image, state.Waiting.Reason, state.Waiting.Message)
	case last != nil && (state.Waiting != nil || last.Reason == endedForMemory):
		return no(v1alpha1.ReasonContainerCrashing, "%s is started again after it ended with %s; image %s",
			name, ending(last), status.Image)
	case state.Running != nil && ptr.Deref(status.Started, false) && now.Sub(state.Running.StartedAt.Time) > probeGrace:
		return no(v1alpha1.ReasonProbeFailing, "%s runs, but its readiness probe does not succeed", name)
	case keepsEnding(status, now):
		return no(v1alpha1.ReasonContainerCrashing, "%s is started again after it ended with %s; image %s",
			name, ending(last), status.Image)
	case state.Running != nil:
		return notReady("%s is starting", name)
	case state.Waiting == nil || waitsItsTurn(state.Waiting):
		return notReady("%s is about to start", name)
	default:
		return no(v1alpha1.ReasonContainerStartFailed, "%s cannot start: %s: %s; image %s",
			name, state.Waiting.Reason, state.Waiting.Message, status.Image)
	}
}

// keepsEnding: a container that has just been started, again and again, and never ran for long. That it is starting is no
// news which the next end would take back.
func keepsEnding(status corev1.ContainerStatus, now time.Time) bool {
	running, last := status.State.Running, status.LastTerminationState.Terminated
	return running != nil && now.Sub(running.StartedAt.Time) < crashPatience && status.RestartCount > 1 &&
		last != nil && last.FinishedAt.Sub(last.StartedAt.Time) < crashPatience
}

func ending(terminated *corev1.ContainerStateTerminated) string {
	return fmt.Sprintf("%s, exit code %d", terminated.Reason, terminated.ExitCode)
}

// waitsForNode: what keeps such a Pod is in its conditions and in those of its claim, which are watched.
func waitsForNode(pod *corev1.Pod) bool {
	return pod != nil && pod.DeletionTimestamp.IsZero() && pod.Spec.NodeName == ""
}

func podReady(pod *corev1.Pod) bool {
	if pod == nil {
		return false
	}
	ready := podCondition(pod, corev1.PodReady)
	return ready != nil && ready.Status == corev1.ConditionTrue
}

func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// crashPatience is how long a Pod that was Ready may have containers that keep ending before it is replaced.
const crashPatience = time.Minute

// crashing: since the Pod's init containers have run it was Ready, and now a container of it keeps ending. What the init
// scripts made may have been lost meanwhile, such as a config.yaml that CPA was writing when it was ended, and they run in a
// new Pod only. A new Pod that does not become Ready is left alone: it would be no better the next time.
func crashing(pod *corev1.Pod, now time.Time) bool {
	if pod == nil || !pod.DeletionTimestamp.IsZero() {
		return false
	}
	initialized, ready := podCondition(pod, corev1.PodInitialized), podCondition(pod, corev1.PodReady)
	if initialized == nil || ready == nil || ready.Status == corev1.ConditionTrue {
		return false
	}
	wasReady := ready.LastTransitionTime.After(initialized.LastTransitionTime.Time)
	return wasReady && now.Sub(ready.LastTransitionTime.Time) > crashPatience &&
		slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool {
			return status.State.Waiting != nil && status.State.Waiting.Reason == waitsAfterCrash
		})
}

// stuck: a Pod of an older revision is not Ready. The StatefulSet controller waits for such a Pod for ever, although the
// current revision is the cure.
func stuck(workload *appsv1.StatefulSet, pod *corev1.Pod) bool {
	if workload == nil || pod == nil || !pod.DeletionTimestamp.IsZero() {
		return false
	}
	return workload.Status.ObservedGeneration >= workload.Generation &&
		pod.Labels[appsv1.StatefulSetRevisionLabel] != workload.Status.UpdateRevision &&
		!podReady(pod)
}
