package harness

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

const (
	nodeName = "paper-node"

	// BrokenTag is the tag of images that the paper node cannot pull.
	BrokenTag = "broken"

	// ImageDigest ends the image ID of every container that runs on the paper node.
	ImageDigest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

// kubelet stands in for scheduler and node. It binds the Pods of pools and says that they are ready unless an image is
// a broken one. Of those that shall end it says at once that their containers have, and only then lets them go.
type kubelet struct{ client.Client }

// StartKubelet returns when the kubelet's node exists; it acts until ctx ends.
func (c *Cluster) StartKubelet(ctx context.Context) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}
	if err := c.Admin.Create(ctx, node); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create the node: %w", err)
	}
	pools := labels.SelectorFromSet(labels.Set{v1alpha1.LabelManaged: v1alpha1.LabelManagedValue})
	manager, err := ctrl.NewManager(c.Config, ctrl.Options{
		Scheme:  c.Admin.Scheme(),
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:   cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {Label: pools}}},
	})
	if err != nil {
		return fmt.Errorf("make the kubelet: %w", err)
	}
	kubelet := &kubelet{manager.GetClient()}
	if err := ctrl.NewControllerManagedBy(manager).Named("kubelet").For(&corev1.Pod{}).Complete(kubelet); err != nil {
		return fmt.Errorf("make the kubelet: %w", err)
	}
	go func() {
		if err := manager.Start(ctx); err != nil {
			panic(fmt.Errorf("the kubelet of the tests ended: %w", err))
		}
	}()
	return nil
}

// Reconcile takes a Pod one step on.
func (k *kubelet) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	pod := &corev1.Pod{}
	if err := k.Get(ctx, request.NamespacedName, pod); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	switch {
	case !pod.DeletionTimestamp.IsZero() && pod.Spec.NodeName != "" && !Ended(pod):
		setEnded(pod)
		return reconcile.Result{}, client.IgnoreNotFound(k.Status().Update(ctx, pod))
	case !pod.DeletionTimestamp.IsZero():
		ended := []client.DeleteOption{client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID}}
		return reconcile.Result{}, client.IgnoreNotFound(k.Delete(ctx, pod, ended...))
	case pod.Spec.NodeName == "":
		binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: nodeName}}
		return reconcile.Result{}, client.IgnoreNotFound(k.SubResource("binding").Create(ctx, pod, binding))
	case pod.Status.Phase == corev1.PodRunning:
		return reconcile.Result{}, nil
	}
	setStarted(pod)
	return reconcile.Result{}, client.IgnoreNotFound(k.Status().Update(ctx, pod))
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
		container.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: "Completed", FinishedAt: metav1.Now(),
		}}
	}
	for i := range pod.Status.Conditions {
		condition := &pod.Status.Conditions[i]
		if condition.Type == corev1.PodReady || condition.Type == corev1.ContainersReady {
			condition.Status, condition.Reason = corev1.ConditionFalse, "PodCompleted"
		}
	}
}

// setStarted says what a node would say of the Pod's images.
func setStarted(pod *corev1.Pod) {
	ready, phase := corev1.ConditionTrue, corev1.PodRunning
	pod.Status.ContainerStatuses = nil
	for _, container := range pod.Spec.Containers {
		status := corev1.ContainerStatus{Name: container.Name, Image: container.Image}
		if strings.HasSuffix(container.Image, ":"+BrokenTag) {
			ready, phase = corev1.ConditionFalse, corev1.PodPending
			status.State.Waiting = &corev1.ContainerStateWaiting{
				Reason: "ImagePullBackOff", Message: "there is no such image",
			}
		} else {
			status.Ready, status.Started = true, ptr.To(true)
			status.ImageID = container.Image + ImageDigest
			status.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.Now()}
		}
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
	}
	pod.Status.Phase = phase
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
		{Type: corev1.PodInitialized, Status: corev1.ConditionTrue},
		{Type: corev1.ContainersReady, Status: ready},
		{Type: corev1.PodReady, Status: ready},
	}
}
