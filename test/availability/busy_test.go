//go:build integration || chaos

package availability

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/test/harness"
)

// CTL-05: pools whose writes hang until the operator gives up, or fail at once, keep nobody waiting for long: not when
// they come first, and hardly at all later on. There are more of them than workers.
func TestCTL05SickPools(t *testing.T) {
	const (
		sickPools = 20
		// firstBudget: 8 passes at a time step aside, each after 5 s, until those of all sick pools have.
		firstBudget = 30 * time.Second
		laterBudget = 15 * time.Second
	)
	for name, ail := range map[string]func(http.ResponseWriter, *http.Request){
		"writes hang": func(_ http.ResponseWriter, request *http.Request) { <-request.Context().Done() },
		"writes fail": func(answer http.ResponseWriter, _ *http.Request) {
			http.Error(answer, "out of order", http.StatusInternalServerError)
		},
	} {
		t.Run(name, func(t *testing.T) {
			ailing := behind(t, func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
					if pool, err := harness.WrittenPool(request); err == nil && strings.HasPrefix(pool, "sick-") {
						ail(answer, request)
						return
					}
					next.ServeHTTP(answer, request)
				})
			})
			start(t, ailing)
			create(t, newPools("sick", sickPools)...)
			requireMade(t, firstBudget)
			requireMade(t, laterBudget)
		})
	}
}

// requireMade checks that new pools get all their objects in time. That their Pods run then is up to Kubernetes.
func requireMade(t *testing.T, within time.Duration) {
	t.Helper()
	began, pools := time.Now(), newPools("healthy", 5)
	create(t, pools...)
	for _, pool := range pools {
		harness.Eventually(t, within, func(c *assert.CollectT) { cluster.Get(c, workloadOf(pool)) })
	}
	t.Logf("%d new pools were made within %s", len(pools), time.Since(began).Round(time.Millisecond))
}

// CTL-05: a pool that is made while a new process looks at every pool for the first time is among the first, although each
// look takes long.
func TestCTL05NewPoolBeforeResync(t *testing.T) {
	const (
		pause = 300 * time.Millisecond
		// mostBefore are the passes that may be under way, or wait for their turn, when it is made, and a few that end meanwhile.
		mostBefore = 40
	)
	old := createFleet(t)
	looks := &looks{at: map[string]bool{}}
	slow := behind(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
			if strings.HasSuffix(request.URL.Path, "/secrets") && request.Method == http.MethodGet {
				looks.add(request.URL.Path)
				select {
				case <-time.After(pause):
				case <-request.Context().Done():
				}
			}
			next.ServeHTTP(answer, request)
		})
	})
	start(t, slow)
	harness.Eventually(t, budget, func(c *assert.CollectT) { assert.NotZero(c, looks.count()) })
	fresh := newPools("fresh", 1)[0]
	create(t, fresh)
	harness.Eventually(t, budget, func(c *assert.CollectT) { cluster.Get(c, namespaceOf(fresh)) })
	before := looks.count()
	t.Logf("%d of %d other pools were looked at before", before, len(old))
	assert.LessOrEqual(t, before, mostBefore)
	harness.Eventually(t, budget, func(c *assert.CollectT) { assert.Greater(c, looks.count(), len(old)) })
}

// looks are the pools that were looked at.
type looks struct {
	mu sync.Mutex
	at map[string]bool
}

func (l *looks) add(pool string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at[pool] = true
}

func (l *looks) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.at)
}

// The optional flow schemas take the operator's calls out of the crowd, and the Lease's out of the operator's.
func TestFlowSchemas(t *testing.T) {
	_, err := lab.Kubectl(t.Context(), "apply", "--server-side", "-k", "../../config/flowcontrol")
	require.NoError(t, err)
	token, err := cluster.RequestToken(t.Context(), harness.SystemNamespace, harness.OperatorAccount)
	require.NoError(t, err)
	operator := rest.AnonymousClientConfig(cluster.Config)
	operator.BearerToken = token
	httpClient, err := rest.HTTPClientFor(operator)
	require.NoError(t, err)
	for path, want := range map[string]string{
		"/apis/subrelay.example.com/v1alpha1/subpools":                                   "subpool-operator",
		"/api/v1/namespaces/subpool-x/pods":                                              "subpool-operator",
		"/apis/coordination.k8s.io/v1/namespaces/subpool-system/leases/subpool-operator": "subpool-operator-lease",
	} {
		schema := &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: want}}
		require.NoError(t, cluster.Admin.Get(t.Context(), client.ObjectKeyFromObject(schema), schema))
		// The API server takes new schemas up after a moment.
		harness.Eventually(t, budget, func(c *assert.CollectT) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, cluster.Config.Host+path, http.NoBody)
			require.NoError(c, err)
			response, err := httpClient.Do(request)
			require.NoError(c, err)
			require.NoError(c, response.Body.Close())
			assert.Equal(c, string(schema.UID), response.Header.Get("X-Kubernetes-Pf-Flowschema-Uid"), path)
		})
	}
}
