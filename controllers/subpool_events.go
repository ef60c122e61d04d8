package controllers

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/internal/subpool"
)

// Which event concerns which pool. A pool's objects are told by their namespace, not by a label or
// owner that somebody may have taken off.

// byNamespace sends an object's event to the pool whose namespace it is in.
func byNamespace() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		return requestFor(object.GetNamespace())
	})
}

// byNamespaceName sends a Namespace's event to its pool.
func byNamespaceName() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		return requestFor(object.GetName())
	})
}

// poolOrAll is byNamespace, but an object in the given namespace concerns every pool.
func (r *SubPoolReconciler) poolOrAll(shared string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
		if object.GetNamespace() != shared {
			return requestFor(object.GetNamespace())
		}
		var pools v1alpha1.SubPoolList
		if err := r.List(ctx, &pools); err != nil {
			log.FromContext(ctx).Error(err, "cannot list SubPools: a change of shared objects reaches them later")
			return nil
		}
		requests := make([]reconcile.Request, 0, len(pools.Items))
		for i := range pools.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&pools.Items[i])})
		}
		return requests
	})
}

func requestFor(namespace string) []reconcile.Request {
	id, ok := subpool.PoolID(namespace)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: id}}}
}

// specOrLifecycleChanged leaves out our own status writes.
func specOrLifecycleChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectNew.GetGeneration() != e.ObjectOld.GetGeneration() ||
			e.ObjectNew.GetUID() != e.ObjectOld.GetUID() ||
			!e.ObjectNew.GetDeletionTimestamp().Equal(e.ObjectOld.GetDeletionTimestamp()) ||
			!slices.Equal(e.ObjectNew.GetFinalizers(), e.ObjectOld.GetFinalizers())
	}}
}

// contentChanged leaves out updates of what the cache does not keep (see CacheOptions): status that
// feeds no condition.
func contentChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.DeepCopyObject().(client.Object), e.ObjectNew.DeepCopyObject().(client.Object)
		before.SetResourceVersion("")
		after.SetResourceVersion("")
		return !equality.Semantic.DeepEqual(before, after)
	}}
}
