package controllers

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

const controllerName = gatewayv1.GatewayController("gateway.envoyproxy.io/gatewayclass-controller")

// published is a running pool whose route works.
func published(t testing.TB) *observation {
	t.Helper()
	seen := running(t)
	seen.pool.Spec.Exposure.Mode = v1alpha1.ExposureGateway
	seen.exposure = exposure{
		class: &gatewayv1.GatewayClass{
			ObjectMeta: metav1.ObjectMeta{Name: "subpool-envoy"},
			Spec:       gatewayv1.GatewayClassSpec{ControllerName: controllerName},
		},
		gateway: &gatewayv1.Gateway{
			ObjectMeta: metav1.ObjectMeta{Name: "subpool-edge", Namespace: "subpool-gateway", Generation: 4},
			Spec:       gatewayv1.GatewaySpec{GatewayClassName: "subpool-envoy"},
			Status: gatewayv1.GatewayStatus{
				Conditions: []metav1.Condition{says("Programmed", "True", "Programmed", 4)},
				Listeners:  []gatewayv1.ListenerStatus{listener("https", "False"), listener("http", "True")},
			},
		},
		route: &gatewayv1.HTTPRoute{
			ObjectMeta: metav1.ObjectMeta{Name: "cpa", Namespace: "subpool-demo-pool", Generation: 2},
			Status:     gatewayv1.HTTPRouteStatus{RouteStatus: gatewayv1.RouteStatus{Parents: []gatewayv1.RouteParentStatus{accepted(2)}}},
		},
	}
	return seen
}

func says(kind string, status metav1.ConditionStatus, reason string, generation int64) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "because", ObservedGeneration: generation}
}

func listener(name gatewayv1.SectionName, programmed metav1.ConditionStatus) gatewayv1.ListenerStatus {
	return gatewayv1.ListenerStatus{Name: name, Conditions: []metav1.Condition{says("Programmed", programmed, "Invalid", 4)}}
}

// accepted is the entry of a route's status that counts.
func accepted(generation int64) gatewayv1.RouteParentStatus {
	return gatewayv1.RouteParentStatus{
		ControllerName: controllerName,
		ParentRef: gatewayv1.ParentReference{
			Namespace: ptr.To[gatewayv1.Namespace]("subpool-gateway"), Name: "subpool-edge",
			SectionName: ptr.To[gatewayv1.SectionName]("http"),
		},
		Conditions: []metav1.Condition{
			says("Accepted", "True", "Accepted", generation), says("ResolvedRefs", "True", "ResolvedRefs", generation),
		},
	}
}

// TestGW04RouteStatus: only what our Gateway's controller says about our listener and the route as it is counts, wherever
// it stands among other entries.
func TestGW04RouteStatus(t *testing.T) {
	foreign := map[string]func(*gatewayv1.RouteParentStatus){
		"another controller": func(entry *gatewayv1.RouteParentStatus) { entry.ControllerName = "example.com/other" },
		"another gateway":    func(entry *gatewayv1.RouteParentStatus) { entry.ParentRef.Name = "other" },
		"another namespace":  func(entry *gatewayv1.RouteParentStatus) { entry.ParentRef.Namespace = nil },
		"another section": func(entry *gatewayv1.RouteParentStatus) {
			entry.ParentRef.SectionName = ptr.To[gatewayv1.SectionName]("https")
		},
		"no section": func(entry *gatewayv1.RouteParentStatus) { entry.ParentRef.SectionName = nil },
		"a port":     func(entry *gatewayv1.RouteParentStatus) { entry.ParentRef.Port = ptr.To[gatewayv1.PortNumber](80) },
		"another kind": func(entry *gatewayv1.RouteParentStatus) {
			entry.ParentRef.Kind = ptr.To[gatewayv1.Kind]("Service")
		},
	}
	for name, change := range foreign {
		t.Run(name, func(t *testing.T) {
			other, refused := accepted(2), accepted(2)
			change(&other)
			refused.Conditions[0] = says("Accepted", "False", "NotAllowedByListeners", 2)

			seen := published(t)
			parents := &seen.exposure.route.Status.Parents
			*parents = []gatewayv1.RouteParentStatus{other}
			require.Equal(t, v1alpha1.ReasonRouteNotAccepted, assessExposure(seen).reason, "alone")
			for _, order := range [][]gatewayv1.RouteParentStatus{{other, refused}, {refused, other}} {
				*parents = order
				require.Equal(t, v1alpha1.ReasonRouteNotAccepted, assessExposure(seen).reason)
				require.Contains(t, assessExposure(seen).message, "NotAllowedByListeners: because")
			}
			contrary := other
			contrary.Conditions = refused.Conditions
			for _, order := range [][]gatewayv1.RouteParentStatus{{contrary, accepted(2)}, {accepted(2), contrary}} {
				*parents = order
				require.True(t, assessExposure(seen).ok(), assessExposure(seen).message)
			}
		})
	}
}

// TestExposure: the first thing in the way is named, causes before effects.
func TestExposure(t *testing.T) {
	route := func(o *observation) []metav1.Condition { return o.exposure.route.Status.Parents[0].Conditions }
	programmed := func(o *observation) *metav1.Condition { return &o.exposure.gateway.Status.Conditions[0] }
	noAddress := func(o *observation) {
		*programmed(o) = says("Programmed", "False", "AddressNotAssigned", 4)
	}
	for name, c := range map[string]struct {
		change func(*observation)
		reason string
		says   string
	}{
		"published":  {func(*observation) {}, v1alpha1.ReasonRouteProgrammed, ""},
		"internal":   {func(o *observation) { o.pool.Spec.Exposure.Mode = v1alpha1.ExposureInternal }, v1alpha1.ReasonClusterInternal, ""},
		"no config":  {func(o *observation) { o.config = nil }, v1alpha1.ReasonOperatorConfigurationInvalid, "unusable"},
		"no API":     {func(o *observation) { o.exposure.missing = []string{"Gateway", "HTTPRoute"} }, v1alpha1.ReasonGatewayAPIMissing, "Gateway, HTTPRoute of gateway.networking.k8s.io/v1"},
		"suspended":  {func(o *observation) { o.pool.Spec.Suspend = true }, v1alpha1.ReasonSuspended, "host stays"},
		"no gateway": {func(o *observation) { o.exposure.gateway = nil }, v1alpha1.ReasonGatewayMissing, "Gateway subpool-gateway/subpool-edge"},
		"no class":   {func(o *observation) { o.exposure.class = nil }, v1alpha1.ReasonGatewayMissing, "GatewayClass subpool-envoy"},
		"no controller": {
			func(o *observation) { o.exposure.gateway.Status.Conditions = nil }, v1alpha1.ReasonGatewayNotProgrammed, "does one run",
		},
		"gateway invalid": {
			func(o *observation) { *programmed(o) = says("Programmed", "False", "Invalid", 4) }, v1alpha1.ReasonGatewayNotProgrammed, "Invalid: because",
		},
		"gateway changed": {
			func(o *observation) { programmed(o).ObservedGeneration = 3 }, v1alpha1.ReasonGatewayNotProgrammed, "does one run",
		},
		"GW-06 no address": {noAddress, v1alpha1.ReasonGatewayAddressMissing, "tolerateMissingAddress"},
		"GW-06 no address, tolerated, listener works": {func(o *observation) {
			noAddress(o)
			o.config.Config.Gateway.TolerateMissingAddress = true
		}, v1alpha1.ReasonRouteProgrammed, ""},
		"GW-06 no address, tolerated, listener does not work": {func(o *observation) {
			noAddress(o)
			o.config.Config.Gateway.TolerateMissingAddress = true
			o.exposure.gateway.Status.Listeners = []gatewayv1.ListenerStatus{listener("http", "False"), listener("https", "True")}
		}, v1alpha1.ReasonGatewayNotProgrammed, "listener http of Gateway subpool-gateway/subpool-edge is not programmed: Invalid: because"},
		"listener without certificate": {func(o *observation) {
			o.config.Config.Gateway.SectionName = "https"
		}, v1alpha1.ReasonGatewayNotProgrammed, "listener https of Gateway subpool-gateway/subpool-edge is not programmed"},
		"no such listener": {func(o *observation) {
			o.config.Config.Gateway.SectionName = "tls"
		}, v1alpha1.ReasonGatewayNotProgrammed, "has no listener tls"},
		"GW-06 other reason is not tolerated": {func(o *observation) {
			*programmed(o) = says("Programmed", "False", "NoResources", 4)
			o.config.Config.Gateway.TolerateMissingAddress = true
		}, v1alpha1.ReasonGatewayNotProgrammed, "NoResources"},
		"no route":   {func(o *observation) { o.exposure.route = nil }, v1alpha1.ReasonRouteMissing, "HTTPRoute cpa"},
		"not judged": {func(o *observation) { o.exposure.route.Status.Parents = nil }, v1alpha1.ReasonRouteNotAccepted, "has said nothing yet"},
		"backend not resolved": {
			func(o *observation) { route(o)[1] = says("ResolvedRefs", "False", "BackendNotFound", 2) }, v1alpha1.ReasonRouteNotAccepted, "BackendNotFound: because",
		},
		"half judged": {
			func(o *observation) {
				entry := &o.exposure.route.Status.Parents[0]
				entry.Conditions = slices.Delete(entry.Conditions, 1, 2)
			}, v1alpha1.ReasonRouteNotAccepted, "no condition ResolvedRefs",
		},
		"GW-07 older generation": {func(o *observation) { route(o)[0].ObservedGeneration = 1 }, v1alpha1.ReasonRouteNotAccepted, "older generation"},
		"GW-07 no generation":    {func(o *observation) { route(o)[0].ObservedGeneration = 0 }, v1alpha1.ReasonRouteNotAccepted, "older generation"},
		"GW-07 old refusal": {
			func(o *observation) { route(o)[0] = says("Accepted", "False", "NoMatchingParent", 1) }, v1alpha1.ReasonRouteNotAccepted,
			"older generation: NoMatchingParent: because",
		},
		"GW-07 newer generation": {func(o *observation) { route(o)[0].ObservedGeneration = 3 }, v1alpha1.ReasonRouteProgrammed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			seen := published(t)
			c.change(seen)
			got := assessExposure(seen)
			require.Equal(t, c.reason, got.reason, got.message)
			require.Contains(t, got.message, c.says)
			positive := c.reason == v1alpha1.ReasonRouteProgrammed || c.reason == v1alpha1.ReasonClusterInternal
			require.Equal(t, positive, got.ok())
		})
	}
}

// TestGW02HostHolder: of the routes that ask for a host of the shared Gateway the oldest has it.
func TestGW02HostHolder(t *testing.T) {
	at := func(second int) metav1.Time { return metav1.Date(2030, 1, 1, 0, 0, second, 0, time.UTC) }
	route := func(namespace string, second int, gateway gatewayv1.ObjectName) gatewayv1.HTTPRoute {
		route := gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Name: "cpa", Namespace: namespace, CreationTimestamp: at(second)}}
		route.Spec.ParentRefs = []gatewayv1.ParentReference{{Namespace: ptr.To[gatewayv1.Namespace]("subpool-gateway"), Name: gateway}}
		return route
	}
	ours := route("subpool-demo-pool", 5, "subpool-edge")
	ours.OwnerReferences = []metav1.OwnerReference{{UID: poolUID, Controller: ptr.To(true)}}
	for name, c := range map[string]struct {
		others []gatewayv1.HTTPRoute
		ours   *gatewayv1.HTTPRoute
		want   string
	}{
		"alone":                       {nil, &ours, ""},
		"nobody":                      {nil, nil, ""},
		"older one":                   {[]gatewayv1.HTTPRoute{route("a", 4, "subpool-edge")}, &ours, "a"},
		"younger one":                 {[]gatewayv1.HTTPRoute{route("a", 6, "subpool-edge")}, &ours, ""},
		"same second, earlier name":   {[]gatewayv1.HTTPRoute{route("a", 5, "subpool-edge")}, &ours, "a"},
		"same second, later name":     {[]gatewayv1.HTTPRoute{route("z", 5, "subpool-edge")}, &ours, ""},
		"we have none yet":            {[]gatewayv1.HTTPRoute{route("z", 9, "subpool-edge")}, nil, "z"},
		"the oldest of several":       {[]gatewayv1.HTTPRoute{route("b", 3, "subpool-edge"), route("a", 2, "subpool-edge")}, nil, "a"},
		"another gateway's":           {[]gatewayv1.HTTPRoute{route("a", 1, "other")}, &ours, ""},
		"another gateway's, none yet": {[]gatewayv1.HTTPRoute{route("a", 1, "other")}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			seen := published(t)
			all := c.others
			if c.ours != nil {
				all = append(all, *c.ours)
			}
			seen.exposure.route = c.ours
			seen.exposure.holder = holder(all, c.ours, seen.pool, seen.config.Config.Gateway)
			require.Equal(t, c.want == "", seen.wantsRoute())
			if c.want != "" {
				require.Equal(t, v1alpha1.ReasonHostConflict, assessExposure(seen).reason)
				require.Contains(t, assessExposure(seen).message, "HTTPRoute "+c.want+"/cpa")
			}
		})
	}
}
