//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/example-org/subrelay-operator/test/harness"
)

// envoyRoutes is what Envoy Gateway's translation says of routes.
type envoyRoutes struct {
	XDS map[string]struct {
		DynamicRouteConfigs []struct {
			RouteConfig struct {
				VirtualHosts []struct {
					Domains []string
					Routes  []envoyRoute
				}
			}
		}
	}
}

type envoyRoute struct {
	Match struct{ PathSeparatedPrefix string }
	Route *struct {
		Cluster, Timeout, IdleTimeout string
		UpgradeConfigs                []struct{ UpgradeType string }
	}
}

// GW-01: what Envoy itself would be told: the pool's host alone, for each of the published paths the pool's Service, no limit
// to how long an answer takes or is silent, and upgrades to WebSocket.
func TestGW01Translation(t *testing.T) {
	t.Parallel()
	id := createReady(t, newPublishedPool("translated"))
	gateway := read[gatewayv1.Gateway](t, sharedNamespace, harness.GatewayName)
	// The translation is given no namespaces, whose labels the listener asks for.
	gateway.Spec.Listeners[0].AllowedRoutes.Namespaces = &gatewayv1.RouteNamespaces{From: ptr.To(gatewayv1.NamespacesFromAll)}
	route := routeOf(t, id)
	translated := translate(t, read[gatewayv1.GatewayClass](t, "", harness.GatewayClassName), gateway, route,
		read[corev1.Service](t, namespaceOf(id), cpaName))

	hosts := translated.XDS[sharedNamespace+"/"+harness.GatewayName].DynamicRouteConfigs[0].RouteConfig.VirtualHosts
	require.Len(t, hosts, 1)
	assert.Equal(t, []string{id + "." + harness.BaseDomain}, hosts[0].Domains)
	var published, prefixes []string
	for _, match := range route.Spec.Rules[0].Matches {
		published = append(published, *match.Path.Value)
	}
	for _, route := range hosts[0].Routes {
		prefixes = append(prefixes, route.Match.PathSeparatedPrefix)
		require.NotNil(t, route.Route, route.Match.PathSeparatedPrefix)
		assert.Equal(t, "httproute/"+namespaceOf(id)+"/cpa/rule/0", route.Route.Cluster)
		assert.Equal(t, "0s", route.Route.Timeout)
		assert.Equal(t, "0s", route.Route.IdleTimeout)
		require.Len(t, route.Route.UpgradeConfigs, 1)
		assert.Equal(t, "websocket", route.Route.UpgradeConfigs[0].UpgradeType)
	}
	assert.ElementsMatch(t, published, prefixes)
}

// translate has Envoy Gateway's own tool turn objects into Envoy's routes.
func translate(t *testing.T, objects ...client.Object) envoyRoutes {
	t.Helper()
	egctl, err := harness.LabTool("envoy-gateway", "egctl")
	require.NoError(t, err)
	var documents []byte
	for _, object := range objects {
		gvk, err := admin.GroupVersionKindFor(object)
		require.NoError(t, err)
		object.GetObjectKind().SetGroupVersionKind(gvk)
		document, err := yaml.Marshal(object)
		require.NoError(t, err)
		documents = append(append(documents, "---\n"...), document...)
	}
	file := filepath.Join(t.TempDir(), "objects.yaml")
	require.NoError(t, os.WriteFile(file, documents, 0o600))
	output, err := exec.CommandContext(t.Context(), egctl, "x", "translate", "--from", "gateway-api", "--to", "xds",
		"--type", "route", "--output", "json", "--file", file).Output()
	require.NoError(t, err)
	var routes envoyRoutes
	require.NoError(t, json.Unmarshal(output, &routes))
	return routes
}
