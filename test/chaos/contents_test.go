//go:build chaos

package chaos

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	netv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

// background is for what a condition reads, which has no context of its own.
var background = context.Background()

// contents is what a pool consists of: the essence of every object, by kind and name. Pools that should be alike have the
// same.
type contents map[string]string

// of leaves out what only a pool has that was ever started.
func (c contents) of(w want) contents {
	if !w.suspend {
		return c
	}
	rest := contents{}
	for key, essence := range c {
		if kind, _, _ := strings.Cut(key, " "); kind != "Pod" && kind != "PersistentVolumeClaim" {
			rest[key] = essence
		}
	}
	return rest
}

func contentsOf(t require.TestingT, id string) contents {
	found := contents{}
	for _, object := range managedObjects(t, client.InNamespace(harness.NamespaceOf(id))) {
		if placeOf(object) != harness.NamespaceOf(id) {
			continue // other pools' namespaces: they are in no namespace themselves
		}
		kind := reflect.TypeOf(object).Elem().Name()
		name := strings.ReplaceAll(object.GetName(), id, "POOL")
		text, err := json.Marshal(essenceOf(object))
		require.NoError(t, err)
		found[kind+" "+name] = strings.ReplaceAll(string(text), id, "POOL")
	}
	return found
}

// managedObjects returns everything that carries the operator's label but SubPools themselves.
func managedObjects(t require.TestingT, options ...client.ListOption) []client.Object {
	options = append(options, client.MatchingLabels{v1alpha1.LabelManaged: v1alpha1.LabelManagedValue})
	var objects []client.Object
	for _, list := range []client.ObjectList{
		&corev1.NamespaceList{}, &corev1.SecretList{}, &corev1.ConfigMapList{}, &corev1.ServiceAccountList{},
		&corev1.ServiceList{}, &corev1.ResourceQuotaList{}, &corev1.PodList{}, &corev1.PersistentVolumeClaimList{},
		&rbacv1.RoleBindingList{}, &netv1.NetworkPolicyList{}, &policyv1.PodDisruptionBudgetList{}, &appsv1.StatefulSetList{},
	} {
		require.NoError(t, cluster.Admin.List(background, list, options...))
		require.NoError(t, meta.EachListItem(list, func(item runtime.Object) error {
			objects = append(objects, item.(client.Object))
			return nil
		}))
	}
	return objects
}

// placeOf returns the namespace that the object is in, or is.
func placeOf(object client.Object) string {
	if namespace, ok := object.(*corev1.Namespace); ok {
		return namespace.Name
	}
	return object.GetNamespace()
}

// essenceOf returns what the operator decides of an object, without what users chose for a single pool.
func essenceOf(object client.Object) any {
	switch o := object.(type) {
	case *corev1.Namespace:
		return o.Labels
	case *corev1.ConfigMap:
		return o.Data
	case *corev1.ServiceAccount:
		return o.AutomountServiceAccountToken
	case *corev1.Service:
		return []any{o.Spec.Selector, o.Spec.Ports, o.Spec.Type}
	case *corev1.ResourceQuota:
		return o.Spec
	case *rbacv1.RoleBinding:
		return []any{o.RoleRef, o.Subjects}
	case *netv1.NetworkPolicy:
		return o.Spec
	case *policyv1.PodDisruptionBudget:
		return o.Spec
	case *appsv1.StatefulSet:
		pod := o.Spec.Template.Spec.DeepCopy()
		for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
			for i := range containers {
				containers[i].Image, containers[i].Resources = "", corev1.ResourceRequirements{}
			}
		}
		return pod
	default:
		return nil
	}
}
