package subpool

import (
	corev1 "k8s.io/api/core/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1ac "sigs.k8s.io/gateway-api/applyconfiguration/apis/v1"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/internal/operatorconfig"
)

// noTimeout, as a Gateway API duration, lets an answer stream for as long as it takes. Without it a data plane applies a
// limit of its own, often 15 s for the whole answer.
const noTimeout = gatewayv1.Duration("0s")

// The weight of the route's only backend means nothing, see Route.
const (
	weight        = 1
	rejudgeWeight = 2
)

// Published tells whether the pool is to have a route. A suspended pool keeps its host, which only it can derive, but no
// route: there is nothing behind it.
func Published(pool *v1alpha1.SubPool) bool {
	return pool.Spec.Exposure.Mode == v1alpha1.ExposureGateway && !pool.Spec.Suspend
}

// Route is the way from the shared Gateway's listener to CPA: only for clients' paths, so that neither CPA's management
// nor its panel is published, and never to cpa-manager. Lists of a route are compared as a whole, so every default that
// the server would fill in is written out.
//
// With rejudge the route differs from what it is without, in a field that changes no traffic, so that its controller has to judge
// it anew. A change of the metadata is not enough: the controller may come to the verdict that it takes for written already.
func Route(in Input, rejudge bool) *gatewayv1ac.HTTPRouteApplyConfiguration {
	backendWeight := int32(weight)
	if rejudge {
		backendWeight = rejudgeWeight
	}
	rule := gatewayv1ac.HTTPRouteRule().
		WithTimeouts(gatewayv1ac.HTTPRouteTimeouts().WithRequest(noTimeout)).
		WithBackendRefs(gatewayv1ac.HTTPBackendRef().
			WithGroup(corev1.GroupName).WithKind("Service").
			WithName(CPAName).WithPort(CPAPort).WithWeight(backendWeight))
	for _, prefix := range in.Config.Gateway.Paths {
		rule.WithMatches(gatewayv1ac.HTTPRouteMatch().WithPath(gatewayv1ac.HTTPPathMatch().
			WithType(gatewayv1.PathMatchPathPrefix).WithValue(prefix)))
	}
	return gatewayv1ac.HTTPRoute(CPAName, NamespaceName(in.Pool.Name)).
		WithLabels(Labels(in.Pool)).
		WithOwnerReferences(owner(in.Pool)).
		WithSpec(gatewayv1ac.HTTPRouteSpec().
			WithParentRefs(parentRef(in.Config.Gateway)).
			WithHostnames(gatewayv1.Hostname(Hostname(in.Pool.Name, in.Config.BaseDomain))).
			WithRules(rule))
}

func parentRef(gateway operatorconfig.Gateway) *gatewayv1ac.ParentReferenceApplyConfiguration {
	return gatewayv1ac.ParentReference().
		WithGroup(gatewayv1.GroupName).WithKind("Gateway").
		WithNamespace(gatewayv1.Namespace(gateway.Namespace)).
		WithName(gatewayv1.ObjectName(gateway.Name)).
		WithSectionName(gatewayv1.SectionName(gateway.SectionName))
}
