package harness

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

const (
	nodeName = "paper-node"

	// LargeNode is the only node that takes Pods with an image of PickyTag. It exists when a test has made it.
	LargeNode = "large-paper-node"

	// scheduleRetry is how often a Pod that found no node is looked at again.
	scheduleRetry = time.Second
)

// kubelet stands in for scheduler and node. It binds the Pods of pools and says that they are ready, unless the tag of an
// image says otherwise. Of those that shall end it says at once that their containers have, and only then lets them go.
type kubelet struct{ client.Client }

// StartKubelet returns when the kubelet's node exists; it acts until ctx ends. A process may have several, one after the other.
func (c *Cluster) StartKubelet(ctx context.Context) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}
	if err := c.Admin.Create(ctx, node); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create the node: %w", err)
	}
	pools := labels.SelectorFromSet(labels.Set{v1alpha1.LabelManaged: v1alpha1.LabelManagedValue})
	manager, err := ctrl.NewManager(c.Config, ctrl.Options{
		Scheme:     c.Admin.Scheme(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: ctrlconfig.Controller{SkipNameValidation: ptr.To(true)},
		Cache:      cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {Label: pools}}},
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
		return k.schedule(ctx, pod)
	case len(pod.Status.ContainerStatuses) > 0:
		return reconcile.Result{}, nil // all is said
	}
	if hasTag(pod, UnmountableTag) {
		if err := k.Create(ctx, mountFailure(pod)); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
	}
	setStarted(pod)
	return reconcile.Result{}, client.IgnoreNotFound(k.Status().Update(ctx, pod))
}

// schedule binds the Pod to a node, or says why none takes it and looks again later.
func (k *kubelet) schedule(ctx context.Context, pod *corev1.Pod) (reconcile.Result, error) {
	target, refusal := nodeName, ""
	switch {
	case hasTag(pod, UnboundTag):
		refusal = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."
	case hasTag(pod, PickyTag):
		target = LargeNode
		err := k.Get(ctx, client.ObjectKey{Name: target}, &corev1.Node{})
		if client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, err
		}
		if apierrors.IsNotFound(err) {
			refusal = "0/1 nodes are available: 1 Insufficient memory."
		}
	}
	if refusal != "" {
		setCondition(pod, corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable, refusal)
		return reconcile.Result{RequeueAfter: scheduleRetry}, client.IgnoreNotFound(k.Status().Update(ctx, pod))
	}
	binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: target}}
	return reconcile.Result{}, client.IgnoreNotFound(k.SubResource("binding").Create(ctx, pod, binding))
}
