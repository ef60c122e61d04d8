package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/internal/operatorconfig"
	"github.com/example-org/subrelay-operator/internal/subpool"
)

// exposure is what a pass read about the way in.
type exposure struct {
	// missing are the kinds of the Gateway API that the cluster does not serve; with one missing nothing else is read.
	missing []string

	gateway *gatewayv1.Gateway
	class   *gatewayv1.GatewayClass
	route   *gatewayv1.HTTPRoute

	// holder is somebody else's route that has the pool's host on the shared Gateway and was there first.
	holder *gatewayv1.HTTPRoute
}

// wantsRoute tells whether the pool is to have an HTTPRoute now.
func (o *observation) wantsRoute() bool {
	return subpool.Published(o.pool) && len(o.exposure.missing) == 0 && o.exposure.holder == nil
}

// observeExposure reads the pool's route whatever the exposure mode, since a route that is not wanted has to go.
func (r *SubPoolReconciler) observeExposure(ctx context.Context, seen *observation) error {
	found := &seen.exposure
	if found.missing = r.gatewayAPI.missing(); len(found.missing) > 0 || seen.config == nil {
		return nil
	}
	config := seen.config.Config
	gateway, class := &gatewayv1.Gateway{}, &gatewayv1.GatewayClass{}
	if ok, err := find(ctx, r, config.Gateway.Namespace, config.Gateway.Name, gateway); err != nil {
		return err
	} else if ok {
		found.gateway = gateway
		if ok, err := find(ctx, r, "", string(gateway.Spec.GatewayClassName), class); err != nil {
			return err
		} else if ok {
			found.class = class
		}
	}
	var routes gatewayv1.HTTPRouteList
	if err := r.List(ctx, &routes, client.InNamespace(subpool.NamespaceName(seen.pool.Name))); err != nil {
		return err
	}
	for i := range routes.Items {
		route := &routes.Items[i]
		if route.Name != subpool.CPAName || !ownedBy(route, seen.pool) {
			continue
		}
		found.route = route
		if err := seen.live.Add(r.Scheme(), route); err != nil {
			return err
		}
	}
	host := subpool.Hostname(seen.pool.Name, config.BaseDomain)
	if err := r.List(ctx, &routes, client.MatchingFields{hostIndex: host}); err != nil {
		return err
	}
	found.holder = holder(routes.Items, found.route, seen.pool, config.Gateway)
	return nil
}

// holder applies the Gateway API's own rule for routes with the same host: the oldest one has it, and of two of the same
// second the one that comes first in the alphabet. A pool without a route comes after every route that is there.
func holder(
	sameHost []gatewayv1.HTTPRoute, ours *gatewayv1.HTTPRoute, pool *v1alpha1.SubPool, gateway operatorconfig.Gateway,
) *gatewayv1.HTTPRoute {
	var first *gatewayv1.HTTPRoute
	for i := range sameHost {
		route := &sameHost[i]
		if !ownedBy(route, pool) && attachesTo(route, gateway) && (first == nil || precedes(route, first)) {
			first = route
		}
	}
	if first != nil && ours != nil && precedes(ours, first) {
		return nil
	}
	return first
}

func precedes(a, b *gatewayv1.HTTPRoute) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Namespace+"/"+a.Name < b.Namespace+"/"+b.Name
}

// attachesTo tells whether a route asks for the Gateway, whichever of its listeners.
func attachesTo(route *gatewayv1.HTTPRoute, gateway operatorconfig.Gateway) bool {
	return slices.ContainsFunc(route.Spec.ParentRefs, func(ref gatewayv1.ParentReference) bool {
		return refersTo(ref, route.Namespace, gateway)
	})
}

// refersTo reads a reference to a parent with the defaults that the Gateway API gives it.
func refersTo(ref gatewayv1.ParentReference, routeNamespace string, gateway operatorconfig.Gateway) bool {
	return ptr.Deref(ref.Group, gatewayv1.GroupName) == gatewayv1.GroupName &&
		ptr.Deref(ref.Kind, "Gateway") == "Gateway" &&
		ptr.Deref(ref.Namespace, gatewayv1.Namespace(routeNamespace)) == gatewayv1.Namespace(gateway.Namespace) &&
		string(ref.Name) == gateway.Name
}

// assessExposure names the first thing between clients and CPA: causes before effects.
func assessExposure(seen *observation) verdict {
	if seen.pool.Spec.Exposure.Mode != v1alpha1.ExposureGateway {
		return yes(v1alpha1.ReasonClusterInternal)
	}
	if seen.config == nil {
		return verdict{metav1.ConditionUnknown, v1alpha1.ReasonOperatorConfigurationInvalid,
			"the operator configuration, which names the Gateway, is unusable"}
	}
	if found := seen.exposure; len(found.missing) > 0 {
		return no(v1alpha1.ReasonGatewayAPIMissing,
			"the cluster does not serve %s of %s: install the Gateway API, or set spec.exposure.mode to Internal",
			strings.Join(found.missing, ", "), gatewayv1.GroupVersion)
	} else if found.holder != nil {
		return no(v1alpha1.ReasonHostConflict,
			"HTTPRoute %s/%s has the host %s on the shared Gateway and was there first: remove the host from it",
			found.holder.Namespace, found.holder.Name, subpool.Hostname(seen.pool.Name, seen.config.Config.BaseDomain))
	}
	if seen.pool.Spec.Suspend {
		return no(v1alpha1.ReasonSuspended, "the HTTPRoute is removed; the host stays this pool's")
	}
	if problem := assessGateway(seen); !problem.ok() {
		return problem
	}
	return assessRoute(seen)
}

// assessGateway is about what all published pools share.
func assessGateway(seen *observation) verdict {
	config, found := seen.config.Config.Gateway, seen.exposure
	if found.gateway == nil {
		return no(v1alpha1.ReasonGatewayMissing, "Gateway %s/%s does not exist: install it (deploy/gateway)", config.Namespace, config.Name)
	}
	if found.class == nil {
		return no(v1alpha1.ReasonGatewayMissing, "GatewayClass %s of Gateway %s/%s does not exist: install it (deploy/gateway)",
			found.gateway.Spec.GatewayClassName, config.Namespace, config.Name)
	}
	programmed := meta.FindStatusCondition(found.gateway.Status.Conditions, string(gatewayv1.GatewayConditionProgrammed))
	switch {
	case programmed == nil || programmed.ObservedGeneration < found.gateway.Generation:
		return no(v1alpha1.ReasonGatewayNotProgrammed,
			"no controller has judged Gateway %s/%s as it is now: does one run for GatewayClass %s?",
			config.Namespace, config.Name, found.class.Name)
	case programmed.Status != metav1.ConditionTrue && programmed.Reason != string(gatewayv1.GatewayReasonAddressNotAssigned):
		return no(v1alpha1.ReasonGatewayNotProgrammed, "Gateway %s/%s is not programmed: %s: %s",
			config.Namespace, config.Name, programmed.Reason, programmed.Message)
	case programmed.Status != metav1.ConditionTrue && !config.TolerateMissingAddress:
		return no(v1alpha1.ReasonGatewayAddressMissing, "no address is assigned to Gateway %s/%s: %s; "+
			"without load balancers, set gateway.tolerateMissingAddress in the operator configuration",
			config.Namespace, config.Name, programmed.Message)
	}
	return assessListener(found.gateway, config)
}

// assessListener: a Gateway counts as programmed although one of its listeners is not, for example for want of a
// certificate.
func assessListener(gateway *gatewayv1.Gateway, config operatorconfig.Gateway) verdict {
	for _, listener := range gateway.Status.Listeners {
		if string(listener.Name) != config.SectionName {
			continue
		}
		programmed := meta.FindStatusCondition(listener.Conditions, string(gatewayv1.ListenerConditionProgrammed))
		if programmed == nil || programmed.Status == metav1.ConditionTrue {
			return yes(v1alpha1.ReasonRouteProgrammed)
		}
		return no(v1alpha1.ReasonGatewayNotProgrammed, "listener %s of Gateway %s/%s is not programmed: %s: %s",
			config.SectionName, config.Namespace, config.Name, programmed.Reason, programmed.Message)
	}
	return no(v1alpha1.ReasonGatewayNotProgrammed, "Gateway %s/%s has no listener %s: correct gateway.sectionName in the "+
		"operator configuration, or the Gateway", config.Namespace, config.Name, config.SectionName)
}

// assessRoute counts only what the controller of our Gateway's class says of our listener and of the route as it is now.
// Entries for other parents and by other controllers may be in the status too, in any order, and an entry without a
// generation is as good as one of an older generation.
func assessRoute(seen *observation) verdict {
	route := seen.exposure.route
	if route == nil {
		return no(v1alpha1.ReasonRouteMissing, "HTTPRoute %s does not exist yet", subpool.CPAName)
	}
	gateway := seen.config.Config.Gateway
	index := slices.IndexFunc(route.Status.Parents, func(entry gatewayv1.RouteParentStatus) bool {
		return entry.ControllerName == seen.exposure.class.Spec.ControllerName &&
			refersTo(entry.ParentRef, route.Namespace, gateway) &&
			string(ptr.Deref(entry.ParentRef.SectionName, "")) == gateway.SectionName && entry.ParentRef.Port == nil
	})
	if index < 0 {
		return no(v1alpha1.ReasonRouteNotAccepted, "%s has said nothing yet about HTTPRoute %s for listener %s of Gateway %s/%s",
			seen.exposure.class.Spec.ControllerName, route.Name, gateway.SectionName, gateway.Namespace, gateway.Name)
	}
	conditions := route.Status.Parents[index].Conditions
	for _, needed := range []gatewayv1.RouteConditionType{gatewayv1.RouteConditionAccepted, gatewayv1.RouteConditionResolvedRefs} {
		condition := meta.FindStatusCondition(conditions, string(needed))
		switch {
		case condition == nil:
			return no(v1alpha1.ReasonRouteNotAccepted, "HTTPRoute %s has no condition %s yet", route.Name, needed)
		case condition.ObservedGeneration < route.Generation:
			return no(v1alpha1.ReasonRouteNotAccepted, "HTTPRoute %s was changed, and its condition %s is about an older generation%s",
				route.Name, needed, said(condition))
		case condition.Status != metav1.ConditionTrue:
			return no(v1alpha1.ReasonRouteNotAccepted, "HTTPRoute %s: %s is %s%s", route.Name, needed, condition.Status, said(condition))
		}
	}
	return yes(v1alpha1.ReasonRouteProgrammed)
}

// refused tells whether the verdict of the Gateway's controller on the route is all that keeps the pool from being published.
func refused(seen *observation) bool {
	return assessExposure(seen).reason == v1alpha1.ReasonRouteNotAccepted
}

// said is what a condition that is not True says.
func said(condition *metav1.Condition) string {
	if condition.Status == metav1.ConditionTrue {
		return ""
	}
	return fmt.Sprintf(": %s: %s", condition.Reason, condition.Message)
}
