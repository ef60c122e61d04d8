package harness

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	netv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PoolObjects returns, by name only, all objects that the operator itself keeps for an Internal pool. The name of the
// ConfigMap with the init script depends on its content. The Secret comes last: whoever replaces the objects one by one needs
// the keys until then.
func PoolObjects(poolID, script string) []client.Object {
	in := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: NamespaceOf(poolID), Name: name}
	}
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: NamespaceOf(poolID)}},
		&rbacv1.RoleBinding{ObjectMeta: in("subpool-operator")},
		&corev1.ResourceQuota{ObjectMeta: in("pool")},
		&netv1.NetworkPolicy{ObjectMeta: in("default-deny")},
		&netv1.NetworkPolicy{ObjectMeta: in("allow-dns")},
		&netv1.NetworkPolicy{ObjectMeta: in("allow-mihomo")},
		&corev1.ServiceAccount{ObjectMeta: in("runtime")},
		&corev1.ConfigMap{ObjectMeta: in(script)},
		&corev1.Service{ObjectMeta: in("cpa")},
		&corev1.Service{ObjectMeta: in("cpa-manager")},
		&policyv1.PodDisruptionBudget{ObjectMeta: in("runtime")},
		&appsv1.StatefulSet{ObjectMeta: in("runtime")},
		&corev1.Secret{ObjectMeta: in("subpool-credentials")},
	}
}
