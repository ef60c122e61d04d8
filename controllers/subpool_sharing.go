package controllers

import (
	"crypto/sha256"
	"maps"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	netv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// Pools are alike: most of what their objects say, a thousand of them say word for word. The cache keeps such a part once.
// Nothing that was read from the cache may be changed in place anyway; what the client hands out is a deep copy.

// maxParts bounds the parts that are remembered. Each pool has some ten of its own, its names and labels; the others are few. Of a
// part that was forgotten meanwhile there is one more copy.
const maxParts = 65536

var parts = lru.New(maxParts)

// partKey tells parts of one type apart by the SHA-256 of their content.
type partKey struct {
	kind reflect.Type
	sum  [sha256.Size]byte
}

// share replaces a part of an object by an equal one that another object has.
func share[T any, P interface {
	*T
	Marshal() ([]byte, error)
}](part P) {
	if content, err := part.Marshal(); err == nil {
		*part = known(content, *part)
	}
}

func sharedMap(entries map[string]string) map[string]string {
	if len(entries) == 0 {
		return entries
	}
	var content strings.Builder
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		content.WriteString(key + "\x00" + entries[key] + "\x00")
	}
	return known([]byte(content.String()), entries)
}

// sharedText keeps a text that is in use. The package unique would not: a string that it hands out does not keep the entry
// alive, so after a collection equal texts are kept twice.
func sharedText(text string) string {
	if text == "" {
		return text
	}
	return known([]byte(text), text)
}

// known returns what was first seen with this content.
func known[T any](content []byte, part T) T {
	key := partKey{reflect.TypeFor[T](), sha256.Sum256(content)}
	if kept, found := parts.Get(key); found {
		return kept.(T)
	}
	parts.Add(key, part)
	return part
}

// shareParts does so for the parts of those kinds of which each pool has one or more.
func shareParts(object any) {
	if accessor, ok := object.(metav1.Object); ok {
		shareMetadata(accessor)
	}
	switch typed := object.(type) {
	case *v1alpha1.SubPool:
		// The decoder leaves room to grow.
		typed.Status.Conditions = slices.Clone(typed.Status.Conditions)
		for i := range typed.Status.Conditions {
			condition := &typed.Status.Conditions[i]
			condition.Type, condition.Reason = sharedText(condition.Type), sharedText(condition.Reason)
			condition.Message = sharedText(condition.Message)
		}
	case *corev1.ConfigMap:
		for key, text := range typed.Data {
			typed.Data[key] = sharedText(text)
		}
	case *appsv1.StatefulSet:
		share(&typed.Spec.Template.Spec)
		typed.Spec.Template.Labels = sharedMap(typed.Spec.Template.Labels)
		for i := range typed.Spec.VolumeClaimTemplates {
			share(&typed.Spec.VolumeClaimTemplates[i].Spec)
		}
		shareSelector(&typed.Spec.Selector)
	case *corev1.ResourceQuota:
		share(&typed.Spec)
	case *corev1.PersistentVolumeClaim:
		share(&typed.Spec)
		share(&typed.Status)
	case *corev1.Service:
		typed.Spec.Selector = sharedMap(typed.Spec.Selector)
		for i := range typed.Spec.Ports {
			share(&typed.Spec.Ports[i])
		}
	case *netv1.NetworkPolicy:
		share(&typed.Spec)
	case *policyv1.PodDisruptionBudget:
		shareSelector(&typed.Spec.Selector)
	case *rbacv1.RoleBinding:
		share(&typed.RoleRef)
		for i := range typed.Subjects {
			share(&typed.Subjects[i])
		}
	}
}

func shareSelector(selector **metav1.LabelSelector) {
	if *selector == nil {
		return
	}
	if content, err := (*selector).Marshal(); err == nil {
		*selector = known(content, *selector)
	}
}

// shareMetadata shares the annotations too: the hash of the intent in them is that of all pools that are alike.
func shareMetadata(object metav1.Object) {
	object.SetNamespace(sharedText(object.GetNamespace()))
	object.SetName(sharedText(object.GetName()))
	object.SetLabels(sharedMap(object.GetLabels()))
	object.SetAnnotations(sharedMap(object.GetAnnotations()))
	if owners := object.GetOwnerReferences(); len(owners) == 1 {
		if content, err := owners[0].Marshal(); err == nil {
			object.SetOwnerReferences(known(content, owners))
		}
	}
}
