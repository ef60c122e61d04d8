//go:build integration || chaos

package availability

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	netv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

func namespaceOf(pool *v1alpha1.SubPool) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: harness.NamespaceOf(pool.Name)}}
}

// in returns where an object of the pool is.
func in(pool *v1alpha1.SubPool, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: harness.NamespaceOf(pool.Name), Name: name}
}

// contents returns what the operator made for a pool, by kind and name. What differs from pool to pool is left out:
// names and identities, what the API server and controllers fill in, and keys.
func contents(t require.TestingT, pool *v1alpha1.SubPool) map[string]string {
	namespace := namespaceOf(pool)
	objects := []client.Object{namespace}
	for _, list := range []client.ObjectList{
		&corev1.SecretList{}, &corev1.ConfigMapList{}, &corev1.ServiceAccountList{}, &corev1.ServiceList{},
		&corev1.ResourceQuotaList{}, &corev1.PersistentVolumeClaimList{}, &rbacv1.RoleBindingList{},
		&netv1.NetworkPolicyList{}, &policyv1.PodDisruptionBudgetList{}, &appsv1.StatefulSetList{},
	} {
		require.NoError(t, cluster.Admin.List(context.Background(), list, client.InNamespace(namespace.Name)))
		require.NoError(t, meta.EachListItem(list, func(item runtime.Object) error {
			objects = append(objects, item.(client.Object))
			return nil
		}))
	}
	cluster.Get(t, namespace)
	cluster.Get(t, pool)
	own := []string{string(pool.UID), "OWN", pool.Name, "OWN"}
	for _, object := range objects {
		own = append(own, string(object.GetUID()), "ITS")
	}
	names, found := strings.NewReplacer(own...), map[string]string{}
	for _, object := range objects {
		text, err := json.Marshal(essence(t, object))
		require.NoError(t, err)
		found[reflect.TypeOf(object).Elem().Name()+" "+names.Replace(object.GetName())] = names.Replace(string(text))
	}
	return found
}

// essence is an object without what its intent does not decide.
func essence(t require.TestingT, object client.Object) map[string]any {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	require.NoError(t, err)
	for _, volatile := range [][]string{
		{"metadata", "creationTimestamp"}, {"metadata", "generation"}, {"metadata", "managedFields"},
		{"metadata", "resourceVersion"}, {"metadata", "uid"}, {"status"},
		{"metadata", "annotations"}, // hashes over all of the intent, names included
		{"spec", "clusterIP"}, {"spec", "clusterIPs"},
	} {
		unstructured.RemoveNestedField(content, volatile...)
	}
	if secret, ok := object.(*corev1.Secret); ok {
		keys := map[string]any{}
		for key := range secret.Data {
			keys[key] = nil
		}
		content["data"] = keys
	}
	return content
}

// requireContents checks what a pool consists of, and how many Pods run in it.
func requireContents(t require.TestingT, want map[string]string, pods int, pool *v1alpha1.SubPool) {
	got := contents(t, pool)
	assert.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)), pool.Name)
	for name := range want {
		assert.Equal(t, want[name], got[name], "%s of %s", name, pool.Name)
	}
	found := &corev1.PodList{}
	require.NoError(t, cluster.Admin.List(context.Background(), found, client.InNamespace(namespaceOf(pool).Name)))
	assert.Len(t, found.Items, pods, "Pods of %s", pool.Name)
}
