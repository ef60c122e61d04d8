//go:build e2e

package e2e

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

// Here the judge of Gateway and routes is Envoy Gateway's own controller. The data plane is a stand-in for Envoy that
// does what this controller tells Envoy to do.

// A published pool answers the holder of its client key at its own host, and nobody when its mode is Internal.
func TestGatewayMode(t *testing.T) {
	t.Parallel()
	id := createReady(t, newPublishedPool("published"))
	e := throughGateway(t, id)
	awaitServed(t, e)

	t.Run("judged", func(t *testing.T) {
		parents := routeOf(t, id).Status.Parents
		require.Len(t, parents, 1)
		assert.Equal(t, harness.GatewayController, parents[0].ControllerName)
		for _, needed := range []gatewayv1.RouteConditionType{gatewayv1.RouteConditionAccepted, gatewayv1.RouteConditionResolvedRefs} {
			assert.True(t, meta.IsStatusConditionTrue(parents[0].Conditions, string(needed)), needed)
		}
		gateway := read[gatewayv1.Gateway](t, sharedNamespace, harness.GatewayName)
		assert.True(t, meta.IsStatusConditionTrue(gateway.Status.Conditions, string(gatewayv1.GatewayConditionProgrammed)))
		require.Len(t, gateway.Status.Listeners, 1)
		assert.Positive(t, gateway.Status.Listeners[0].AttachedRoutes)
		pool := readPool(t, id)
		assert.Equal(t, e.host, pool.Status.Hostname)
		exposure := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionExposureReady)
		require.NotNil(t, exposure)
		assert.Equal(t, v1alpha1.ReasonRouteProgrammed, exposure.Reason)
	})
	t.Run("keys", func(t *testing.T) {
		assert.Equal(t, http.StatusUnauthorized, e.status(t, "/v1/models", ""), "without a key")
		assert.Equal(t, http.StatusUnauthorized, e.status(t, "/v1/models", key(t, id, "cpa_management_key")), "with another key")
		assert.Equal(t, http.StatusOK, e.status(t, "/v1/models", key(t, id, "cpa_client_key")), "with the client key")
	})
	t.Run("internal again", func(t *testing.T) {
		pod := readPod(t, id)
		setMode := func(mode v1alpha1.ExposureMode) {
			change(t, id, func(spec *v1alpha1.SubPoolSpec) { spec.Exposure.Mode = mode })
			awaitReady(t, id)
		}
		setMode(v1alpha1.ExposureInternal)
		eventually(t, healBudget, func(c *assert.CollectT) {
			assert.Equal(c, http.StatusNotFound, e.status(c, "/healthz", ""))
		})
		err := admin.Get(t.Context(), types.NamespacedName{Namespace: namespaceOf(id), Name: cpaName}, &gatewayv1.HTTPRoute{})
		assert.True(t, apierrors.IsNotFound(err), "the route is gone: %v", err)
		setMode(v1alpha1.ExposureGateway)
		awaitServed(t, e)
		assert.Equal(t, pod.UID, readPod(t, id).UID, "no restart")
	})
}

// CFG-10: whatever a client writes, it does not get to CPA's management and panel, nor to cpa-manager. The control case
// is the same path without the Gateway.
func TestCFG10NotPublished(t *testing.T) {
	t.Parallel()
	id := createReady(t, newPublishedPool("paths"))
	internal := createReady(t, newPool("hidden"))
	e := throughGateway(t, id)
	awaitServed(t, e)
	managementKey := key(t, id, "cpa_management_key")
	const management = "/v0/management/config.yaml"
	cpa := forward(t, "http", namespaceOf(id), cpaName, cpaPort)
	require.Equal(t, http.StatusOK, cpa.get(t, management, managementKey).status, "control case: past the Gateway")

	withKey := func(headers ...string) []string { return append(headers, "Authorization: Bearer "+managementKey) }
	var rows [][]string
	for _, ask := range []struct {
		what, path, host string
		headers          []string
		want             int
	}{
		{"health", "/healthz", e.host, nil, http.StatusOK},
		{"models, client key", "/v1/models", e.host, []string{"X-Api-Key: " + key(t, id, "cpa_client_key")}, http.StatusOK},
		{"root", "/", e.host, nil, http.StatusNotFound},
		{"panel", "/management.html", e.host, nil, http.StatusNotFound},
		{"management", management, e.host, withKey(), http.StatusNotFound},
		{"management, dots", "/v1/.." + management, e.host, withKey(), http.StatusNotFound},
		{"management, encoded slash", "/v1/..%2fv0/management/config.yaml", e.host, withKey(), http.StatusNotFound},
		{"management, encoded backslash", "/v1/..%5cv0/management/config.yaml", e.host, withKey(), http.StatusNotFound},
		{"management, encoded dots", "/v1/%2e%2e" + management, e.host, withKey(), http.StatusNotFound},
		// This comes to cpa, as a path below /v1 that it does not know.
		{"management, encoded twice", "/v1/%252e%252e" + management, e.host, withKey(), http.StatusUnauthorized},
		{"management, encoded letter", "/v1/../%760/management/config.yaml", e.host, withKey(), http.StatusNotFound},
		{"management, double slash", "/" + management, e.host, withKey(), http.StatusNotFound},
		{"management, double slash inside", "/healthz//../" + management, e.host, withKey(), http.StatusNotFound},
		{"management, capitals", "/V0/Management/config.yaml", e.host, withKey(), http.StatusNotFound},
		{"management, by header", "/", e.host, withKey("X-Original-URL: "+management, "X-Rewrite-URL: "+management), http.StatusNotFound},
		{"cpa-manager by host", "/health", "cpa-manager." + namespaceOf(id) + ".svc", nil, http.StatusNotFound},
		{"cpa-manager by port", "/usage-service/info", e.host + ":18317", nil, http.StatusNotFound},
		{"cpa-manager by name", "/health", "cpa-manager." + e.host, nil, http.StatusNotFound},
		{"cpa-manager by header", "/usage-service/info", e.host, []string{"X-Forwarded-Host: cpa-manager", "X-Forwarded-Port: 18317"}, http.StatusNotFound},
		{"pool of mode Internal", "/healthz", internal + "." + harness.BaseDomain, nil, http.StatusNotFound},
		{"pool of mode Internal by header", "/v1/models", "nobody.example", []string{"X-Forwarded-Host: " + internal + "." + harness.BaseDomain}, http.StatusNotFound},
	} {
		got := e.statusOf(t, ask.path, ask.host, ask.headers...)
		assert.Equal(t, ask.want, got, ask.what)
		rows = append(rows, []string{ask.what, strconv.Itoa(got)})
	}
	compareWithPage(t, "through the Gateway", []string{"asked for", "answer"}, rows)
}

// GW-05: while the namespace has lost the label that the listener asks for, its controller takes the route down. The label
// comes back, and the route is judged and served again.
func TestGW05LabelTakenOff(t *testing.T) {
	t.Parallel()
	id := createReady(t, newPublishedPool("label"))
	e := throughGateway(t, id)
	awaitServed(t, e)
	without := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+v1alpha1.LabelManaged+`":null}}}`))
	for range 3 {
		require.NoError(t, admin.Patch(t.Context(), read[corev1.Namespace](t, "", namespaceOf(id)), without))
		eventually(t, readyBudget, func(c *assert.CollectT) {
			assert.Equal(c, "true", read[corev1.Namespace](c, "", namespaceOf(id)).Labels[v1alpha1.LabelManaged])
			assert.Equal(c, http.StatusOK, e.status(c, "/healthz", ""))
			parents := routeOf(c, id).Status.Parents
			require.Len(c, parents, 1)
			assert.True(c, meta.IsStatusConditionTrue(parents[0].Conditions, string(gatewayv1.RouteConditionAccepted)))
		})
		awaitReady(t, id)
	}
}
