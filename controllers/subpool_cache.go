package controllers

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	netv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/internal/operatorconfig"
)

// CacheOptions limits the cache to what pools are made of, the operator configuration and the shared
// proxy, and trims what is kept: memory follows the number of pools, not the size of the cluster.
// Secrets are not cached at all.
func CacheOptions(config *operatorconfig.Source) cache.Options {
	managed := labels.SelectorFromSet(labels.Set{v1alpha1.LabelManaged: v1alpha1.LabelManagedValue})
	selected := func(transform func(any) (any, error)) cache.ByObject {
		return cache.ByObject{Label: managed, Transform: transform}
	}
	inNamespace := func(namespace string, only cache.Config) map[string]cache.Config {
		return map[string]cache.Config{
			namespace:           only,
			cache.AllNamespaces: {LabelSelector: managed},
		}
	}
	return cache.Options{
		ReaderFailOnMissingInformer: true,
		DefaultTransform:            trim,
		ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.SubPool{}:             {},
			&corev1.Namespace{}:             selected(trim),
			&corev1.ServiceAccount{}:        selected(trim),
			&corev1.ResourceQuota{}:         selected(trim),
			&corev1.PersistentVolumeClaim{}: selected(trim),
			&corev1.Pod{}:                   selected(trimPod),
			&rbacv1.RoleBinding{}:           selected(trim),
			&netv1.NetworkPolicy{}:          selected(trim),
			&policyv1.PodDisruptionBudget{}: selected(trim),
			&appsv1.StatefulSet{}:           selected(trim),
			&corev1.Service{}: {Namespaces: inNamespace(config.SharedNamespace, cache.Config{
				LabelSelector: labels.Everything(),
			})},
			&discoveryv1.EndpointSlice{}: {Namespaces: map[string]cache.Config{config.SharedNamespace: {}}},
			&corev1.ConfigMap{}: {Namespaces: inNamespace(config.Namespace, cache.Config{
				LabelSelector: labels.Everything(),
				FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, config.Name),
			})},
		},
	}
}

// trim drops what no condition is made from: field ownership, which lives on the server, and the status of
// kinds whose controllers write it often.
func trim(object any) (any, error) {
	if accessor, ok := object.(metav1.Object); ok {
		accessor.SetManagedFields(nil)
	}
	switch typed := object.(type) {
	case *corev1.ResourceQuota:
		typed.Status = corev1.ResourceQuotaStatus{}
	case *policyv1.PodDisruptionBudget:
		typed.Status = policyv1.PodDisruptionBudgetStatus{}
	}
	return object, nil
}

// trimPod keeps of a Pod what says how it is doing.
func trimPod(object any) (any, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		pod.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName}
	}
	return trim(object)
}
