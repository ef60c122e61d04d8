package harness

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Tags of images that do not run well on the paper node.
const (
	// BrokenTag: the image cannot be pulled.
	BrokenTag = "broken"
	// FailingInitTag: init containers of the image end with an error, again and again.
	FailingInitTag = "failing-init"
	// CrashingTag: the container ends at once, again and again, with exit code 0.
	CrashingTag = "crashing"
	// UnreadyTag: the container runs, and its readiness probe does not succeed.
	UnreadyTag = "unready"
	// UnstartableTag: the container has no command that could be run.
	UnstartableTag = "unstartable"
	// UnmountableTag: a volume of the Pod cannot be mounted.
	UnmountableTag = "unmountable"
	// UnboundTag: no node takes the Pod, since its volume claim has no volume.
	UnboundTag = "unbound"
	// PickyTag: no node takes the Pod but LargeNode.
	PickyTag = "picky"
)

// probePatience is longer than a readiness probe is given time.
const probePatience = time.Minute

// ImageDigest ends the image ID of every container that runs on the paper node.
const ImageDigest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// outcomes says how a container of an image with a certain tag does, and of any other ("").
type outcomes map[string]func(*corev1.ContainerStatus)

var initOutcomes = outcomes{
	BrokenTag:      notPulled,
	FailingInitTag: func(s *corev1.ContainerStatus) { setCrashing(s, ended("Error", 1)) },
	"": func(s *corev1.ContainerStatus) {
		s.Ready, s.State = true, ended("Completed", 0)
	},
}

var mainOutcomes = outcomes{
	BrokenTag:      notPulled,
	CrashingTag:    func(s *corev1.ContainerStatus) { setCrashing(s, ended("Completed", 0)) },
	UnstartableTag: func(s *corev1.ContainerStatus) { s.State = waits("CreateContainerError", "no command specified") },
	UnreadyTag: func(s *corev1.ContainerStatus) {
		setRunning(s)
		s.State.Running.StartedAt = metav1.NewTime(s.State.Running.StartedAt.Add(-probePatience))
		s.Ready = false
	},
	"": setRunning,
}

func (o outcomes) of(container corev1.Container) corev1.ContainerStatus {
	status := corev1.ContainerStatus{Name: container.Name, Image: container.Image}
	outcome, found := o[tagOf(container.Image)]
	if !found {
		outcome = o[""]
	}
	outcome(&status)
	return status
}

// setStarted says what a node would say of the Pod's images. A container that is in trouble holds up those that start
// after it.
func setStarted(pod *corev1.Pod) {
	held := hasTag(pod, UnmountableTag)
	for _, container := range pod.Spec.InitContainers {
		status := initOutcomes.of(container)
		if held {
			status = heldUp(container)
		}
		held = held || !status.Ready
		pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, status)
	}
	ready := corev1.ConditionTrue
	for _, container := range pod.Spec.Containers {
		status := mainOutcomes.of(container)
		if held {
			status = heldUp(container)
		}
		if !status.Ready {
			ready = corev1.ConditionFalse
		}
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
	}
	initialized := corev1.ConditionTrue
	pod.Status.Phase = corev1.PodRunning
	if held {
		initialized, pod.Status.Phase = corev1.ConditionFalse, corev1.PodPending
	}
	setCondition(pod, corev1.PodScheduled, corev1.ConditionTrue, "", "")
	setCondition(pod, corev1.PodInitialized, initialized, "", "")
	setCondition(pod, corev1.ContainersReady, ready, "", "")
	setCondition(pod, corev1.PodReady, ready, "", "")
}

func setRunning(status *corev1.ContainerStatus) {
	status.Ready, status.Started = true, ptr.To(true)
	status.ImageID = status.Image + ImageDigest
	status.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.Now()}
}

func setCrashing(status *corev1.ContainerStatus, last corev1.ContainerState) {
	status.RestartCount = 5
	status.State = waits("CrashLoopBackOff", "back-off 5m0s restarting failed container")
	status.LastTerminationState = last
}

func notPulled(status *corev1.ContainerStatus) {
	status.State = waits("ImagePullBackOff", "there is no such image")
}

func heldUp(container corev1.Container) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: container.Name, Image: container.Image, State: waits("PodInitializing", "")}
}

func waits(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func ended(reason string, exitCode int32) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		Reason: reason, ExitCode: exitCode, FinishedAt: metav1.Now(),
	}}
}

// Ended tells whether none of the Pod's containers runs any more.
func Ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// setEnded says that every container has ended in good order.
func setEnded(pod *corev1.Pod) {
	pod.Status.Phase = corev1.PodSucceeded
	for i := range pod.Status.ContainerStatuses {
		container := &pod.Status.ContainerStatuses[i]
		container.Ready, container.Started = false, ptr.To(false)
		container.State = ended("Completed", 0)
	}
	setCondition(pod, corev1.ContainersReady, corev1.ConditionFalse, "PodCompleted", "")
	setCondition(pod, corev1.PodReady, corev1.ConditionFalse, "PodCompleted", "")
}

func setCondition(pod *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) {
	condition := corev1.PodCondition{Type: kind, Status: status, Reason: reason, Message: message}
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			pod.Status.Conditions[i] = condition
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, condition)
}

// mountFailure is the Event by which a node tells that a volume cannot be mounted. It is the only place where that stands.
func mountFailure(pod *corev1.Pod) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, GenerateName: pod.Name + "-"},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		},
		Type:    corev1.EventTypeWarning,
		Reason:  "FailedMount",
		Message: `MountVolume.SetUp failed for volume "credentials": secret "subpool-credentials" not found`,
		// As the newer Event API has it: a series, and no count.
		EventTime:           metav1.NowMicro(),
		Series:              &corev1.EventSeries{Count: 2, LastObservedTime: metav1.NowMicro()},
		Action:              "Mounting",
		ReportingController: "kubelet",
		ReportingInstance:   nodeName,
	}
}

func hasTag(pod *corev1.Pod, tag string) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(container corev1.Container) bool {
		return tagOf(container.Image) == tag
	})
}

func tagOf(image string) string { return image[strings.LastIndexByte(image, ':')+1:] }
