//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// environment is that of a container's application.
func environment(t *testing.T, poolID, container string) map[string]string {
	t.Helper()
	variables := map[string]string{}
	for entry := range strings.SplitSeq(inContainer(t, poolID, container, `tr '\0' '\n' </proc/1/environ`), "\n") {
		name, value, _ := strings.Cut(entry, "=")
		variables[name] = value
	}
	return variables
}

// NET-05: Services of the pool's namespace, however they are called, change nothing in the applications' environment, at
// the next start either.
func TestNET05ServiceVariables(t *testing.T) {
	t.Parallel()
	id := createReady(t, newPool("services"))
	containers := []string{cpaName, managerName}
	before := map[string]map[string]string{}
	for _, container := range containers {
		before[container] = environment(t, id, container)
		for name := range before[container] {
			if strings.HasSuffix(name, "_SERVICE_HOST") || strings.HasSuffix(name, "_PORT") {
				assert.True(t, strings.HasPrefix(name, "KUBERNETES_"), "%s in %s", name, container)
			}
		}
		assert.Contains(t, before[container], "KUBERNETES_SERVICE_HOST", "control case: Kubernetes adds what it cannot be kept from")
	}
	for _, name := range []string{"usage", "http", "cpa-manager-data-key"} {
		create(t, &corev1.Service{
			ObjectMeta: inNamespace(namespaceOf(id), name),
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		})
	}
	restart(t, id)
	for _, container := range containers {
		assert.Equal(t, before[container], environment(t, id, container), container)
	}
}

// NET-06: everything but loopback goes through the shared Mihomo, by variables of both spellings; and nothing that Mihomo
// is asked for is of the pool itself or of the cluster.
func TestNET06ProxyVariables(t *testing.T) {
	t.Parallel()
	id := createReady(t, newPool("variables"))
	useProvider(t, id)
	variables := environment(t, id, cpaName)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY"} {
		assert.Equal(t, "http://mihomo-gateway.subpool-gateway.svc:7890", variables[name], name)
	}
	for _, loopback := range []string{"127.0.0.1", "localhost", "::1"} {
		assert.Contains(t, strings.Split(variables["NO_PROXY"], ","), loopback)
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"} {
		assert.Equal(t, variables[name], variables[strings.ToLower(name)], name)
	}
	for name := range environment(t, id, managerName) {
		assert.NotContains(t, strings.ToLower(name), "_proxy", "cpa-manager calls nobody but cpa")
	}

	// The manager talks to cpa all the time, and probes to both.
	manager := forward(t, "http", namespaceOf(id), managerName, managerPort)
	require.Equal(t, http.StatusOK, manager.get(t, "/v0/management/config.yaml", key(t, id, "cpamp_admin_key")).status)
	lines := mihomoLog(t, readPod(t, id).Status.PodIP)
	require.NotEmpty(t, lines, "control case: cpa's call to its provider")
	for _, line := range lines {
		assert.Contains(t, line, fmt.Sprintf("host=%s:80", providerAddress), "nothing else")
	}
}
