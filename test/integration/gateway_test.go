//go:build integration

package integration

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	netv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

// Here the tests are the Gateway's controller: they write the statuses that the operator reads. The real controller judges
// the shipped manifests and routes in test/e2e.

var (
	gatewayOnce sync.Once
	errGateway  error
)

// withGateway makes sure that the Gateway API is there and the shared Gateway programmed.
func withGateway(t *testing.T) {
	t.Helper()
	gatewayOnce.Do(func() {
		errGateway = cluster.InstallGatewayAPI(background, harness.GatewayAPIPlurals...)
	})
	require.NoError(t, errGateway)
	class, gateway := harness.SharedGateway()
	for _, object := range []client.Object{class, gateway} {
		// The API server serves a new kind after a moment.
		eventually(t, readyBudget, func(c *assert.CollectT) {
			require.NoError(c, client.IgnoreAlreadyExists(cluster.Admin.Create(background, object.DeepCopyObject().(client.Object))))
		})
	}
	programGateway(t, true, gatewayv1.GatewayReasonProgrammed)
}

func programGateway(t *testing.T, ok bool, reason gatewayv1.GatewayConditionReason) {
	t.Helper()
	_, gateway := harness.SharedGateway()
	eventually(t, readyBudget, func(c *assert.CollectT) {
		get(c, gateway)
		gateway.Status.Listeners = []gatewayv1.ListenerStatus{{
			Name: harness.GatewaySection, SupportedKinds: []gatewayv1.RouteGroupKind{},
			Conditions: []metav1.Condition{
				harness.Judged(gateway, string(gatewayv1.ListenerConditionProgrammed), true, string(gatewayv1.ListenerReasonProgrammed)),
			},
		}}
		meta.SetStatusCondition(&gateway.Status.Conditions, harness.Judged(gateway, string(gatewayv1.GatewayConditionProgrammed), ok, string(reason)))
		require.NoError(c, cluster.Admin.Status().Update(background, gateway))
	})
}

func newPublishedPool(word string) *v1alpha1.SubPool {
	pool := newPool(word)
	pool.Spec.Exposure.Mode = v1alpha1.ExposureGateway
	return pool
}

func routeOf(pool *v1alpha1.SubPool) *gatewayv1.HTTPRoute {
	return &gatewayv1.HTTPRoute{ObjectMeta: in(pool, "cpa")}
}

// judgeRoute waits for the pool's route and writes the controller's verdict about it.
func judgeRoute(t *testing.T, pool *v1alpha1.SubPool, ok bool, reason gatewayv1.RouteConditionReason) *gatewayv1.HTTPRoute {
	t.Helper()
	route := routeOf(pool)
	eventually(t, readyBudget, func(c *assert.CollectT) {
		get(c, route)
		route.Status.Parents = []gatewayv1.RouteParentStatus{harness.RouteVerdict(route, ok, reason)}
		require.NoError(c, cluster.Admin.Status().Update(background, route))
	})
	return route
}

func createPublished(t *testing.T, word string) (*v1alpha1.SubPool, *gatewayv1.HTTPRoute) {
	t.Helper()
	withGateway(t)
	pool := newPublishedPool(word)
	create(t, pool)
	route := judgeRoute(t, pool, true, gatewayv1.RouteReasonAccepted)
	awaitReady(t, pool)
	return pool, route
}

// TestGW03GatewayAPIComesAndGoes begins without the Gateway API: the first test of this suite that needs it must be this one.
func TestGW03GatewayAPIComesAndGoes(t *testing.T) {
	standby, err := cluster.StartOperator(background)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, standby.Stop(), "the second replica has lived through it") })
	leader := cluster.operator

	internal, public := newPool("plain"), newPublishedPool("public")
	create(t, internal)
	create(t, public)
	awaitReady(t, internal)
	awaitNotReady(t, public, v1alpha1.ReasonGatewayAPIMissing)
	require.Contains(t, message(t, public, v1alpha1.ConditionReady), "Gateway, GatewayClass, HTTPRoute of gateway.networking.k8s.io/v1")

	awaitMissing := func(kinds string) {
		t.Helper()
		eventually(t, 2*time.Minute, func(c *assert.CollectT) {
			get(c, public)
			exposure := meta.FindStatusCondition(public.Status.Conditions, v1alpha1.ConditionExposureReady)
			require.NotNil(c, exposure)
			assert.Equal(c, v1alpha1.ReasonGatewayAPIMissing, exposure.Reason)
			assert.Contains(c, exposure.Message, "does not serve "+kinds+" of")
		})
	}
	require.NoError(t, cluster.InstallGatewayAPI(background, "gatewayclasses", "gateways"))
	awaitMissing("HTTPRoute")

	old, err := harness.GatewayAPIDefinition(background, "httproutes")
	require.NoError(t, err)
	for i := range old.Spec.Versions {
		old.Spec.Versions[i].Served = old.Spec.Versions[i].Name != "v1"
	}
	require.NoError(t, cluster.Admin.Create(t.Context(), old))
	awaitMissing("HTTPRoute") // only in a version that is too old

	served := old.DeepCopy()
	for i := range served.Spec.Versions {
		served.Spec.Versions[i].Served = true
	}
	require.NoError(t, cluster.Admin.Patch(t.Context(), served, client.MergeFrom(old)))
	awaitNotReady(t, public, v1alpha1.ReasonGatewayMissing)
	withGateway(t)
	judgeRoute(t, public, true, gatewayv1.RouteReasonAccepted)
	awaitReady(t, public)

	// The definitions go while routes are there, and with them the routes.
	require.NoError(t, cluster.Admin.Delete(t.Context(), served))
	awaitMissing("HTTPRoute")
	eventually(t, readyBudget, func(c *assert.CollectT) {
		// The API server may miss a definition that was changed at the moment of its deletion; another change wakes it.
		touch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.org/touched":"`+rand.String(5)+`"}}}`))
		require.NoError(c, client.IgnoreNotFound(cluster.Admin.Patch(background, served, touch)))
		requireGone(c, served)
	})
	require.NoError(t, cluster.Admin.Delete(t.Context(), public))
	awaitGone(t, goneBudget, public)
	awaitReady(t, internal)

	eventually(t, readyBudget, func(c *assert.CollectT) {
		require.NoError(c, cluster.InstallGatewayAPI(background, "httproutes"))
	})
	again := newPublishedPool("again")
	create(t, again)
	judgeRoute(t, again, true, gatewayv1.RouteReasonAccepted)
	awaitReady(t, again)

	select {
	case <-leader.Exited:
		require.Fail(t, "the operator ended")
	default:
	}
}

// TestGW05LabelComesBack: the namespace has the label that listeners select by from its first moment; when somebody takes
// it off, it comes back, and the route is changed for a moment so that its controller looks at it again.
func TestGW05LabelComesBack(t *testing.T) {
	t.Parallel()
	from := markAudit(t)
	pool, route := createPublished(t, "label")
	var order []string
	for _, c := range operatorCalls(t, from, func(c harness.Call) bool { return c.Write() && c.OK() && c.About(pool.Name) }) {
		if c.ObjectRef.Resource == "namespaces" || c.ObjectRef.Resource == "httproutes" {
			order = append(order, c.Verb+" "+c.ObjectRef.Resource)
		}
	}
	require.Equal(t, []string{"create namespaces", "patch httproutes"}, order)

	from = markAudit(t)
	namespace := poolNamespace(t, pool)
	without := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"subrelay.example.com/managed":null}}}`))
	require.NoError(t, cluster.Admin.Patch(t.Context(), namespace, without))
	eventually(t, healBudget, func(c *assert.CollectT) {
		get(c, namespace)
		assert.Equal(c, "true", namespace.Labels[v1alpha1.LabelManaged])
		now := routeOf(pool)
		get(c, now)
		assert.Equal(c, route.Generation+2, now.Generation, "the route was changed, so that it must be judged again")
		assert.Equal(c, route.Spec, now.Spec, "and is as before")
		assert.Equal(c, route.UID, now.UID)
	})
	touches := operatorCalls(t, from, func(c harness.Call) bool {
		return c.Write() && c.About(pool.Name) && c.ObjectRef.Resource == "httproutes"
	})
	require.Len(t, touches, 2)
	judgeRoute(t, pool, true, gatewayv1.RouteReasonAccepted)
	awaitReady(t, pool)
}

// TestGW05RefusedForGood: a route that stays refused is changed for a moment from time to time, since its controller may have
// failed to write its last verdict, and otherwise left alone.
func TestGW05RefusedForGood(t *testing.T) {
	t.Parallel()
	pool, route := createPublished(t, "refused")
	from := markAudit(t)
	judgeRoute(t, pool, false, gatewayv1.RouteReasonNotAllowedByListeners)
	awaitNotReady(t, pool, v1alpha1.ReasonRouteNotAccepted)
	touches := func() []harness.Call {
		return operatorCalls(t, from, func(c harness.Call) bool {
			return c.Write() && c.About(pool.Name) && c.ObjectRef.Resource == "httproutes"
		})
	}
	eventually(t, readyBudget, func(c *assert.CollectT) { assert.Len(c, touches(), 2) })
	now := routeOf(pool)
	get(t, now)
	assert.Equal(t, route.Generation+2, now.Generation, "it must be judged again")
	assert.Equal(t, route.Spec, now.Spec, "and is as before")

	judgeRoute(t, pool, true, gatewayv1.RouteReasonAccepted)
	awaitReady(t, pool)
	assert.Len(t, touches(), 2)
}

// TestGW02HostOfAnother: a host on the shared Gateway has one holder, and the first one keeps it.
func TestGW02HostOfAnother(t *testing.T) {
	t.Parallel()
	withGateway(t)
	pool := newPublishedPool("host")
	foreign := func(name string) *gatewayv1.HTTPRoute {
		return &gatewayv1.HTTPRoute{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
			Spec: gatewayv1.HTTPRouteSpec{
				CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{
					Namespace: ptr.To[gatewayv1.Namespace](sharedNamespace), Name: harness.GatewayName,
				}}},
				Hostnames: []gatewayv1.Hostname{gatewayv1.Hostname(pool.Name + "." + harness.BaseDomain)},
			},
		}
	}
	first := foreign(pool.Name)
	create(t, first)
	create(t, pool)
	awaitNotReady(t, pool, v1alpha1.ReasonHostConflict)
	require.Contains(t, message(t, pool, v1alpha1.ConditionReady), "HTTPRoute default/"+pool.Name)
	requireGone(t, routeOf(pool))

	require.NoError(t, cluster.Admin.Delete(t.Context(), first))
	judgeRoute(t, pool, true, gatewayv1.RouteReasonAccepted)
	awaitReady(t, pool)

	// Creation times have whole seconds, and of two routes of the same second the alphabet decides.
	held := routeOf(pool)
	get(t, held)
	later := foreign(pool.Name + "-later")
	eventually(t, readyBudget, func(c *assert.CollectT) { assert.Greater(c, time.Since(held.CreationTimestamp.Time), time.Second) })
	create(t, later)
	awaitOperator(t)
	get(t, routeOf(pool))
	awaitReady(t, pool)

	// While the pool is suspended its route is gone, so whoever comes then is first.
	change(t, pool, func(spec *v1alpha1.SubPoolSpec) { spec.Suspend = true })
	awaitGone(t, readyBudget, routeOf(pool))
	awaitCondition(t, pool, readyBudget, v1alpha1.ConditionExposureReady, metav1.ConditionFalse, v1alpha1.ReasonHostConflict)
}

// TestExposureFollowsTheSpec: a route exists while the pool is published and runs, and goes before the Pod does.
func TestExposureFollowsTheSpec(t *testing.T) {
	t.Parallel()
	pool, route := createPublished(t, "modes")
	host := pool.Name + "." + harness.BaseDomain
	require.Equal(t, host, pool.Status.Hostname)
	policy := &netv1.NetworkPolicy{ObjectMeta: in(pool, "allow-gateway")}
	get(t, policy)
	kept := uidsOf(t, pool)

	t.Run("deleted", func(t *testing.T) {
		require.NoError(t, cluster.Admin.Delete(t.Context(), routeOf(pool)))
		eventually(t, healBudget, func(c *assert.CollectT) {
			now := routeOf(pool)
			get(c, now)
			assert.NotEqual(c, route.UID, now.UID)
		})
		judgeRoute(t, pool, true, gatewayv1.RouteReasonAccepted)
	})
	t.Run("edited", func(t *testing.T) {
		now := routeOf(pool)
		get(t, now)
		base := now.DeepCopy()
		now.Spec.Hostnames = append(now.Spec.Hostnames, "other.example.com")
		now.Annotations["example.org/note"] = "ours"
		require.NoError(t, cluster.Admin.Patch(t.Context(), now, client.MergeFrom(base)))
		eventually(t, healBudget, func(c *assert.CollectT) {
			get(c, now)
			assert.Equal(c, []gatewayv1.Hostname{gatewayv1.Hostname(host)}, now.Spec.Hostnames)
			assert.Equal(c, "ours", now.Annotations["example.org/note"])
		})
		judgeRoute(t, pool, true, gatewayv1.RouteReasonAccepted)
		awaitReady(t, pool)
	})
	t.Run("STA-04 suspended", func(t *testing.T) {
		from := markAudit(t)
		change(t, pool, func(spec *v1alpha1.SubPoolSpec) { spec.Suspend = true })
		awaitNotReady(t, pool, v1alpha1.ReasonSuspended)
		awaitGone(t, readyBudget, routeOf(pool))
		get(t, pool)
		assert.Equal(t, host, pool.Status.Hostname, "the host stays reserved")
		var order []string
		for _, c := range operatorWrites(t, from, pool.Name) {
			if resource := c.ObjectRef.Resource; resource == "httproutes" || resource == "statefulsets" {
				order = append(order, c.Verb+" "+resource)
			}
		}
		require.Equal(t, []string{"delete httproutes", "patch statefulsets"}, order)
		change(t, pool, func(spec *v1alpha1.SubPoolSpec) { spec.Suspend = false })
		judgeRoute(t, pool, true, gatewayv1.RouteReasonAccepted)
		awaitReady(t, pool)
	})
	t.Run("internal", func(t *testing.T) {
		change(t, pool, func(spec *v1alpha1.SubPoolSpec) { spec.Exposure.Mode = v1alpha1.ExposureInternal })
		awaitReady(t, pool)
		awaitGone(t, readyBudget, routeOf(pool))
		awaitGone(t, readyBudget, policy)
		get(t, pool)
		assert.Empty(t, pool.Status.Hostname)
		assert.Equal(t, kept, uidsOf(t, pool), "everything else is kept")
	})
}

// TestGatewayVerdicts: what the Gateway's controller says reaches the pool within seconds, and what it writes that says
// nothing new causes no write.
func TestGatewayVerdicts(t *testing.T) {
	pool, route := createPublished(t, "verdict")
	await := func(reason string) {
		t.Helper()
		awaitCondition(t, pool, healBudget, v1alpha1.ConditionExposureReady, metav1.ConditionFalse, reason)
	}
	programGateway(t, false, gatewayv1.GatewayReasonInvalid)
	await(v1alpha1.ReasonGatewayNotProgrammed)
	programGateway(t, false, gatewayv1.GatewayReasonAddressNotAssigned)
	await(v1alpha1.ReasonGatewayAddressMissing)
	programGateway(t, true, gatewayv1.GatewayReasonProgrammed)
	awaitReady(t, pool)
	judgeRoute(t, pool, false, gatewayv1.RouteReasonNotAllowedByListeners)
	await(v1alpha1.ReasonRouteNotAccepted)
	require.Contains(t, message(t, pool, v1alpha1.ConditionExposureReady), "NotAllowedByListeners: judged by a test")
	judgeRoute(t, pool, true, gatewayv1.RouteReasonAccepted)
	awaitReady(t, pool)

	from := markAudit(t)
	_, gateway := harness.SharedGateway()
	for count := range int32(10) {
		get(t, gateway)
		gateway.Status.Listeners[0].AttachedRoutes = count
		require.NoError(t, cluster.Admin.Status().Update(t.Context(), gateway))
	}
	awaitOperator(t)
	require.Empty(t, operatorWrites(t, from, pool.Name))
	get(t, route)
	require.Equal(t, gatewayv1.Duration("0s"), *route.Spec.Rules[0].Timeouts.Request, "streaming answers are not cut")
}

// TestGatewayGone: the shared Gateway or its class may be deleted and made again; the route stays.
func TestGatewayGone(t *testing.T) {
	pool, _ := createPublished(t, "lost")
	class, gateway := harness.SharedGateway()
	require.NoError(t, cluster.Admin.Delete(t.Context(), gateway))
	awaitCondition(t, pool, healBudget, v1alpha1.ConditionExposureReady, metav1.ConditionFalse, v1alpha1.ReasonGatewayMissing)
	withGateway(t)
	awaitReady(t, pool)
	require.NoError(t, cluster.Admin.Delete(t.Context(), class))
	awaitCondition(t, pool, healBudget, v1alpha1.ConditionExposureReady, metav1.ConditionFalse, v1alpha1.ReasonGatewayMissing)
	withGateway(t)
	awaitReady(t, pool)
	get(t, routeOf(pool))
}
