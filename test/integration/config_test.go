//go:build integration

package integration

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

const configKey = "config.yaml"

// A bad configuration stops nothing that runs, and neither the operator nor deletions. It is the same for all pools,
// so nothing runs in parallel.
func TestBadOperatorConfiguration(t *testing.T) {
	running, doomed := createReady(t, "running"), createReady(t, "doomed")
	shipped := operatorConfigMap(t)
	document := shipped.Data[configKey]
	t.Cleanup(func() { putConfig(t, shipped.Data) })
	from := markAudit(t)
	waiting := newPool("waiting")
	create(t, waiting)
	awaitReady(t, waiting)

	edited := func(old, fresh string) map[string]string {
		require.Contains(t, document, old)
		return map[string]string{configKey: strings.Replace(document, old, fresh, 1)}
	}
	for _, test := range []struct {
		name string
		data map[string]string // nil: no ConfigMap
		says []string
	}{
		{"missing", nil, []string{"does not exist", "--operator-config"}},
		{"without the document", map[string]string{"other.yaml": document}, []string{`"config.yaml"`}},
		{"unparsable", map[string]string{configKey: "baseDomain: ["}, []string{"cannot read config.yaml"}},
		{"unknown field", edited("baseDomain:", "baseDomian:"), []string{`"baseDomian"`}},
		{"wrong type", edited("port: 7890", "port: proxy"), []string{"mihomo.port"}},
		{"wrong kind", edited("kind: OperatorConfiguration", "kind: Configuration"), []string{"apiVersion, kind"}},
		{"inconsistent", edited(`cpu: "4"`, `cpu: "9"`), []string{"maxPerPool.requests.cpu", "maxPerPool.limits.cpu"}},
		{"no resolver", edited("namespace: kube-system", "namespace: ''"), []string{"dns[0].namespace"}},
		{"namespace that is not watched", edited("mihomo:\n  namespace: subpool-gateway", "mihomo:\n  namespace: elsewhere"),
			[]string{"mihomo.namespace", `"elsewhere"`, "--shared-namespace"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			putConfig(t, test.data)
			for _, pool := range []*v1alpha1.SubPool{running, doomed} {
				eventually(t, healBudget, func(c *assert.CollectT) {
					get(c, pool)
					requireInvalidConfig(c, pool, test.says)
				})
			}
			require.NoError(t, cluster.operator.Readyz(t.Context()))
		})
	}

	late := newPool("late")
	create(t, late)
	awaitNotReady(t, late, v1alpha1.ReasonOperatorConfigurationInvalid)
	requireGone(t, bareNamespace(late.Name))
	remove(t, doomed)
	awaitGone(t, goneBudget, doomed)
	requireGone(t, bareNamespace(doomed.Name))
	untouched := operatorCalls(t, from, func(c harness.Call) bool {
		return c.Write() && c.About(running.Name) && c.ObjectRef.Resource != "subpools"
	})
	assert.Empty(t, untouched)

	putConfig(t, shipped.Data)
	awaitReady(t, running)
	awaitReady(t, late)
}

func requireInvalidConfig(t require.TestingT, pool *v1alpha1.SubPool, says []string) {
	for _, condition := range pool.Status.Conditions {
		if condition.Type != v1alpha1.ConditionReady {
			continue
		}
		assert.Equal(t, v1alpha1.ReasonOperatorConfigurationInvalid, condition.Reason)
		assert.Equal(t, metav1.ConditionFalse, condition.Status)
		for _, word := range append(says, systemNamespace+"/"+operatorConfig) {
			assert.Contains(t, condition.Message, word)
		}
	}
}

func operatorConfigMap(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: operatorConfig}}
	get(t, config)
	return config
}

// putConfig replaces the operator configuration; it is immutable, so it is deleted and made anew.
func putConfig(t *testing.T, data map[string]string) {
	t.Helper()
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: operatorConfig}}
	require.NoError(t, client.IgnoreNotFound(cluster.Admin.Delete(background, config)))
	if data == nil {
		return
	}
	config = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: operatorConfig}}
	config.Immutable = ptr.To(true)
	config.Data = data
	require.NoError(t, cluster.Admin.Create(background, config))
}
