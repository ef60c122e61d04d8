package metrics

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// cache is what the operator knows of pools.
type cache struct {
	client.Reader

	pools  []v1alpha1.SubPool
	broken error
}

func (c *cache) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*v1alpha1.SubPoolList).Items = c.pools
	return c.broken
}

func pool(name string, conditions ...metav1.Condition) v1alpha1.SubPool {
	return v1alpha1.SubPool{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1alpha1.SubPoolStatus{Conditions: conditions}}
}

// scrape returns the series as a monitoring system reads them.
func scrape(t *testing.T, collectors ...prometheus.Collector) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	for _, collector := range collectors {
		require.NoError(t, registry.Register(collector))
	}
	families, err := registry.Gather()
	require.NoError(t, err)
	var text bytes.Buffer
	for _, family := range families {
		_, err := expfmt.MetricFamilyToText(&text, family)
		require.NoError(t, err)
	}
	return text.String()
}

func acting() <-chan struct{} {
	elected := make(chan struct{})
	close(elected)
	return elected
}

func TestPools(t *testing.T) {
	known := &cache{pools: []v1alpha1.SubPool{
		pool("fine",
			metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPoolReady},
			metav1.Condition{Type: v1alpha1.ConditionWorkloadReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonRestartPending}),
		pool("broken",
			metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonUnschedulable},
			metav1.Condition{Type: "Foreign", Status: metav1.ConditionTrue, Reason: "Foreign"}),
		pool("new"),
	}}
	pools := NewPools(known, acting())
	assert.Equal(t, `# HELP subrelay_pool_condition The conditions that pools have, each with its present status; always 1.
# TYPE subrelay_pool_condition gauge
subrelay_pool_condition{condition="Ready",pool="broken",status="False"} 1
subrelay_pool_condition{condition="Ready",pool="fine",status="True"} 1
subrelay_pool_condition{condition="WorkloadReady",pool="fine",status="True"} 1
# HELP subrelay_pools_awaiting_restart Pools whose Pod is to be replaced, but not before others are back.
# TYPE subrelay_pools_awaiting_restart gauge
subrelay_pools_awaiting_restart 1
`, scrape(t, pools))

	known.pools = nil
	text := scrape(t, pools)
	assert.NotContains(t, text, "subrelay_pool_condition", "series go with their pools")
	assert.Contains(t, text, "subrelay_pools_awaiting_restart 0")
}

// Two replicas that both count every pool would double each sum.
func TestReplicasThatWaitTellNothing(t *testing.T) {
	known := &cache{pools: []v1alpha1.SubPool{pool("fine", metav1.Condition{Type: v1alpha1.ConditionReady})}}
	assert.Empty(t, scrape(t, NewPools(known, make(chan struct{}))))
}

func TestUnreadableCacheFailsTheScrape(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(NewPools(&cache{broken: errors.New("no cache")}, acting())))
	_, err := registry.Gather()
	require.ErrorContains(t, err, "no cache")
}

func TestOutcomes(t *testing.T) {
	outcomes := NewOutcomes()
	outcomes.Add(Conflict)
	outcomes.Add(v1alpha1.ReasonPoolReady)
	outcomes.Add(v1alpha1.ReasonPoolReady)
	text := scrape(t, outcomes, NewBuildInfo("v1.2.3"))
	assert.Contains(t, text, `subrelay_reconcile_outcomes_total{reason="Conflict"} 1`)
	assert.Contains(t, text, `subrelay_reconcile_outcomes_total{reason="PoolReady"} 2`)
	assert.Regexp(t, `subrelay_build_info\{go_version="go[0-9.]+",version="v1.2.3"\} 1`, text)
	var none *Outcomes
	none.Add(Conflict) // a reconciler without metrics counts nothing
}
