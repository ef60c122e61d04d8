//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// providerAddress is what manifests/outside.yaml has outside the cluster, as far as pools can tell. It is from a range
// for documentation (RFC 5737).
const providerAddress = "203.0.113.10"

// outcome is what became of a request.
type outcome string

const (
	answered     outcome = "answered"
	notConnected outcome = "not connected"
	// refusedByProxy is the answer of a Mihomo that does not let the request through.
	refusedByProxy outcome = "refused by the proxy"
)

// A pool reaches nothing directly, and through the shared Mihomo only what is outside the cluster. Nobody reaches a pool.
func TestIsolation(t *testing.T) {
	t.Parallel()
	id := createReady(t, newPool("inside"))
	other := createReady(t, newPool("other"))
	inside := requester{namespaceOf(id), podName}
	// The same program in a namespace without policies tells that a target could be reached at all.
	free := requester{"outside", "client"}

	provider := "http://" + providerAddress + "/index.html"
	providerPod := fmt.Sprintf("http://%s:8080/index.html", read[corev1.Pod](t, "outside", "provider").Status.PodIP)
	apiServer := fmt.Sprintf("http://%s:443/", serviceIP(t, metav1.NamespaceDefault, "kubernetes"))
	kubelet := fmt.Sprintf("http://%s:10250/", readPod(t, id).Status.HostIP)
	otherService := fmt.Sprintf("http://%s:%d/healthz", serviceIP(t, namespaceOf(other), cpaName), cpaPort)
	otherCPA := fmt.Sprintf("http://%s:%d/healthz", readPod(t, other).Status.PodIP, cpaPort)
	otherManager := fmt.Sprintf("http://%s:%d/health", readPod(t, other).Status.PodIP, managerPort)
	mihomo := fmt.Sprintf("http://%s:7890", serviceIP(t, sharedNamespace, "mihomo-gateway"))

	for _, test := range []struct {
		name, url             string
		free, direct, proxied outcome
	}{
		{"a provider outside", provider, answered, notConnected, answered},
		{"a Pod of somebody else", providerPod, answered, notConnected, refusedByProxy},
		{"the API server", apiServer, answered, notConnected, refusedByProxy},
		{"the kubelet", kubelet, answered, notConnected, refusedByProxy},
		{"another pool's Service", otherService, notConnected, notConnected, refusedByProxy},
		{"another pool's cpa", otherCPA, notConnected, notConnected, refusedByProxy},
		{"another pool's cpa-manager", otherManager, notConnected, notConnected, refusedByProxy},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.free, free.request(t, test.url, ""), "from a namespace without policies")
			assert.Equal(t, test.direct, inside.request(t, test.url, ""), "directly")
			assert.Equal(t, test.proxied, inside.request(t, test.url, mihomo), "through Mihomo")
		})
	}
	t.Run("control case", func(t *testing.T) {
		itself := requester{namespaceOf(other), podName}
		assert.Equal(t, answered, itself.request(t, otherCPA, ""), "the other pool's cpa, from its own Pod")
		assert.Equal(t, answered, itself.request(t, otherManager, ""), "the other pool's cpa-manager, from its own Pod")
	})
}

func serviceIP(t *testing.T, namespace, name string) string {
	t.Helper()
	return read[corev1.Service](t, namespace, name).Spec.ClusterIP
}

// requester is a Pod that makes requests.
type requester struct{ namespace, pod string }

// request asks for a URL, which has to name an address: the static busybox cannot look up names.
func (r requester) request(t *testing.T, url, proxy string) outcome {
	t.Helper()
	script := "http_proxy=" + proxy + " timeout 5 wget -q -O /dev/null " + url + " 2>&1 && echo fetched; true"
	out, err := lab.Kubectl(t.Context(), "exec", r.pod, "--namespace="+r.namespace, "--", "sh", "-c", script)
	require.NoError(t, err)
	switch {
	case proxy != "" && strings.Contains(out, "502 Bad Gateway"):
		return refusedByProxy
	case strings.Contains(out, "fetched") || strings.Contains(out, "server returned error"):
		return answered // an API server does not like plain HTTP, but it is there
	case strings.Contains(out, "can't connect") || strings.Contains(out, "Terminated") || out == "":
		return notConnected
	}
	require.Fail(t, "wget says something unexpected", out)
	return ""
}
