//go:build integration

package integration

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	netv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// Who refuses what is the operator's.
const (
	byMarks     = "ValidatingAdmissionPolicy 'subpool-marks'"
	byWalls     = "ValidatingAdmissionPolicy 'subpool-walls'"
	byFinalizer = "ValidatingAdmissionPolicy 'subpool-finalizer'"
)

// as returns a client of a user who has the given rights in the whole cluster. Its writes are dry runs.
func as(t *testing.T, user string, rules ...rbacv1.PolicyRule) client.Client {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}, Rules: rules}
	create(t, role)
	create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	})
	config := rest.CopyConfig(cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	c, err := client.New(config, client.Options{Scheme: cluster.Admin.Scheme()})
	require.NoError(t, err)
	eventually(t, readyBudget, func(collect *assert.CollectT) {
		assert.NoError(collect, c.List(background, &v1alpha1.SubPoolList{}), "the API server knows the role")
	})
	return client.NewDryRunClient(c)
}

// everything that roles of namespaces and their objects can grant. It has every verb that requests have, and no other.
var everything = []rbacv1.PolicyRule{{
	APIGroups: []string{"", "apps", "networking.k8s.io", "policy", v1alpha1.SchemeGroupVersion.Group},
	Resources: []string{"*"},
	Verbs:     []string{"get", "list", "create", "update", "patch", "delete"},
}}

func labelled(object client.Object, labels map[string]string) client.Object {
	object.SetLabels(labels)
	return object
}

// Whoever may edit everything in a pool's namespace, and namespaces and SubPools themselves, can neither widen what bounds
// the pool nor pass something off as a pool's.
func TestWallsAndMarksAreTheOperators(t *testing.T) {
	t.Parallel()
	pool := createReady(t, "tenant")
	namespace := bareNamespace(pool.Name)
	marks := poolNamespace(t, pool).Labels
	elsewhere := &corev1.ConfigMap{ObjectMeta: named(metav1.NamespaceDefault, pool.Name)}
	create(t, elsewhere)
	workload := &appsv1.StatefulSet{ObjectMeta: in(pool, "runtime")}
	wall := &netv1.NetworkPolicy{ObjectMeta: in(pool, "default-deny")}
	quota := &corev1.ResourceQuota{ObjectMeta: in(pool, "pool")}
	service := &corev1.Service{ObjectMeta: in(pool, "cpa")}
	pod := &corev1.Pod{ObjectMeta: in(pool, "another"), Spec: podTemplate(nil).Spec}
	tryAll(t, as(t, "tenant of "+pool.Name, everything...), []attempt{
		{"add a NetworkPolicy", creating(&netv1.NetworkPolicy{ObjectMeta: in(pool, "allow-all")}), byWalls},
		{"change a NetworkPolicy", patching(wall, `{"spec":{"egress":[{}]}}`), byWalls},
		{"delete a NetworkPolicy", deleting(wall), byWalls},
		{"raise the quota", patching(quota, `{"spec":{"hard":{"limits.cpu":"99"}}}`), byWalls},
		{"delete the quota", deleting(quota), byWalls},
		{"change the StatefulSet", patching(workload, `{"spec":{"template":{"spec":{"initContainers":null}}}}`), byWalls},
		{"scale the StatefulSet", func(t *testing.T, c client.Client) error {
			t.Helper()
			patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":2}}`))
			return c.SubResource("scale").Patch(t.Context(), workload.DeepCopy(), patch)
		}, byWalls},
		{"delete the StatefulSet", deleting(workload), byWalls},
		{"add an Ingress", creating(ingress(in(pool, "another"))), byWalls},

		{"take off the label of the operator's objects", patching(service, `{"metadata":{"labels":{"subrelay.example.com/managed":null}}}`), byMarks},
		{"pass an object off as another pool's", patching(service, `{"metadata":{"labels":{"subrelay.example.com/pool":"a"}}}`), byMarks},
		{"take the owner off", patching(service, `{"metadata":{"ownerReferences":null}}`), byMarks},
		{"make an object look applied", patching(service, `{"metadata":{"annotations":{"subrelay.example.com/intent":"a"}}}`), byMarks},
		{"make an object of the operator's", creating(labelled(&corev1.ConfigMap{ObjectMeta: in(pool, "made")}, marks)), byMarks},
		{"pass a Pod off as the pool's", creating(labelled(pod.DeepCopy(), marks)), byMarks},
		{"fill the operator's cache from elsewhere", patching(elsewhere, `{"metadata":{"labels":{"subrelay.example.com/managed":"true"}}}`), byMarks},
		{"make a namespace of a pool", creating(labelled(bareNamespace("made"), marks)), byMarks},
		{"let in another namespace's routes", patching(&corev1.Namespace{ObjectMeta: named("", metav1.NamespaceDefault)},
			`{"metadata":{"labels":{"subrelay.example.com/managed":"true"}}}`), byMarks},
		{"mark an object with the pool's id alone", patching(elsewhere, `{"metadata":{"labels":{"subrelay.example.com/pool":"a"}}}`), byMarks},
		{"take off the label of a pool's namespace", patching(namespace, `{"metadata":{"labels":{"subrelay.example.com/managed":null}}}`), byMarks},
		{"take off both labels", patching(namespace,
			`{"metadata":{"labels":{"subrelay.example.com/managed":null,"subrelay.example.com/pool":null}}}`), byMarks},
		{"take the owner off a pool's namespace", patching(namespace, `{"metadata":{"ownerReferences":null}}`), byMarks},
		{"take off the finalizer", patching(pool, `{"metadata":{"finalizers":null}}`), byFinalizer},

		{"mark the operator's objects otherwise", patching(service, `{"metadata":{"labels":{"example.org/team":"a"}}}`), ""},
		{"mark a wall otherwise", patching(wall, `{"metadata":{"annotations":{"example.org/note":"a"}}}`), ""},
		{"delete the Secret, to have another", deleting(&corev1.Secret{ObjectMeta: in(pool, "subpool-credentials")}), ""},
		{"restart the Pod", deleting(&corev1.Pod{ObjectMeta: in(pool, "runtime-0")}), ""},
		{"delete a budget, which comes back", deleting(&policyv1.PodDisruptionBudget{ObjectMeta: in(pool, "runtime")}), ""},
		{"run something beside the pool", creating(pod), ""},
		{"add a NetworkPolicy elsewhere", creating(&netv1.NetworkPolicy{ObjectMeta: named(metav1.NamespaceDefault, "allow-all")}), ""},
		{"suspend the pool", patching(pool, `{"spec":{"suspend":true}}`), ""},
		{"add a finalizer", patching(pool, `{"metadata":{"finalizers":["`+v1alpha1.Finalizer+`","example.org/more"]}}`), ""},
		{"delete the pool", deleting(pool), ""},
	})
}

func ingress(meta metav1.ObjectMeta) *netv1.Ingress {
	return &netv1.Ingress{ObjectMeta: meta, Spec: netv1.IngressSpec{DefaultBackend: &netv1.IngressBackend{
		Service: &netv1.IngressServiceBackend{Name: "cpa", Port: netv1.ServiceBackendPort{Number: 8317}},
	}}}
}

// An administrator may do by hand what is the operator's: with the made-up verb, or as cluster-admin, who has every verb.
func TestOverride(t *testing.T) {
	t.Parallel()
	pool := createReady(t, "override")
	namespace, marks := bareNamespace(pool.Name), poolNamespace(t, pool).Labels
	override := rbacv1.PolicyRule{
		APIGroups: []string{v1alpha1.SchemeGroupVersion.Group}, Resources: []string{"subpools"}, Verbs: []string{"override"},
	}
	attempts := []attempt{
		{"hand a namespace over", patching(namespace, takeover(t, pool)), ""},
		{"take the owner off a namespace", patching(namespace, `{"metadata":{"ownerReferences":null}}`), ""},
		{"hand a Secret over", patching(&corev1.Secret{ObjectMeta: in(pool, "subpool-credentials")}, takeover(t, pool)), ""},
		{"take off the finalizer", patching(pool, `{"metadata":{"finalizers":null}}`), ""},
		{"add a NetworkPolicy", creating(&netv1.NetworkPolicy{ObjectMeta: in(pool, "allow-all")}), ""},
		{"change the StatefulSet", patching(&appsv1.StatefulSet{ObjectMeta: in(pool, "runtime")}, `{"spec":{"replicas":0}}`), ""},
		{"restore an object", creating(labelled(&corev1.ConfigMap{ObjectMeta: in(pool, "restored")}, marks)), ""},
	}
	t.Run("by verb", func(t *testing.T) {
		tryAll(t, as(t, "keeper of "+pool.Name, append(everything, override)...), attempts)
	})
	t.Run("as cluster-admin", func(t *testing.T) { tryAll(t, client.NewDryRunClient(cluster.Admin), attempts) })
}

// The policy asks for a label of the namespace that the operator itself has to put back when an administrator takes it off.
func TestNamespaceLabelsComeBack(t *testing.T) {
	t.Parallel()
	pool := createReady(t, "unlabelled")
	before := poolNamespace(t, pool).Labels
	none := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":null}}`))
	require.NoError(t, cluster.Admin.Patch(t.Context(), bareNamespace(pool.Name), none))
	eventually(t, readyBudget, func(c *assert.CollectT) {
		namespace := bareNamespace(pool.Name)
		get(c, namespace)
		assert.Equal(c, before, namespace.Labels)
	})
	remove(t, &policyv1.PodDisruptionBudget{ObjectMeta: in(pool, "runtime")})
	eventually(t, readyBudget, func(c *assert.CollectT) { get(c, &policyv1.PodDisruptionBudget{ObjectMeta: in(pool, "runtime")}) })
	awaitReady(t, pool)
}

// Kubernetes' own controllers are no way around: a template with the marks of a pool makes no Pod.
func TestTemplateWithMarksMakesNoPod(t *testing.T) {
	t.Parallel()
	pool := createReady(t, "template")
	labels := map[string]string{
		v1alpha1.LabelManaged: v1alpha1.LabelManagedValue, v1alpha1.LabelPool: pool.Name, "subrelay.example.com/component": "runtime",
	}
	impostor := &appsv1.ReplicaSet{ObjectMeta: in(pool, "impostor"), Spec: appsv1.ReplicaSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: podTemplate(labels),
	}}
	create(t, impostor)
	eventually(t, readyBudget, func(c *assert.CollectT) {
		get(c, impostor)
		require.NotEmpty(c, impostor.Status.Conditions)
		assert.Equal(c, appsv1.ReplicaSetReplicaFailure, impostor.Status.Conditions[0].Type)
		assert.Contains(c, impostor.Status.Conditions[0].Message, byMarks)
	})
	pods := &corev1.PodList{}
	require.NoError(t, cluster.Admin.List(t.Context(), pods, client.InNamespace(namespaceOf(pool.Name))))
	require.Len(t, pods.Items, 1)
	assert.Equal(t, "runtime-0", pods.Items[0].Name)
}
