//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Addresses of manifests/outside.yaml, on the node and outside of the Pods' network.
const (
	providerAddress  = "203.0.113.10"
	metadataAddress  = "169.254.169.254"
	nameCacheAddress = "169.254.20.10"
)

// outcome is what became of an attempt.
type outcome string

const (
	reached outcome = "reached"
	refused outcome = "refused"
	// untried is for a way that makes no sense for a target.
	untried outcome = "-"
)

// prober is a container that has the program of test/images/prober.
type prober struct{ namespace, pod, container string }

// free is a Pod that no policy holds back.
var free = prober{"outside", "client", "prober"}

// inPool is the prober in a pool's own Pod.
func inPool(poolID string) prober { return prober{namespaceOf(poolID), podName, cpaName} }

// try tries targets, each a way and an address like tcp=10.0.0.1:80, side by side. It goes through the proxy if there is one.
func (p prober) try(t *testing.T, proxy string, targets ...string) map[string]outcome {
	t.Helper()
	args := []string{"exec", p.pod, "--namespace=" + p.namespace, "--container=" + p.container, "--", "prober", "try", "-proxy=" + proxy}
	out, err := lab.Kubectl(t.Context(), append(args, targets...)...)
	require.NoError(t, err)
	found := readProbes(t, out)
	require.Len(t, found, len(targets), "targets are tried once")
	outcomes := map[string]outcome{}
	for target, probe := range found {
		outcomes[target] = probe.outcome()
		if outcomes[target] == refused {
			t.Logf("%s/%s: %s: %s", p.namespace, p.pod, target, probe.Detail)
		}
	}
	return outcomes
}

// probe is what the prober says of one target.
type probe struct {
	Target            string
	Attempts, Reached int
	Detail            string
}

func (p probe) outcome() outcome {
	if p.Reached > 0 {
		return reached
	}
	return refused
}

func readProbes(t require.TestingT, output string) map[string]probe {
	probes := map[string]probe{}
	for decoder := json.NewDecoder(strings.NewReader(output)); decoder.More(); {
		var p probe
		require.NoError(t, decoder.Decode(&p), output)
		probes[p.Target] = p
	}
	return probes
}

// inDataPlane puts a prober into a Pod that the Gateway's controller has made. It stays there: Kubernetes takes no
// container out of a Pod.
func inDataPlane(t *testing.T) prober {
	t.Helper()
	pod := dataPlanePod(t)
	name := "prober-" + rand.String(5)
	_, err := lab.Kubectl(t.Context(), "debug", pod.Name, "--namespace="+pod.Namespace, "--container="+name,
		"--image="+cpaImage, "--image-pull-policy=IfNotPresent", "--profile=general", "--", "sleep", "infinity")
	require.NoError(t, err)
	eventually(t, readyBudget, func(c *assert.CollectT) {
		statuses := read[corev1.Pod](c, pod.Namespace, pod.Name).Status.EphemeralContainerStatuses
		require.NotEmpty(c, statuses)
		newest := statuses[len(statuses)-1]
		require.Equal(c, name, newest.Name)
		assert.NotNil(c, newest.State.Running, "%+v", newest.State.Waiting)
	})
	return prober{pod.Namespace, pod.Name, name}
}

const dataPlaneNamespace = "envoy-gateway-system"

var dataPlaneLabels = client.MatchingLabels{
	"gateway.envoyproxy.io/owning-gateway-namespace": sharedNamespace,
	"gateway.envoyproxy.io/owning-gateway-name":      "subpool-edge",
}

// dataPlanePod is a Pod that carries the shared Gateway's traffic.
func dataPlanePod(t *testing.T) *corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	require.NoError(t, admin.List(t.Context(), list, client.InNamespace(dataPlaneNamespace), dataPlaneLabels))
	require.NotEmpty(t, list.Items)
	return &list.Items[0]
}

// dataPlaneService is the way to the shared Gateway.
func dataPlaneService(t *testing.T) *corev1.Service {
	t.Helper()
	list := &corev1.ServiceList{}
	require.NoError(t, admin.List(t.Context(), list, client.InNamespace(dataPlaneNamespace), dataPlaneLabels))
	require.Len(t, list.Items, 1)
	return &list.Items[0]
}

// logOf is all that a container has printed since it started.
func logOf(t require.TestingT, namespace, pod, container string) string {
	stream, err := pods.Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{Container: container}).Stream(context.Background())
	require.NoError(t, err)
	defer func() { _ = stream.Close() }()
	content, err := io.ReadAll(stream)
	require.NoError(t, err)
	return string(content)
}

// mihomoLog is what all replicas of the shared Mihomo say of connections that the Pod with this address asked for.
func mihomoLog(t require.TestingT, source string) []string {
	list := &corev1.PodList{}
	require.NoError(t, admin.List(context.Background(), list, client.InNamespace(sharedNamespace),
		client.MatchingLabels{"app.kubernetes.io/name": "mihomo-gateway"}))
	var lines []string
	for i := range list.Items {
		for line := range strings.Lines(logOf(t, sharedNamespace, list.Items[i].Name, "mihomo")) {
			if strings.Contains(line, "msg=access source="+source+":") {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
	}
	return lines
}

// providerCalls is who has asked the provider outside for completions, as source addresses.
func providerCalls(t require.TestingT) []string {
	var sources []string
	for decoder := json.NewDecoder(strings.NewReader(logOf(t, "outside", "provider", "prober"))); decoder.More(); {
		var line struct{ Source, Method string }
		require.NoError(t, decoder.Decode(&line))
		if address, _, found := strings.Cut(line.Source, ":"); found && line.Method == http.MethodPost {
			sources = append(sources, address)
		}
	}
	return sources
}

func serviceIP(t *testing.T, namespace, name string) string {
	t.Helper()
	return read[corev1.Service](t, namespace, name).Spec.ClusterIP
}

// inNamespace is the metadata of an object.
func inNamespace(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

const trafficPage = "../../docs/traffic.md"

// updatePage rewrites the page: UPDATE_DOCS=1 make test-e2e
var updatePage = os.Getenv("UPDATE_DOCS") != ""

var pageLock sync.Mutex

// compareWithPage checks that docs/traffic.md shows what was seen, between its markers of this name.
func compareWithPage(t *testing.T, name string, heading []string, rows [][]string) {
	t.Helper()
	table := markdown(heading, rows)
	t.Logf("%s:\n%s", name, table)
	pageLock.Lock()
	defer pageLock.Unlock()
	path, err := filepath.Abs(trafficPage)
	require.NoError(t, err)
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	between := regexp.MustCompile(`(?s)(<!-- seen: ` + name + ` -->\n).*?(<!-- end -->)`)
	shown := between.FindString(string(page))
	require.NotEmpty(t, shown, "%s has no place for %q", trafficPage, name)
	want := between.ReplaceAllString(shown, "${1}"+table+"${2}")
	if updatePage {
		require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(page), shown, want, 1)), 0o600))
		return
	}
	require.Equal(t, want, shown, "run UPDATE_DOCS=1 make test-e2e, then read the difference")
}

func markdown(heading []string, rows [][]string) string {
	var table strings.Builder
	write := func(cells []string) { table.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	write(heading)
	table.WriteString(strings.Repeat("|---", len(heading)) + "|\n")
	for _, row := range rows {
		write(row)
	}
	return table.String()
}
