package controllers

import (
	"strings"

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
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/internal/operatorconfig"
)

// CacheOptions limits the cache to what pools are made of, the operator configuration and the shared
// proxy, and trims what is kept: memory follows the number of pools, not the size of the cluster.
// Secrets are not cached at all. Of two kinds everything is watched, but next to nothing kept of what belongs to others:
// NetworkPolicies, which weaken a pool's walls whoever made them, and HTTPRoutes, of which one may take a pool's host.
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
	case *netv1.NetworkPolicy:
		if !poolOwns(typed) {
			typed.ObjectMeta, typed.Spec = identity(typed), netv1.NetworkPolicySpec{}
		}
	case *gatewayv1.HTTPRoute:
		if !poolOwns(typed) {
			typed.ObjectMeta, typed.Status = identity(typed), gatewayv1.HTTPRouteStatus{}
			typed.Spec.Rules = nil
		}
	case *gatewayv1.Gateway:
		// The counts of attached routes change with every published pool.
		typed.Status.Addresses = nil
		for i := range typed.Status.Listeners {
			typed.Status.Listeners[i].AttachedRoutes = 0
		}
	case *metav1.PartialObjectMetadata:
		typed.ObjectMeta = identity(typed)
	}
	shareParts(object)
	return object, nil
}

// poolOwns tells whether an object was made for some SubPool.
func poolOwns(object metav1.Object) bool {
	controller := metav1.GetControllerOf(object)
	return controller != nil && controller.Kind == "SubPool" &&
		strings.HasPrefix(controller.APIVersion, v1alpha1.SchemeGroupVersion.Group+"/")
}

// identity is the metadata by which an object is told from others of its kind.
func identity(object metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: object.GetName(), Namespace: object.GetNamespace(), UID: object.GetUID(),
		ResourceVersion: object.GetResourceVersion(), CreationTimestamp: object.GetCreationTimestamp(),
	}
}

// trimPod keeps of a Pod what says how it is doing.
func trimPod(object any) (any, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		pod.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName}
		for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
			for i := range statuses {
				statuses[i].Resources, statuses[i].AllocatedResources, statuses[i].VolumeMounts = nil, nil, nil
			}
		}
	}
	return trim(object)
}
