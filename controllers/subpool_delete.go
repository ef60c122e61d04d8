package controllers

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/internal/subpool"
)

const (
	// stopBudget is how long the namespace's deletion waits for the runtime Pod to end in good order: its
	// grace period of 30 s, and as much again for a slow node.
	stopBudget = time.Minute

	// stopCheck and deletionCheck bound the wait for events that may not come.
	stopCheck     = 5 * time.Second
	deletionCheck = 30 * time.Second

	// blockedAfter is when a deletion that is still going on counts as blocked.
	blockedAfter = 2 * time.Minute
)

// reconcileDelete stops the workload, deletes the namespace, and lets the SubPool go when a read from the
// API server itself says that the namespace is gone. It needs neither operator configuration nor proxy.
// A namespace that is not this pool's is left alone, and so are foreign finalizers. Who deletes with orphan cascading wants
// to keep the namespace: then the garbage collector first takes the pool's ownership off it.
func (r *SubPoolReconciler) reconcileDelete(ctx context.Context, pool *v1alpha1.SubPool) (ctrl.Result, error) {
	if controllerutil.ContainsFinalizer(pool, metav1.FinalizerOrphanDependents) {
		return ctrl.Result{}, r.reportDeletion(ctx, pool, v1alpha1.ReasonDeletionInProgress,
			"the namespace is kept (orphan cascading): waiting for the garbage collector to release it")
	}
	namespace, err := r.namespaceToDelete(ctx, pool)
	if err != nil {
		return ctrl.Result{}, err
	}
	if namespace == nil {
		log.FromContext(ctx).Info("the pool's namespace is gone, or never was this pool's: releasing the SubPool")
		return ctrl.Result{}, r.releaseFinalizer(ctx, pool)
	}
	waited := time.Since(pool.DeletionTimestamp.Time)
	if !namespace.DeletionTimestamp.IsZero() {
		return r.awaitNamespace(ctx, pool, namespace, waited)
	}
	stopped, err := r.stopWorkload(ctx, namespace.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !stopped && waited < stopBudget {
		note := fmt.Sprintf("waiting for Pod %s to stop", subpool.PodName())
		return ctrl.Result{RequeueAfter: stopCheck}, r.reportDeletion(ctx, pool, v1alpha1.ReasonDeletionInProgress, note)
	}
	if err := r.Delete(ctx, namespace, client.Preconditions{UID: &namespace.UID}); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("cannot delete Namespace %s: %w", namespace.Name, err)
	}
	note := fmt.Sprintf("Namespace %s is being deleted", namespace.Name)
	return ctrl.Result{RequeueAfter: deletionCheck}, r.reportDeletion(ctx, pool, v1alpha1.ReasonDeletionInProgress, note)
}

// namespaceToDelete returns the pool's namespace, or nil if there is none, or one that is not the pool's. That must not rest on the
// cache, but for a namespace that is being deleted: of its end the cache can only be late to tell.
func (r *SubPoolReconciler) namespaceToDelete(ctx context.Context, pool *v1alpha1.SubPool) (*corev1.Namespace, error) {
	name, namespace := subpool.NamespaceName(pool.Name), &corev1.Namespace{}
	found, err := find(ctx, r, "", name, namespace)
	if err == nil && (!found || !ownedBy(namespace, pool) || namespace.DeletionTimestamp.IsZero()) {
		namespace = &corev1.Namespace{}
		found, err = find(ctx, r.Live, "", name, namespace)
	}
	if err != nil || !found || !ownedBy(namespace, pool) {
		return nil, err
	}
	return namespace, nil
}

// awaitNamespace repeats what the namespace controller says remains, which names no objects, and names the Pod.
func (r *SubPoolReconciler) awaitNamespace(
	ctx context.Context, pool *v1alpha1.SubPool, namespace *corev1.Namespace, waited time.Duration,
) (ctrl.Result, error) {
	left := remains(namespace)
	pod := &corev1.Pod{}
	podFound, err := find(ctx, r, namespace.Name, subpool.PodName(), pod)
	if err != nil {
		return ctrl.Result{}, err
	}
	if podFound && !pod.DeletionTimestamp.IsZero() {
		left += " " + stopping(pod) + ": if the node will not come back, delete its Node object."
	}
	reason, note := v1alpha1.ReasonDeletionInProgress, fmt.Sprintf("Namespace %s is being deleted.%s", namespace.Name, left)
	if left != "" && waited > blockedAfter {
		reason, note = v1alpha1.ReasonDeletionBlocked, fmt.Sprintf("Namespace %s cannot be deleted yet.%s", namespace.Name, left)
	}
	return ctrl.Result{RequeueAfter: deletionCheck}, r.reportDeletion(ctx, pool, reason, note)
}

// stopWorkload scales the runtime to nothing, so that its processes get their grace period, and tells
// whether its Pod is gone.
func (r *SubPoolReconciler) stopWorkload(ctx context.Context, namespace string) (bool, error) {
	workload := &appsv1.StatefulSet{}
	found, err := find(ctx, r, namespace, subpool.RuntimeName, workload)
	if err != nil {
		return false, err
	}
	if found && (workload.Spec.Replicas == nil || *workload.Spec.Replicas != 0) {
		none := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`))
		if err := r.Patch(ctx, workload, none, client.FieldOwner(objectsOwner)); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("cannot stop StatefulSet %s/%s: %w", namespace, subpool.RuntimeName, err)
		}
	}
	podFound, err := find(ctx, r, namespace, subpool.PodName(), &corev1.Pod{})
	return !podFound, err
}

// reportDeletion writes only what a deletion changes: the rest of the status stays as the pool left it.
func (r *SubPoolReconciler) reportDeletion(ctx context.Context, pool *v1alpha1.SubPool, reason, note string) error {
	status := *pool.Status.DeepCopy()
	status.ObservedGeneration = pool.Generation
	status.Namespace = subpool.NamespaceName(pool.Name)
	conditions := conditionSet{&status.Conditions, pool.Generation}
	conditions.set(v1alpha1.ConditionReady, no(reason, "%s", note))
	conditions.setIf(true, v1alpha1.ConditionDeleting, verdict{reason: reason, message: note})
	meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionReconciling)
	meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionStalled)
	_, err := r.report(ctx, pool, status)
	return err
}

// remains is what the namespace controller says of a namespace that does not go away, in its own words.
func remains(namespace *corev1.Namespace) string {
	var words []string
	for _, condition := range namespace.Status.Conditions {
		if condition.Status == corev1.ConditionTrue && condition.Message != "" {
			words = append(words, condition.Message)
		}
	}
	if len(words) == 0 {
		return ""
	}
	return " What remains: " + strings.Join(words, "; ") + "."
}
