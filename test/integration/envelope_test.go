//go:build integration

package integration

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

// RES-06: pools run on while a new operator configuration halves the envelope, and while the old one comes back. At no
// moment does a pool's quota allow less than its Pod template asks for, so every Pod can come back at any time. The
// configuration is given with a flag, as docs/operator-configuration.md says, so the operator is started anew.
func TestRES06EnvelopeOfRunningPools(t *testing.T) {
	const smaller = "subpool-operator-config-v2"
	document := operatorConfigMap(t).Data[configKey]
	halved := strings.Replace(document, `cpu: "4"`, `cpu: "2"`, 1)
	require.NotEqual(t, document, halved)
	create(t, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: smaller},
		Immutable:  ptr.To(true),
		Data:       map[string]string{configKey: halved},
	})
	small, large, follows := createReady(t, "small"), newPool("large"), newPool("follows")
	for _, pool := range []*v1alpha1.SubPool{large, follows} {
		askFor(&pool.Spec, "3")
		create(t, pool)
	}
	pools := []*v1alpha1.SubPool{small, large, follows}
	for _, pool := range pools {
		awaitReady(t, pool)
	}

	stopOperator(t)
	change(t, follows, func(spec *v1alpha1.SubPoolSpec) { askFor(spec, "1") })
	from := markAudit(t)
	runOperator(t, "--operator-config="+smaller)
	awaitConfiguration(t, smaller, pools...)
	awaitReady(t, small)
	awaitReady(t, follows)
	awaitNotReady(t, large, v1alpha1.ReasonResourcesExceedBaseline)
	assert.Contains(t, message(t, large, v1alpha1.ConditionReady), "requests.cpu 3100m > 2")
	assert.Equal(t, []string{"statefulsets", "resourcequotas"}, objectsWritten(t, from, follows), "the template first")
	assert.Equal(t, []string{"resourcequotas"}, objectsWritten(t, from, small))
	assert.Empty(t, objectsWritten(t, from, large), "it runs on as it was")
	assertComesBack(t, pools...)

	stopOperator(t)
	change(t, follows, func(spec *v1alpha1.SubPoolSpec) { askFor(spec, "3") })
	from = markAudit(t)
	runOperator(t)
	awaitConfiguration(t, operatorConfig, pools...)
	for _, pool := range pools {
		awaitReady(t, pool)
	}
	assert.Equal(t, []string{"resourcequotas", "statefulsets"}, objectsWritten(t, from, follows), "the quota first")
	assertComesBack(t, pools...)
}

// awaitConfiguration waits until the pools are judged by the operator configuration of this name.
func awaitConfiguration(t *testing.T, name string, pools ...*v1alpha1.SubPool) {
	t.Helper()
	for _, pool := range pools {
		eventually(t, readyBudget, func(c *assert.CollectT) {
			get(c, pool)
			assert.Equal(c, name, pool.Status.OperatorConfiguration.Name)
		})
	}
}

// askFor sets the CPU that CPA requests.
func askFor(spec *v1alpha1.SubPoolSpec, cpu string) {
	spec.CPA.Resources = harness.Resources(cpu, "128Mi", cpu, "256Mi")
}

// objectsWritten returns the kinds of the pool's objects that the operator wrote, in order, and checks that it was refused
// nothing.
func objectsWritten(t *testing.T, since harness.Mark, pool *v1alpha1.SubPool) []string {
	t.Helper()
	var kinds []string
	for _, c := range operatorWrites(t, since, pool.Name) {
		assert.True(t, c.OK(), "%s", c)
		if kind := c.ObjectRef.Resource; kind != "subpools" && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// assertComesBack deletes the pools' Pods, as a node drain does, and waits for new ones.
func assertComesBack(t *testing.T, pools ...*v1alpha1.SubPool) {
	t.Helper()
	for _, pool := range pools {
		pod := &corev1.Pod{ObjectMeta: in(pool, "runtime-0")}
		get(t, pod)
		before := pod.UID
		remove(t, pod)
		eventually(t, readyBudget, func(c *assert.CollectT) {
			get(c, pod)
			assert.NotEqual(c, before, pod.UID)
			assert.Equal(c, corev1.PodRunning, pod.Status.Phase)
		})
	}
}
