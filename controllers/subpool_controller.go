// Package controllers reconciles SubPools: observe, judge, build, report.
package controllers

import (
	"context"
	"io"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	netv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayapplyconfiguration "sigs.k8s.io/gateway-api/applyconfiguration"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/internal/apply"
	"github.com/example-org/subrelay-operator/internal/metrics"
	"github.com/example-org/subrelay-operator/internal/operatorconfig"
	"github.com/example-org/subrelay-operator/internal/subpool"
)

// Field managers: who owns which part of an object is visible to everybody.
const (
	objectsOwner   = "subpool-operator"
	statusOwner    = "subpool-operator-status"
	finalizerOwner = "subpool-operator-finalizer"
)

const (
	// passTimeout ends a pass that hangs on a slow API server, so that its worker is free again.
	passTimeout = time.Minute

	// conflictDelay is how soon a pass that met a conflict is repeated, in case the other write brings no event.
	conflictDelay = time.Second

	// maxBackoff bounds the pause after repeated errors: a mended cause is noticed within it.
	maxBackoff = 5 * time.Minute
	minBackoff = 50 * time.Millisecond
)

// SubPoolReconciler keeps every SubPool as its spec asks.
type SubPoolReconciler struct {
	// Client reads from the cache and writes to the API server.
	client.Client

	// Live reads from the API server: for Secrets, which are never cached, and for decisions that must not
	// rest on a cache.
	Live client.Reader

	Config   *operatorconfig.Source
	Recorder events.EventRecorder

	// Operator is the ServiceAccount that this process runs as.
	Operator subpool.Identity

	// Random is the source of credentials; crypto/rand.Reader outside of tests.
	Random io.Reader

	// Outcomes count passes; they may be nil.
	Outcomes *metrics.Outcomes

	engine      *apply.Engine
	credentials *credentialWatches
	statuses    writtenStatuses
	rollouts    rollouts
	patience    patience
	gatewayAPI  *gatewayAPI
	places      places
}

// Reconcile brings one pool closer to its spec and says in status how far it got. A pass that somebody else's write made
// out of date is no error: that write is an event of its own.
func (r *SubPoolReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	leave, err := r.places.take(ctx, r.isMade(ctx, request))
	if err != nil {
		return ctrl.Result{}, err
	}
	defer leave()
	began := time.Now()
	result, err := r.reconcile(ctx, request)
	if apierrors.IsConflict(err) {
		log.FromContext(ctx).V(1).Info("somebody else wrote first: looking again", "conflict", err.Error())
		r.Outcomes.Add(metrics.Conflict)
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	if yields(result, time.Since(began)) {
		result.Priority = ptr.To(handler.LowPriority)
	}
	return result, err
}

// isMade tells whether a pass has been through the pool before.
func (r *SubPoolReconciler) isMade(ctx context.Context, request ctrl.Request) bool {
	pool := &v1alpha1.SubPool{}
	return r.Get(ctx, request.NamespacedName, pool, client.UnsafeDisableDeepCopy) == nil && pool.Status.ObservedGeneration > 0
}

func (r *SubPoolReconciler) reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	pool := &v1alpha1.SubPool{}
	if err := r.Get(ctx, request.NamespacedName, pool); err != nil {
		if apierrors.IsNotFound(err) {
			r.credentials.stop(request.Name)
			r.statuses.forget(request.Name)
			r.rollouts.finish(request.Name)
			r.patience.end(request.Name)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.statuses.catchUp(pool)
	if !pool.DeletionTimestamp.IsZero() {
		result, err := r.reconcileDelete(ctx, pool)
		return result, r.reportRefusal(ctx, pool, err)
	}
	if err := r.ensureFinalizer(ctx, pool); err != nil {
		return ctrl.Result{}, r.reportRefusal(ctx, pool, err)
	}
	seen, err := r.observe(ctx, pool)
	if err != nil {
		return ctrl.Result{}, r.reportRefusal(ctx, pool, err)
	}
	outcome := r.build(ctx, seen)
	written, err := r.report(ctx, pool, assess(seen, outcome))
	if err != nil {
		return ctrl.Result{}, err
	}
	r.tellOutcome(seen, outcome)
	if outcome.err != nil {
		return ctrl.Result{}, outcome.err
	}
	if outcome.inTrouble {
		return ctrl.Result{RequeueAfter: r.patience.wait(pool.Name, written, seen.now)}, nil
	}
	r.patience.end(pool.Name)
	return ctrl.Result{RequeueAfter: outcome.retryAfter}, nil
}

// ensureFinalizer comes before the first object, so that no pool can vanish and leave objects behind.
func (r *SubPoolReconciler) ensureFinalizer(ctx context.Context, pool *v1alpha1.SubPool) error {
	return r.patchFinalizers(ctx, pool, controllerutil.AddFinalizer)
}

func (r *SubPoolReconciler) releaseFinalizer(ctx context.Context, pool *v1alpha1.SubPool) error {
	return client.IgnoreNotFound(r.patchFinalizers(ctx, pool, controllerutil.RemoveFinalizer))
}

// patchFinalizers writes only if edit changes something, and only if nobody changed the SubPool since it was read.
func (r *SubPoolReconciler) patchFinalizers(
	ctx context.Context, pool *v1alpha1.SubPool, edit func(client.Object, string) bool,
) error {
	base := pool.DeepCopy()
	if !edit(pool, v1alpha1.Finalizer) {
		return nil
	}
	return r.Patch(ctx, pool, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}),
		client.FieldOwner(finalizerOwner))
}

// SetupWithManager watches SubPools, everything they own, the operator configuration and the shared proxy.
func (r *SubPoolReconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	secrets, err := newSecretStreamOpener(mgr)
	if err != nil {
		return err
	}
	r.places = newPlaces()
	r.engine = apply.NewEngine(r.Client, objectsOwner, map[string]managedfields.TypeConverter{
		gatewayv1.GroupName: gatewayapplyconfiguration.NewTypeConverter(r.Scheme()),
	})
	r.credentials = newCredentialWatches(secrets)
	if err := mgr.Add(r.credentials); err != nil {
		return err
	}
	if err := r.statuses.follow(ctx, mgr.GetCache()); err != nil {
		return err
	}
	definitions, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	r.gatewayAPI = newGatewayAPI(mgr.GetCache(), definitions,
		gatewayKind{"GatewayClass", &gatewayv1.GatewayClass{}, r.publishedPools()},
		gatewayKind{"Gateway", &gatewayv1.Gateway{}, r.publishedPools()},
		gatewayKind{"HTTPRoute", &gatewayv1.HTTPRoute{}, byNamespaceOrHost()})
	b := ctrl.NewControllerManagedBy(mgr).
		Named("subpool").
		For(&v1alpha1.SubPool{}, builder.WithPredicates(specOrLifecycleChanged())).
		WatchesRawSource(r.credentials.source()).
		WatchesRawSource(r.gatewayAPI.source(r.publishedPools())).
		Watches(&corev1.Namespace{}, byNamespaceName(), builder.WithPredicates(contentChanged())).
		Watches(&corev1.ConfigMap{}, r.everyPool(), builder.WithPredicates(isIn(r.Config.Namespace), contentChanged())).
		Watches(&corev1.Service{}, r.everyPool(), builder.WithPredicates(isIn(r.Config.SharedNamespace), contentChanged())).
		Watches(&discoveryv1.EndpointSlice{}, r.everyPool(), builder.WithPredicates(contentChanged()))
	for _, child := range []client.Object{
		&corev1.ServiceAccount{}, &corev1.ResourceQuota{}, &rbacv1.RoleBinding{}, &netv1.NetworkPolicy{}, &corev1.ConfigMap{},
		&corev1.Service{}, &policyv1.PodDisruptionBudget{}, &appsv1.StatefulSet{}, &corev1.Pod{}, &corev1.PersistentVolumeClaim{},
	} {
		b.Watches(child, byNamespace(), builder.WithPredicates(contentChanged()))
	}
	built, err := b.WithOptions(controller.Options{
		MaxConcurrentReconciles: mostPasses,
		ReconciliationTimeout:   passTimeout,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minBackoff, maxBackoff),
	}).Build(r)
	if err != nil {
		return err
	}
	if err := r.gatewayAPI.start(ctx, built); err != nil {
		return err
	}
	return mgr.Add(r.gatewayAPI)
}
