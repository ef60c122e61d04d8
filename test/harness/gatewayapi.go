package harness

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"
)

// The shared Gateway, as deploy/gateway and the shipped operator configuration name it.
const (
	GatewayName       = "subpool-edge"
	GatewayClassName  = "subpool-envoy"
	GatewaySection    = "http"
	GatewayController = gatewayv1.GatewayController("gateway.envoyproxy.io/gatewayclass-controller")

	// BaseDomain is that of the shipped operator configuration.
	BaseDomain = "subrelay.example.com"
)

// GatewayAPIPlurals are the resources of the Gateway API that the operator needs.
var GatewayAPIPlurals = []string{"gatewayclasses", "gateways", "httproutes"}

// GatewayAPIDefinition reads the definition of a resource of the Gateway API from the module that the operator is built
// with.
func GatewayAPIDefinition(ctx context.Context, plural string) (*apiextensionsv1.CustomResourceDefinition, error) {
	folder, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	if err != nil {
		return nil, fmt.Errorf("find the Gateway API's module: %w", err)
	}
	path := filepath.Join(string(bytes.TrimSpace(folder)), "config", "crd", "standard", "gateway.networking.k8s.io_"+plural+".yaml")
	document, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read a definition of the Gateway API: %w", err)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(document, definition); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return definition, nil
}

// InstallGatewayAPI makes the definitions that are not there yet.
func (c *Cluster) InstallGatewayAPI(ctx context.Context, plurals ...string) error {
	for _, plural := range plurals {
		definition, err := GatewayAPIDefinition(ctx, plural)
		if err != nil {
			return err
		}
		if err := c.Admin.Create(ctx, definition); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("install %s: %w", definition.Name, err)
		}
	}
	return nil
}

// SharedGateway returns the shared Gateway and its class as deploy/gateway has them, for a cluster whose Gateway no
// controller serves.
func SharedGateway() (*gatewayv1.GatewayClass, *gatewayv1.Gateway) {
	class := &gatewayv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: GatewayClassName},
		Spec:       gatewayv1.GatewayClassSpec{ControllerName: GatewayController},
	}
	gateway := &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: SharedNamespace, Name: GatewayName},
		Spec: gatewayv1.GatewaySpec{
			GatewayClassName: GatewayClassName,
			Listeners:        []gatewayv1.Listener{{Name: GatewaySection, Port: 80, Protocol: gatewayv1.HTTPProtocolType}},
		},
	}
	return class, gateway
}

// Judged returns a condition of the newest generation as a Gateway's controller writes it.
func Judged(object client.Object, kind string, ok bool, reason string) metav1.Condition {
	status := metav1.ConditionFalse
	if ok {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: "judged by a test", ObservedGeneration: object.GetGeneration(),
		LastTransitionTime: metav1.Now(),
	}
}

// RouteVerdict returns the entry of a route's status that the shared Gateway's controller writes.
func RouteVerdict(route *gatewayv1.HTTPRoute, accepted bool, reason gatewayv1.RouteConditionReason) gatewayv1.RouteParentStatus {
	return gatewayv1.RouteParentStatus{
		ControllerName: GatewayController,
		ParentRef: gatewayv1.ParentReference{
			Group: ptr.To[gatewayv1.Group](gatewayv1.GroupName), Kind: ptr.To[gatewayv1.Kind]("Gateway"),
			Namespace: ptr.To[gatewayv1.Namespace](SharedNamespace), Name: GatewayName,
			SectionName: ptr.To[gatewayv1.SectionName](GatewaySection),
		},
		Conditions: []metav1.Condition{
			Judged(route, string(gatewayv1.RouteConditionAccepted), accepted, string(reason)),
			Judged(route, string(gatewayv1.RouteConditionResolvedRefs), true, string(gatewayv1.RouteReasonResolvedRefs)),
		},
	}
}
