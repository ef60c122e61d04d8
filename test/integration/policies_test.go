//go:build integration

package integration

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	netv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// STA-01: a NetworkPolicy that somebody adds to a pool's namespace is told, with a warning, and left alone.
func TestSTA01ForeignPolicyIsTold(t *testing.T) {
	t.Parallel()
	pool := createReady(t, "foreign")
	awaitCondition(t, pool, readyBudget, v1alpha1.ConditionIsolationEnforced, metav1.ConditionTrue, v1alpha1.ReasonGatePassed)
	open := &netv1.NetworkPolicy{ObjectMeta: in(pool, "allow-all"), Spec: netv1.NetworkPolicySpec{
		Egress: []netv1.NetworkPolicyEgressRule{{}}, PolicyTypes: []netv1.PolicyType{netv1.PolicyTypeEgress},
	}}
	create(t, open)
	awaitCondition(t, pool, healBudget, v1alpha1.ConditionIsolationEnforced, metav1.ConditionFalse, v1alpha1.ReasonForeignNetworkPolicy)
	assert.Contains(t, message(t, pool, v1alpha1.ConditionIsolationEnforced), "NetworkPolicy allow-all")
	assert.True(t, meta.IsStatusConditionTrue(pool.Status.Conditions, v1alpha1.ConditionReady))
	eventually(t, readyBudget, func(c *assert.CollectT) {
		assert.Contains(c, warnings(c, pool), v1alpha1.ReasonForeignNetworkPolicy)
	})
	get(t, open)

	require.NoError(t, cluster.Admin.Delete(t.Context(), open))
	awaitCondition(t, pool, healBudget, v1alpha1.ConditionIsolationEnforced, metav1.ConditionTrue, v1alpha1.ReasonGatePassed)
}

// STA-01: a pool whose walls were open for a moment says so.
func TestSTA01OpenedWallsAreTold(t *testing.T) {
	t.Parallel()
	pool := createReady(t, "walls")
	wall := &netv1.NetworkPolicy{ObjectMeta: in(pool, "default-deny")}
	require.NoError(t, cluster.Admin.Delete(t.Context(), wall))
	eventually(t, readyBudget, func(c *assert.CollectT) {
		assert.Contains(c, warnings(c, pool), v1alpha1.EventPolicyRestored)
	})
	get(t, wall)
}
