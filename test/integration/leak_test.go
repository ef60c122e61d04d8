//go:build integration

package integration

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

// pieceLength is how much of a key counts as a leak. Dumps of request bodies show 16 bytes to a line.
const pieceLength = 16

// CFG-04: the keys of a pool are in its Secret and nowhere else, whatever happens to the pool.
func TestCFG04KeysDoNotLeak(t *testing.T) {
	t.Parallel()
	from := markAudit(t)
	pool := createReady(t, "leak")
	keys := keysOf(t, pool)

	change(t, pool, func(spec *v1alpha1.SubPoolSpec) {
		spec.CPAManager.Image = "registry.example.invalid/subrelay/cpa-manager:v2"
	})
	awaitReady(t, pool)
	change(t, pool, func(spec *v1alpha1.SubPoolSpec) {
		spec.CPA.Image = "registry.example.invalid/subrelay/cpa:" + brokenTag
	})
	awaitNotReady(t, pool, v1alpha1.ReasonWorkloadsNotReady)
	change(t, pool, func(spec *v1alpha1.SubPoolSpec) { spec.Suspend = true })
	awaitNotReady(t, pool, v1alpha1.ReasonSuspended)
	requireNoKey(t, keys, "an object of the API", allObjects(t))
	remove(t, pool)
	awaitGone(t, goneBudget, pool)

	requireNoKey(t, keys, "an object of the API after the deletion", allObjects(t))
	requireNoKey(t, keys, "the metrics", metricsOf(t, cluster.operator))
	log, err := cluster.operator.Log()
	require.NoError(t, err)
	require.Contains(t, string(log), pool.Name)
	requireNoKey(t, keys, "the operator's log", log)
	audit, err := cluster.Audit.Since(t.Context(), from)
	require.NoError(t, err)
	requireNoKey(t, keys, "the audit log", audit)
}

// keysOf returns every piece of the pool's keys, plain and in base64, with the name of the key.
func keysOf(t *testing.T, pool *v1alpha1.SubPool) map[string]string {
	t.Helper()
	pieces := map[string]string{}
	for name, value := range credentials(t, pool).Data {
		for _, text := range []string{string(value), base64.StdEncoding.EncodeToString(value)} {
			for at := range len(text) - pieceLength + 1 {
				pieces[text[at:at+pieceLength]] = name
			}
		}
	}
	return pieces
}

// requireNoKey says where a key is, but not which.
func requireNoKey(t *testing.T, pieces map[string]string, where string, content []byte) {
	t.Helper()
	require.Greater(t, len(content), pieceLength, where)
	for at := range len(content) - pieceLength + 1 {
		if name, found := pieces[string(content[at:at+pieceLength])]; found {
			assert.Fail(t, "a key leaks", "%s contains a piece of %s, at byte %d", where, name, at)
			return
		}
	}
}

// allObjects returns every object of the cluster but the Secrets of pools.
func allObjects(t *testing.T) []byte {
	t.Helper()
	directory, err := discovery.NewDiscoveryClientForConfig(cluster.Config)
	require.NoError(t, err)
	objects, err := dynamic.NewForConfig(cluster.Config)
	require.NoError(t, err)
	groups, err := directory.ServerPreferredResources()
	require.NoError(t, err)
	var all []byte
	for _, group := range groups {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		require.NoError(t, err)
		for _, resource := range group.APIResources {
			found, err := objects.Resource(version.WithResource(resource.Name)).List(t.Context(), metav1.ListOptions{})
			if apierrors.IsMethodNotSupported(err) || apierrors.IsNotFound(err) {
				continue // reviews and the like are not kept
			}
			require.NoError(t, err)
			for _, object := range found.Items {
				if resource.Kind == "Secret" && object.GetName() == "subpool-credentials" {
					continue
				}
				content, err := json.Marshal(object.Object)
				require.NoError(t, err)
				all = append(all, content...)
			}
		}
	}
	return all
}

// metricsOf reads the metrics of a process as a scraper with the shipped role does.
func metricsOf(t *testing.T, process *harness.Operator) []byte {
	t.Helper()
	scraper := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: "scraper-"}}
	create(t, scraper)
	create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: scraper.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "subpool-operator-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: scraper.Namespace, Name: scraper.Name}},
	})
	token, err := cluster.RequestToken(t.Context(), scraper.Namespace, scraper.Name)
	require.NoError(t, err)
	// The process makes its own certificate.
	scrape := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	var content []byte
	eventually(t, readyBudget, func(c *assert.CollectT) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("https://%s/metrics", process.Metrics), http.NoBody)
		require.NoError(c, err)
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := scrape.Do(request)
		require.NoError(c, err)
		defer func() { assert.NoError(c, response.Body.Close()) }()
		require.Equal(c, http.StatusOK, response.StatusCode)
		content, err = io.ReadAll(response.Body)
		require.NoError(c, err)
	})
	require.Contains(t, string(content), "controller_runtime_reconcile_total")
	return content
}
