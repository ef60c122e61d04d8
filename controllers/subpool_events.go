package controllers

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/internal/subpool"
)

// Which event concerns which pool. A pool's objects are told by their namespace, not by a label or
// owner that somebody may have taken off.

// byNamespace sends an object's event to the pool whose namespace it is in.
func byNamespace() handler.EventHandler {
	return existingFirst(func(_ context.Context, object client.Object) []reconcile.Request {
		return requestFor(object.GetNamespace())
	})
}

// byNamespaceName sends a Namespace's event to its pool.
func byNamespaceName() handler.EventHandler {
	return existingFirst(func(_ context.Context, object client.Object) []reconcile.Request {
		return requestFor(object.GetName())
	})
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// highPriority is above that of a SubPool's own event, 0.
const highPriority = 10

// withPriority maps every event to pools that are looked at before those of a lower priority.
func withPriority(priority int, requests handler.MapFunc) handler.Funcs {
	enqueue := func(ctx context.Context, object client.Object, q queue) {
		options := priorityqueue.AddOpts{Priority: &priority}
		q.(priorityqueue.PriorityQueue[reconcile.Request]).AddWithOpts(options, requests(ctx, object)...)
	}
	return handler.Funcs{
		CreateFunc:  func(ctx context.Context, e event.CreateEvent, q queue) { enqueue(ctx, e.Object, q) },
		UpdateFunc:  func(ctx context.Context, e event.UpdateEvent, q queue) { enqueue(ctx, e.ObjectNew, q) },
		DeleteFunc:  func(ctx context.Context, e event.DeleteEvent, q queue) { enqueue(ctx, e.Object, q) },
		GenericFunc: func(ctx context.Context, e event.GenericEvent, q queue) { enqueue(ctx, e.Object, q) },
	}
}

// settlingTime is how long after an object was made its changes are taken for the rest of its making.
const settlingTime = 10 * time.Second

// existingFirst maps an event to a pool whose turn comes before those of pools that are yet to be made, if the event is about
// something that was there: a wave of a thousand new pools must not hold up the repair of one that works.
func existingFirst(requests handler.MapFunc) handler.EventHandler {
	existing, settling := withPriority(highPriority, requests), withPriority(0, requests)
	return handler.Funcs{
		CreateFunc: handler.EnqueueRequestsFromMapFunc(requests).Create,
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if time.Since(e.ObjectNew.GetCreationTimestamp().Time) < settlingTime {
				settling.Update(ctx, e, q)
				return
			}
			existing.Update(ctx, e, q)
		},
		DeleteFunc:  existing.DeleteFunc,
		GenericFunc: existing.GenericFunc,
	}
}

// everyPool sends an event about what all pools share to each of them.
func (r *SubPoolReconciler) everyPool() handler.EventHandler {
	return inTurn(func(ctx context.Context, _ client.Object) []reconcile.Request {
		return r.requestsForPools(ctx, func(*v1alpha1.SubPool) bool { return true })
	})
}

// inTurn maps an event to pools whose turn comes after those that have an event of their own: a change of what a thousand
// pools share must not hold up one that its user has just made.
func inTurn(requests handler.MapFunc) handler.EventHandler {
	return withPriority(handler.LowPriority, requests)
}

func (r *SubPoolReconciler) requestsForPools(ctx context.Context, concerned func(*v1alpha1.SubPool) bool) []reconcile.Request {
	var pools v1alpha1.SubPoolList
	if err := r.List(ctx, &pools, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "cannot list SubPools: a change of shared objects reaches them later")
		return nil
	}
	var requests []reconcile.Request
	for i := range pools.Items {
		if concerned(&pools.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&pools.Items[i])})
		}
	}
	return requests
}

// publishedPools sends an event about what all published pools share to each of them.
func (r *SubPoolReconciler) publishedPools() handler.EventHandler {
	return inTurn(func(ctx context.Context, object client.Object) []reconcile.Request {
		if gateway, ok := object.(*gatewayv1.Gateway); ok && gateway.Name != "" && !r.isSharedGateway(ctx, gateway) {
			return nil
		}
		return r.requestsForPools(ctx, func(pool *v1alpha1.SubPool) bool {
			return pool.Spec.Exposure.Mode == v1alpha1.ExposureGateway
		})
	})
}

// isSharedGateway also says yes when the operator configuration cannot tell.
func (r *SubPoolReconciler) isSharedGateway(ctx context.Context, gateway *gatewayv1.Gateway) bool {
	snapshot, err := r.Config.Load(ctx)
	if err != nil {
		return true
	}
	shared := snapshot.Config.Gateway
	return gateway.Name == shared.Name && gateway.Namespace == shared.Namespace
}

// byNamespaceOrHost sends a route's event to the pool whose namespace it is in, and to those pools whose host it has: the
// pool id is the first label of the host.
func byNamespaceOrHost() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		requests := requestFor(object.GetNamespace())
		for _, host := range routeHosts(object) {
			id, _, _ := strings.Cut(host, ".")
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: id}})
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

// isIn lets objects of one namespace through.
func isIn(namespace string) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(object client.Object) bool { return object.GetNamespace() == namespace })
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
		return !equality.Semantic.DeepEqual(versionless(e.ObjectOld), versionless(e.ObjectNew))
	}}
}

// versionless returns the object without its resource version. It shares all else with the original, which belongs to the cache.
func versionless(object client.Object) client.Object {
	shallow := reflect.New(reflect.TypeOf(object).Elem())
	shallow.Elem().Set(reflect.ValueOf(object).Elem())
	copied := shallow.Interface().(client.Object)
	copied.SetResourceVersion("")
	return copied
}
