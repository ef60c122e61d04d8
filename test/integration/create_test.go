//go:build integration

package integration

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	netv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

func TestCreateMakesEveryObject(t *testing.T) {
	t.Parallel()
	pool := createReady(t, "create")
	for _, object := range poolObjects(t, pool) {
		get(t, object)
		assert.Equal(t, "true", object.GetLabels()[v1alpha1.LabelManaged], "%T", object)
		assert.Equal(t, pool.Name, object.GetLabels()[v1alpha1.LabelPool], "%T", object)
		assert.True(t, metav1.IsControlledBy(object, pool), "%T is owned by the SubPool", object)
	}

	namespace := poolNamespace(t, pool)
	assert.Equal(t, "restricted", namespace.Labels["pod-security.kubernetes.io/enforce"])
	assert.Contains(t, namespace.Annotations["subrelay.example.com/description"], "SubPool "+pool.Name)
	assert.Contains(t, namespace.Annotations["subrelay.example.com/description"], "destroys")

	for name, port := range map[string]int32{"cpa": 8317, "cpa-manager": 18317} {
		service := &corev1.Service{ObjectMeta: in(pool, name)}
		get(t, service)
		assert.Equal(t, corev1.ServiceTypeClusterIP, service.Spec.Type)
		require.Len(t, service.Spec.Ports, 1)
		assert.Equal(t, port, service.Spec.Ports[0].Port)
	}

	account := &corev1.ServiceAccount{ObjectMeta: in(pool, "runtime")}
	get(t, account)
	assert.Equal(t, ptr.To(false), account.AutomountServiceAccountToken)

	budget := &policyv1.PodDisruptionBudget{ObjectMeta: in(pool, "runtime")}
	get(t, budget)
	assert.Equal(t, 1, budget.Spec.MaxUnavailable.IntValue(), "the only Pod may be evicted")

	access := &rbacv1.RoleBinding{ObjectMeta: in(pool, "subpool-operator")}
	get(t, access)
	assert.Equal(t, "subpool-operator-pool", access.RoleRef.Name)

	claim := &corev1.PersistentVolumeClaim{ObjectMeta: in(pool, "data-runtime-0")}
	get(t, claim)
	assert.Equal(t, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, claim.Spec.AccessModes)
	assert.True(t, pool.Spec.Storage.Size.Equal(claim.Spec.Resources.Requests[corev1.ResourceStorage]))

	requireDefaultDeny(t, pool)
	requireScriptMounted(t, pool)
}

func requireDefaultDeny(t *testing.T, pool *v1alpha1.SubPool) {
	t.Helper()
	deny := &netv1.NetworkPolicy{ObjectMeta: in(pool, "default-deny")}
	get(t, deny)
	assert.Empty(t, deny.Spec.PodSelector.MatchLabels, "for every Pod")
	assert.ElementsMatch(t, []netv1.PolicyType{netv1.PolicyTypeIngress, netv1.PolicyTypeEgress}, deny.Spec.PolicyTypes)
	assert.Empty(t, deny.Spec.Ingress)
	assert.Empty(t, deny.Spec.Egress)

	mihomo := &netv1.NetworkPolicy{ObjectMeta: in(pool, "allow-mihomo")}
	get(t, mihomo)
	require.Len(t, mihomo.Spec.Egress, 1)
	require.Len(t, mihomo.Spec.Egress[0].To, 1)
	assert.NotNil(t, mihomo.Spec.Egress[0].To[0].NamespaceSelector)
	assert.NotNil(t, mihomo.Spec.Egress[0].To[0].PodSelector, "both selectors stand in one peer")
	require.Len(t, mihomo.Spec.Egress[0].Ports, 1)
	assert.Equal(t, harness.MihomoPodPort, mihomo.Spec.Egress[0].Ports[0].Port.IntValue(), "the Pods' port, not the Service's")
}

// The script's ConfigMap is the one that the Pod template mounts.
func requireScriptMounted(t *testing.T, pool *v1alpha1.SubPool) {
	t.Helper()
	workload := &appsv1.StatefulSet{ObjectMeta: in(pool, "runtime")}
	get(t, workload)
	assert.Equal(t, ptr.To[int32](1), workload.Spec.Replicas)
	var mounted []string
	for _, volume := range workload.Spec.Template.Spec.Volumes {
		if volume.ConfigMap != nil {
			mounted = append(mounted, volume.ConfigMap.Name)
		}
	}
	assert.Equal(t, []string{scriptOf(t, pool).Name}, mounted)
	assert.Equal(t, ptr.To(false), workload.Spec.Template.Spec.AutomountServiceAccountToken)
	assert.Equal(t, ptr.To(false), workload.Spec.Template.Spec.EnableServiceLinks)
}

// scriptOf returns the ConfigMap with the init script, whose name carries a hash.
func scriptOf(t *testing.T, pool *v1alpha1.SubPool) *corev1.ConfigMap {
	t.Helper()
	maps := &corev1.ConfigMapList{}
	require.NoError(t, cluster.Admin.List(t.Context(), maps, client.InNamespace(namespaceOf(pool.Name)),
		client.MatchingLabels{v1alpha1.LabelPool: pool.Name}))
	require.Len(t, maps.Items, 1)
	require.True(t, strings.HasPrefix(maps.Items[0].Name, "initialize-"))
	require.Contains(t, maps.Items[0].Data, "initialize.sh")
	return &maps.Items[0]
}

// poolObjects are all objects that the operator itself keeps for a pool.
func poolObjects(t *testing.T, pool *v1alpha1.SubPool) []client.Object {
	t.Helper()
	return harness.PoolObjects(pool.Name, scriptOf(t, pool).Name)
}

func TestCreateOrder(t *testing.T) {
	t.Parallel()
	from := markAudit(t)
	pool := createReady(t, "order")

	var order []string
	for _, c := range operatorWrites(t, from, pool.Name) {
		if kind := c.ObjectRef.Resource; c.OK() && kind != "subpools" && !slices.Contains(order, kind) {
			order = append(order, kind)
		}
	}
	require.ElementsMatch(t, []string{
		"namespaces", "rolebindings", "resourcequotas", "networkpolicies", "secrets", "serviceaccounts", "configmaps",
		"services", "poddisruptionbudgets", "statefulsets",
	}, order)
	assert.Equal(t, "namespaces", order[0])
	assert.Equal(t, "statefulsets", order[len(order)-1])
	for _, wall := range []string{"rolebindings", "resourcequotas", "networkpolicies"} {
		assert.Less(t, slices.Index(order, wall), slices.Index(order, "secrets"), "%s come before the Secret", wall)
	}
}

// Gateway listeners and Pod Security admission go by the namespace's labels, so it must not exist without them for a
// moment.
func TestCreateLabelsNamespaceAtOnce(t *testing.T) {
	t.Parallel()
	pool := newPool("labels")
	ctx, cancel := context.WithTimeout(t.Context(), readyBudget)
	defer cancel()
	events, err := cluster.Admin.Watch(ctx, &corev1.NamespaceList{}, client.MatchingFieldsSelector{
		Selector: fields.OneTermEqualSelector(metav1.ObjectNameField, namespaceOf(pool.Name)),
	})
	require.NoError(t, err)
	defer events.Stop()
	create(t, pool)

	event, open := <-events.ResultChan()
	require.True(t, open, "the namespace was not made within %s", readyBudget)
	require.Equal(t, watch.Added, event.Type)
	made, ok := event.Object.(*corev1.Namespace)
	require.True(t, ok)
	for label, value := range map[string]string{
		v1alpha1.LabelManaged:                "true",
		v1alpha1.LabelPool:                   pool.Name,
		"pod-security.kubernetes.io/enforce": "restricted",
	} {
		assert.Equal(t, value, made.Labels[label], label)
	}
	assert.True(t, metav1.IsControlledBy(made, pool))
}

// RES-01, CFG-09: the Pod exists although quota and Pod Security are enforced, and they are.
func TestRES01PodPassesAdmission(t *testing.T) {
	t.Parallel()
	pool := createReady(t, "admission")
	get(t, &corev1.Pod{ObjectMeta: in(pool, "runtime-0")})

	quota := &corev1.ResourceQuota{ObjectMeta: in(pool, "pool")}
	eventually(t, readyBudget, func(c *assert.CollectT) {
		get(c, quota)
		for _, name := range []corev1.ResourceName{
			corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory,
			corev1.ResourceRequestsStorage,
		} {
			used := quota.Status.Used[name]
			assert.Positive(c, used.Sign(), "the quota counts %s", name)
		}
	})

	var refusal error
	privileged := &corev1.Pod{
		ObjectMeta: in(pool, "privileged"),
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "shell", Image: cpaImage, SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)},
		}}},
	}
	refusal = cluster.Admin.Create(t.Context(), privileged, client.DryRunAll)
	require.True(t, apierrors.IsForbidden(refusal), "%v", refusal)
	require.ErrorContains(t, refusal, "PodSecurity")

	unbounded := &corev1.Pod{
		ObjectMeta: in(pool, "unbounded"),
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "shell", Image: cpaImage, SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: ptr.To(false),
					Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot:   ptr.To(true),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
		},
	}
	refusal = cluster.Admin.Create(t.Context(), unbounded, client.DryRunAll)
	require.True(t, apierrors.IsForbidden(refusal), "%v", refusal)
	require.ErrorContains(t, refusal, "failed quota: pool")
}

// CFG-02: keys are random, long enough, and written once.
func TestCFG02Credentials(t *testing.T) {
	t.Parallel()
	from := markAudit(t)
	hexKey := regexp.MustCompile(`^[0-9a-f]{64}$`)
	seen := map[string]bool{}
	for range 2 {
		pool := createReady(t, "keys")
		secret := credentials(t, pool)
		names := slices.Sorted(maps.Keys(secret.Data))
		require.Equal(t, []string{"cpa_client_key", "cpa_management_key", "cpamp_admin_key"}, names)
		for _, key := range names {
			value := string(secret.Data[key])
			require.True(t, hexKey.MatchString(value), "%s has 64 hexadecimal characters", key)
			require.False(t, seen[value], "%s of pool %s is a value that was there before", key, pool.Name)
			seen[value] = true
		}
		writes := operatorCalls(t, from, func(c harness.Call) bool {
			return c.Write() && c.OK() && c.About(pool.Name) && c.ObjectRef.Resource == "secrets"
		})
		require.Len(t, writes, 1)
		assert.Equal(t, "create", writes[0].Verb)
	}
}
