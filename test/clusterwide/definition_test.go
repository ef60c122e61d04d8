//go:build integration

package clusterwide

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

func definition() *unstructured.Unstructured {
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{
		Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
	})
	crd.SetName(harness.SubPoolCRD)
	return crd
}

// deleteDefinition has the API server delete the definition, and every SubPool before that. It does not wait for the end.
func deleteDefinition(t *testing.T) {
	t.Helper()
	remove(t, definition())
}

func awaitNoDefinition(t *testing.T) {
	t.Helper()
	awaitGone(t, budget, definition())
}

// A SubPool that was stored before the API had its rules is judged by the operator, and can be mended.
func TestPoolStoredBeforeTheRules(t *testing.T) {
	crd := definition()
	cluster.Get(t, crd)
	rules := crd.DeepCopy()
	removeRules(crd.Object)
	require.NoError(t, cluster.Admin.Update(t.Context(), crd))
	t.Cleanup(func() { putRules(t, rules) })

	pool := newPool("early")
	pool.Spec.CPA.Resources.Requests.CPU = resource.MustParse("3")
	harness.Eventually(t, budget, func(c *assert.CollectT) {
		require.NoError(c, cluster.Admin.Create(t.Context(), pool.DeepCopy()))
	})
	t.Cleanup(func() { assert.NoError(t, client.IgnoreNotFound(cluster.Admin.Delete(background, pool))) })
	putRules(t, rules)
	harness.Eventually(t, budget, func(c *assert.CollectT) {
		late := pool.DeepCopy()
		late.Name = "late"
		require.Error(c, cluster.Admin.Create(t.Context(), late, client.DryRunAll), "the rules are back")
	})

	awaitNotReady(t, pool, v1alpha1.ReasonInvalidPoolResources)
	cluster.AwaitCondition(t, pool, budget, v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonInvalidPoolResources)
	assert.Contains(t, harness.Message(t, pool, v1alpha1.ConditionReady), "spec.cpa.resources")
	cluster.RequireGone(t, namespaceOf(pool))

	base := pool.DeepCopy()
	pool.Spec.CPA.Resources.Requests.CPU = resource.MustParse("100m")
	require.NoError(t, cluster.Admin.Patch(t.Context(), pool, client.MergeFrom(base)))
	awaitReady(t, pool, budget)
}

// removeRules takes the rules that compare fields out of a schema, as an earlier version may not have had them.
func removeRules(node any) {
	switch typed := node.(type) {
	case map[string]any:
		delete(typed, "x-kubernetes-validations")
		for _, child := range typed {
			removeRules(child)
		}
	case []any:
		for _, child := range typed {
			removeRules(child)
		}
	}
}

// putRules makes the definition what it was.
func putRules(t *testing.T, rules *unstructured.Unstructured) {
	t.Helper()
	crd := definition()
	cluster.Get(t, crd)
	crd.Object["spec"] = rules.DeepCopy().Object["spec"]
	require.NoError(t, cluster.Admin.Update(background, crd))
}
