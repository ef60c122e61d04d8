package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	netv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/internal/apply"
	"github.com/example-org/subrelay-operator/internal/operatorconfig"
	"github.com/example-org/subrelay-operator/internal/subpool"
)

// observation is everything that one pass read. Nothing is read later, so judging and reporting are
// functions of it alone.
type observation struct {
	pool *v1alpha1.SubPool
	now  time.Time

	// config is nil while the operator configuration is unusable; then configProblem says why.
	config        *operatorconfig.Snapshot
	configProblem string

	// namespace is nil until the cache has it.
	namespace *corev1.Namespace

	// live are the pool's objects but Secret, Pod and volume claim.
	live     apply.Live
	quota    *corev1.ResourceQuota
	workload *appsv1.StatefulSet
	pod      *corev1.Pod
	claim    *corev1.PersistentVolumeClaim

	// warning is the newest Event that says why the Pod cannot be made or cannot start.
	warning *corev1.Event

	// credentials is nil when the Secret does not exist, or cannot be read yet because the access granted
	// by the namespace's RoleBinding is not there.
	credentials *credentials

	// credentialsHidden is why the Secret could not be read; nil if it could.
	credentialsHidden error

	// proxy is nil while the shared Mihomo's Service is missing or unusable; then proxyProblem says why.
	proxy        *subpool.Proxy
	proxyReady   bool
	proxyProblem string

	exposure exposure
}

// input is what the pool's objects are made from.
func (o *observation) input(operator subpool.Identity) subpool.Input {
	in := subpool.Input{Pool: o.pool, Config: o.config.Config, Operator: operator, Proxy: o.proxy}
	if o.workload != nil && len(o.workload.Spec.VolumeClaimTemplates) > 0 {
		in.Claim = &subpool.Claim{StorageClass: ptr.Deref(o.workload.Spec.VolumeClaimTemplates[0].Spec.StorageClassName, "")}
	}
	return in
}

// hasService tells whether one of the pool's Services exists.
func (o *observation) hasService(name string) bool {
	key := client.ObjectKey{Namespace: subpool.NamespaceName(o.pool.Name), Name: name}
	_, found := o.live[apply.Key{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Service"), ObjectKey: key}]
	return found
}

// observe reads the pool's world: from the cache, but for the Secret.
func (r *SubPoolReconciler) observe(ctx context.Context, pool *v1alpha1.SubPool) (*observation, error) {
	seen := &observation{pool: pool, now: time.Now(), live: apply.Live{}}
	if err := r.observeConfig(ctx, seen); err != nil {
		return nil, err
	}
	if err := r.observeNamespace(ctx, seen); err != nil {
		return nil, err
	}
	if seen.config != nil {
		if err := r.observeProxy(ctx, seen); err != nil {
			return nil, err
		}
	}
	if err := r.observeExposure(ctx, seen); err != nil {
		return nil, err
	}
	return seen, nil
}

func (r *SubPoolReconciler) observeConfig(ctx context.Context, seen *observation) error {
	snapshot, err := r.Config.Load(ctx)
	if invalid := (&operatorconfig.InvalidError{}); errors.As(err, &invalid) {
		seen.configProblem = invalid.Error()
		return nil
	}
	seen.config = snapshot
	return err
}

func (r *SubPoolReconciler) observeNamespace(ctx context.Context, seen *observation) error {
	name := subpool.NamespaceName(seen.pool.Name)
	namespace := &corev1.Namespace{}
	found, err := find(ctx, r, "", name, namespace)
	if !found && err == nil && seen.pool.Status.ObservedGeneration > 0 {
		// The cache selects by label. A namespace that has lost it is still the pool's.
		found, err = find(ctx, r.Live, "", name, namespace)
	}
	if !found || err != nil {
		return err
	}
	seen.namespace = namespace
	if err := seen.live.Add(r.Scheme(), namespace); err != nil {
		return err
	}
	if !ownedBy(namespace, seen.pool) {
		return nil // nothing in it is ours to look at
	}
	for _, list := range []client.ObjectList{
		&rbacv1.RoleBindingList{}, &corev1.ResourceQuotaList{}, &netv1.NetworkPolicyList{}, &corev1.ServiceAccountList{},
		&corev1.ConfigMapList{}, &corev1.ServiceList{}, &policyv1.PodDisruptionBudgetList{}, &appsv1.StatefulSetList{},
	} {
		// Nobody writes into what was seen: it may be the cache's own.
		if err := r.List(ctx, list, client.InNamespace(name), client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			switch typed := item.(type) {
			case *appsv1.StatefulSet:
				if typed.Name == subpool.RuntimeName {
					seen.workload = typed
				}
			case *corev1.ResourceQuota:
				if typed.Name == subpool.QuotaName {
					seen.quota = typed
				}
			}
			return seen.live.Add(r.Scheme(), item.(client.Object))
		})
		if err != nil {
			return err
		}
	}
	if err := r.observeRuntime(ctx, seen, name); err != nil {
		return err
	}
	if !namespace.DeletionTimestamp.IsZero() {
		return nil // the rights to read on go with the namespace
	}
	if err := r.observeCredentials(ctx, seen, name); err != nil {
		return err
	}
	return r.observeWarning(ctx, seen)
}

func (r *SubPoolReconciler) observeRuntime(ctx context.Context, seen *observation, namespace string) error {
	pod, claim := &corev1.Pod{}, &corev1.PersistentVolumeClaim{}
	if found, err := find(ctx, r, namespace, subpool.PodName(), pod); err != nil {
		return err
	} else if found {
		seen.pod = pod
	}
	if found, err := find(ctx, r, namespace, subpool.ClaimName(), claim); err != nil {
		return err
	} else if found {
		seen.claim = claim
	}
	return nil
}

func (r *SubPoolReconciler) observeCredentials(ctx context.Context, seen *observation, namespace string) error {
	if known, ok := r.credentials.current(seen.pool.Name); ok {
		seen.credentials = known
		return nil
	}
	if seen.workload != nil {
		if known, ok := r.credentials.recognise(ctx, seen.pool.Name, seen.workload); ok {
			seen.credentials = known
			return nil
		}
	}
	secret := &corev1.Secret{}
	found, err := find(ctx, r.Live, namespace, subpool.CredentialsName, secret)
	if found {
		seen.credentials = credentialsOf(secret)
		r.credentials.remember(seen.pool.Name, seen.credentials) // also when they block: whoever mends them is noticed at once
	}
	if apierrors.IsForbidden(err) {
		seen.credentialsHidden, err = err, nil // the RoleBinding that allows it is missing, or too new for the server to honour it
	}
	return err
}

// warningAge is how old a StatefulSet or Pod must be before its Events are read: whatever goes well is further by then.
const warningAge = 5 * time.Second

// observeWarning reads, when the Pod is missing or does not start, the newest Event that says why: such refusals stand
// nowhere else.
func (r *SubPoolReconciler) observeWarning(ctx context.Context, seen *observation) error {
	var about client.Object
	kind, reasons := "StatefulSet", createReasons
	switch {
	case seen.workload == nil || seen.pool.Spec.Suspend:
		return nil
	case seen.pod == nil:
		about = seen.workload
	case aboutToStart(seen.pod):
		about, kind, reasons = seen.pod, "Pod", startReasons
	}
	if about == nil || seen.now.Sub(about.GetCreationTimestamp().Time) < warningAge {
		return nil
	}
	var events corev1.EventList
	err := r.Live.List(ctx, &events, client.InNamespace(about.GetNamespace()), client.MatchingFields{
		"type": corev1.EventTypeWarning, "involvedObject.kind": kind, "involvedObject.uid": string(about.GetUID()),
	})
	if apierrors.IsForbidden(err) {
		return nil // the RoleBinding that allows it is missing: this pass makes it
	}
	for i := range events.Items {
		event := &events.Items[i]
		if reasons[event.Reason] && (seen.warning == nil || lastSeen(event).After(lastSeen(seen.warning))) {
			seen.warning = event
		}
	}
	return err
}

// lastSeen is when an Event happened last, whichever of the two Event APIs wrote it.
func lastSeen(event *corev1.Event) time.Time {
	switch {
	case event.Series != nil:
		return event.Series.LastObservedTime.Time
	case !event.LastTimestamp.IsZero():
		return event.LastTimestamp.Time
	default:
		return event.EventTime.Time
	}
}

func find(ctx context.Context, from client.Reader, namespace, name string, into client.Object) (bool, error) {
	err := from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
	return err == nil, client.IgnoreNotFound(err)
}

func (r *SubPoolReconciler) observeProxy(ctx context.Context, seen *observation) error {
	mihomo := seen.config.Config.Mihomo
	service := &corev1.Service{}
	found, err := find(ctx, r, mihomo.Namespace, mihomo.Service, service)
	if err != nil {
		return err
	}
	if !found {
		seen.proxyProblem = fmt.Sprintf("Service %s/%s does not exist: install the shared Mihomo", mihomo.Namespace, mihomo.Service)
		return nil
	}
	var slices discoveryv1.EndpointSliceList
	if err := r.List(ctx, &slices, client.InNamespace(mihomo.Namespace),
		client.MatchingLabels{discoveryv1.LabelServiceName: mihomo.Service}); err != nil {
		return err
	}
	endpoints := subpool.ReadEndpoints(slices.Items)
	if proxy, ok := subpool.ProxyOf(service, mihomo.Port, endpoints.Ports); ok {
		seen.proxy = proxy
	}
	seen.proxyReady = seen.proxy != nil && endpoints.ReadyOn[seen.proxy.Port]
	switch {
	case seen.proxy == nil:
		seen.proxyProblem = fmt.Sprintf("Service %s/%s has no selector, or no port %d that its Pods serve",
			mihomo.Namespace, mihomo.Service, mihomo.Port)
	case !seen.proxyReady:
		seen.proxyProblem = fmt.Sprintf("Service %s/%s has no ready endpoint on port %d: look at its Pods",
			mihomo.Namespace, mihomo.Service, seen.proxy.Port)
	}
	return nil
}

// ownedBy is the proof that an object belongs to this SubPool and no other of the same name: only the
// operator sets the controlling owner, and the UID cannot be had twice.
func ownedBy(object metav1.Object, pool *v1alpha1.SubPool) bool {
	return metav1.IsControlledBy(object, pool)
}
