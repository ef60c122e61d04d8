//go:build integration

package integration

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// RES-03: refusals that stand only in the StatefulSet's Events reach the status with the server's words, and leave it when
// the cause is gone. All of them come from people: the operator itself makes nothing that refuses a pool's Pod.
func TestRES03RefusedPods(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		refuse func(t *testing.T, pool *v1alpha1.SubPool) (allow func())
		reason string
		says   string
	}{
		"quota":       {foreignQuota, v1alpha1.ReasonQuotaExceeded, "exceeded quota: foreign"},
		"limit range": {foreignLimits, v1alpha1.ReasonPodRefused, "maximum cpu usage per Container is 50m"},
		"policy": {func(t *testing.T, pool *v1alpha1.SubPool) func() {
			t.Helper()
			return policyAgainst(t, pool, "pods", &corev1.Pod{ObjectMeta: in(pool, "runtime-0")})
		}, v1alpha1.ReasonPodRefused, "no pods here"},
		"Pod Security":   {templateWith("hostPID", true), v1alpha1.ReasonPodSecurityViolation, "hostPID=true"},
		"priority class": {templateWith("priorityClassName", "urgent"), v1alpha1.ReasonPodRefused, "no PriorityClass with name urgent"},
		"runtime class":  {templateWith("runtimeClassName", "sandbox"), v1alpha1.ReasonPodRefused, `RuntimeClass "sandbox" not found`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := createReady(t, "refused")
			allow := test.refuse(t, pool)
			pod := &corev1.Pod{ObjectMeta: in(pool, "runtime-0")}
			require.NoError(t, client.IgnoreNotFound(cluster.Admin.Delete(t.Context(), pod)))
			awaitNotReady(t, pool, test.reason)
			assert.Contains(t, message(t, pool, v1alpha1.ConditionReady), test.says)

			allow()
			awaitReady(t, pool)
		})
	}
}

// What the API server refuses of the operator's own objects is in the status as well.
func TestRefusedObject(t *testing.T) {
	t.Parallel()
	pool := createReady(t, "refused")
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: in(pool, "runtime")}
	allow := policyAgainst(t, pool, "poddisruptionbudgets", budget)
	remove(t, budget)
	awaitNotReady(t, pool, v1alpha1.ReasonApplyFailed)
	for _, word := range []string{"PodDisruptionBudget " + budget.Namespace + "/runtime", "no poddisruptionbudgets here"} {
		assert.Contains(t, message(t, pool, v1alpha1.ConditionReady), word)
	}
	allow()
	awaitReady(t, pool)
}

func foreignQuota(t *testing.T, pool *v1alpha1.SubPool) (allow func()) {
	t.Helper()
	quota := &corev1.ResourceQuota{
		ObjectMeta: in(pool, "foreign"),
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
	}
	create(t, quota)
	awaitRefusal(t, &corev1.Pod{ObjectMeta: in(pool, "runtime-0")}, "exceeded quota")
	return func() { remove(t, quota) }
}

func foreignLimits(t *testing.T, pool *v1alpha1.SubPool) (allow func()) {
	t.Helper()
	limits := &corev1.LimitRange{
		ObjectMeta: in(pool, "foreign"),
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer,
			Max:  corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m")},
		}}},
	}
	create(t, limits)
	awaitRefusal(t, &corev1.Pod{ObjectMeta: in(pool, "runtime-0")}, "maximum cpu usage")
	return func() { remove(t, limits) }
}

// templateWith sets a field of the Pod template of which the operator says nothing, so that it leaves it alone.
func templateWith(field string, value any) func(*testing.T, *v1alpha1.SubPool) (allow func()) {
	return func(t *testing.T, pool *v1alpha1.SubPool) (allow func()) {
		t.Helper()
		set := func(value any) {
			spec := map[string]any{field: value}
			patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": spec}}})
			require.NoError(t, err)
			workload := &appsv1.StatefulSet{ObjectMeta: in(pool, "runtime")}
			require.NoError(t, cluster.Admin.Patch(t.Context(), workload, client.RawPatch(types.MergePatchType, patch)))
		}
		set(value)
		return func() { set(nil) }
	}
}

// policyAgainst refuses all objects like the given one in the pool's namespace, as an admission webhook would.
func policyAgainst(t *testing.T, pool *v1alpha1.SubPool, kind string, like client.Object) (allow func()) {
	t.Helper()
	name, words := kind+"-"+pool.Name, "no "+kind+" here"
	everything := []string{"*"}
	create(t, &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
					Rule:       admissionv1.Rule{APIGroups: everything, APIVersions: everything, Resources: []string{kind}},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: "false", Message: words}},
		},
	})
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        name,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{v1alpha1.LabelPool: pool.Name},
			}},
		},
	}
	create(t, binding)
	awaitRefusal(t, like, words)
	return func() { remove(t, binding) }
}

// awaitRefusal waits until the API server would refuse a second object like the given one, which exists: a rule is in force
// a moment after it was made.
func awaitRefusal(t *testing.T, like client.Object, words string) {
	t.Helper()
	get(t, like)
	second := like.DeepCopyObject().(client.Object)
	second.SetName("second")
	second.SetUID("")
	second.SetResourceVersion("")
	eventually(t, readyBudget, func(c *assert.CollectT) {
		err := cluster.Admin.Create(background, second.DeepCopyObject().(client.Object), client.DryRunAll)
		require.ErrorContains(c, err, words)
	})
}
