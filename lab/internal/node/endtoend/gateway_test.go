//go:build lab

package endtoend

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const gatewayLabels = "--selector=app.kubernetes.io/managed-by=envoy-gateway"

// edge is a Gateway of a class that the controller has not seen before.
func edge(class string) string {
	return fmt.Sprintf(`apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: %[1]s}
spec: {controllerName: gateway.envoyproxy.io/gatewayclass-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: front}
spec: {gatewayClassName: %[1]s, listeners: [{name: http, protocol: HTTP, port: 80}]}
`, class)
}

func TestGatewayWithoutANode(t *testing.T) {
	l := newLab(t)
	l.mustRun("build", "kubernetes", "envoy-gateway")
	before := hostState(t)
	l.must("up", "--control-plane-only")
	l.must("gateway", "crds", "install")
	require.Contains(t, l.kubectl("api-resources"), "httproutes")
	l.must("gateway", "crds", "remove")
	require.NotContains(t, l.kubectl("api-resources"), "httproutes")

	l.must("gateway", "up")
	l.must("gateway", "up")
	require.Contains(t, l.must("status"), "envoy-gateway")
	l.kubectl("create", "namespace", "front")
	l.apply(edge("first"))
	l.kubectl("wait", "--namespace=front", "gateway/edge", "--for=condition=Accepted", "--timeout="+patience.String())

	// Nobody runs the data plane's Pod here, so the test says that it is ready.
	pods := func() string { return l.kubectl("get", "pods", "--all-namespaces", gatewayLabels, "--output=name") }
	l.eventually(func() error {
		if len(strings.Fields(pods())) != 1 {
			return fmt.Errorf("no data plane: %s", pods())
		}
		return nil
	})
	l.kubectl("patch", "--namespace=envoy-gateway-system", strings.TrimSpace(pods()), "--subresource=status", "--type=merge",
		`--patch={"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)
	l.kubectl("wait", "--namespace=front", "gateway/edge", "--for=condition=Programmed", "--timeout="+patience.String())

	l.must("gateway", "down")
	l.must("gateway", "down")
	require.NotContains(t, l.must("status"), "envoy-gateway")
	require.Empty(t, pods())
	l.must("gateway", "crds", "remove")
	require.Equal(t, before, hostState(t), "the host is as it was")
	l.must("down")
	l.requireGone()
}

func TestGatewayLayouts(t *testing.T) {
	l := newLab(t)
	l.mustRun("build")
	l.must("up")
	l.must("gateway", "up")
	l.kubectl("create", "namespace", "front")
	l.apply(edge("first"))
	for layout, want := range map[string]string{
		"controller-namespace": "envoy-gateway-system gateway.envoyproxy.io/owning-gateway-name=edge",
		"merged":               "envoy-gateway-system gateway.envoyproxy.io/owning-gatewayclass=first",
		"gateway-namespace":    "front gateway.networking.k8s.io/gateway-name=edge",
	} {
		namespace, label, _ := strings.Cut(want, " ")
		l.must("gateway", "up", "--layout="+layout)
		l.eventually(func() error {
			here := l.kubectl("get", "deployments", "--namespace="+namespace, gatewayLabels+","+label, "--output=name")
			all := l.kubectl("get", "deployments", "--all-namespaces", gatewayLabels, "--output=name")
			if len(strings.Fields(here)) != 1 || len(strings.Fields(all)) != 1 {
				return fmt.Errorf("layout %s: in %s: %q, everywhere: %q", layout, namespace, here, all)
			}
			return nil
		})
	}
	l.must("down")
	l.requireGone()
}
