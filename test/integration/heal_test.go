//go:build integration

package integration

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	netv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// edits are changes that somebody makes by hand to fields that are the operator's, by kind or kind and name.
var edits = map[string]func(client.Object){
	"Namespace": func(o client.Object) {
		o.SetLabels(replaced(o.GetLabels(), "pod-security.kubernetes.io/enforce", "privileged"))
	},
	"RoleBinding": func(o client.Object) {
		object := o.(*rbacv1.RoleBinding)
		object.Subjects = append(object.Subjects, rbacv1.Subject{
			Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "somebody",
		})
	},
	"ResourceQuota": func(o client.Object) {
		o.(*corev1.ResourceQuota).Spec.Hard[corev1.ResourceLimitsCPU] = resource.MustParse("99")
	},
	"NetworkPolicy": func(o client.Object) {
		o.(*netv1.NetworkPolicy).Spec.PolicyTypes = []netv1.PolicyType{netv1.PolicyTypeIngress}
		o.(*netv1.NetworkPolicy).Spec.Egress = nil
	},
	"ServiceAccount": func(o client.Object) {
		o.(*corev1.ServiceAccount).AutomountServiceAccountToken = ptr.To(true)
	},
	// Its data cannot be changed, but its labels can.
	"ConfigMap": func(o client.Object) { o.SetLabels(replaced(o.GetLabels(), v1alpha1.LabelPool, "another")) },
	"Service": func(o client.Object) {
		o.(*corev1.Service).Spec.Selector = map[string]string{"app": "another"}
	},
	"PodDisruptionBudget": func(o client.Object) {
		o.(*policyv1.PodDisruptionBudget).Spec.MaxUnavailable = ptr.To(intstr.FromInt32(0))
	},
	"StatefulSet": func(o client.Object) {
		o.(*appsv1.StatefulSet).Spec.Template.Spec.Containers[0].Image = "registry.example.invalid/another:v9"
	},
}

func replaced(labels map[string]string, key, value string) map[string]string {
	labels[key] = value
	return labels
}

func kindOf(object client.Object) string { return reflect.TypeOf(object).Elem().Name() }

// STA-01: whatever is done to the pool's objects by hand is undone. The promise has a time, so nothing else runs in
// parallel.
func TestSTA01ObjectsHeal(t *testing.T) {
	pool := createReady(t, "heal")
	for _, object := range poolObjects(t, pool) {
		kind := kindOf(object)
		name := kind + " " + object.GetName()
		if kind != "Namespace" { // TestDEL06NamespaceDeleted
			t.Run(name+" deleted", func(t *testing.T) { healsDeletion(t, object) })
		}
		if kind == "Secret" {
			continue // TestCFG01SecretLostOrEdited
		}
		edit := edits[kind]
		require.NotNil(t, edit, "an edit of a %s", kind)
		t.Run(name+" edited", func(t *testing.T) { healsEdit(t, object, edit) })
		t.Run(name+" without label", func(t *testing.T) {
			healsEdit(t, object, func(o client.Object) {
				labels := o.GetLabels()
				delete(labels, v1alpha1.LabelManaged)
				o.SetLabels(labels)
			})
		})
		t.Run(name+" with foreign marks", func(t *testing.T) { keepsForeignMarks(t, object, edit) })
	}
	awaitReady(t, pool)
}

func healsDeletion(t *testing.T, object client.Object) {
	t.Helper()
	get(t, object)
	old := object.GetUID()
	require.NoError(t, cluster.Admin.Delete(t.Context(), object))
	eventually(t, healBudget, func(c *assert.CollectT) {
		get(c, object)
		assert.NotEqual(c, old, object.GetUID())
	})
}

// healsEdit checks that the object becomes what it was.
func healsEdit(t *testing.T, object client.Object, edit func(client.Object)) {
	t.Helper()
	get(t, object)
	before := object.DeepCopyObject().(client.Object)
	edit(object)
	require.NoError(t, cluster.Admin.Patch(t.Context(), object, client.MergeFrom(before)))
	require.NotEqual(t, before.GetResourceVersion(), object.GetResourceVersion(), "the edit changed something")
	want := content(before)
	eventually(t, healBudget, func(c *assert.CollectT) {
		get(c, object)
		assert.Equal(c, want, content(object))
	})
}

// content is the object without what the API server and other controllers keep.
func content(object client.Object) any {
	stripped := object.DeepCopyObject().(client.Object)
	stripped.SetResourceVersion("")
	stripped.SetGeneration(0)
	stripped.SetManagedFields(nil)
	if status := reflect.ValueOf(stripped).Elem().FieldByName("Status"); status.IsValid() {
		status.SetZero()
	}
	return stripped
}

// keepsForeignMarks checks that labels and annotations of others survive a repair.
func keepsForeignMarks(t *testing.T, object client.Object, edit func(client.Object)) {
	t.Helper()
	get(t, object)
	before := object.DeepCopyObject().(client.Object)
	object.SetLabels(replaced(object.GetLabels(), "example.org/team", "a"))
	object.SetAnnotations(replaced(object.GetAnnotations(), "example.org/note", "ours"))
	require.NoError(t, cluster.Admin.Patch(t.Context(), object, client.MergeFrom(before)))
	healsEdit(t, object, edit)
	assert.Equal(t, "a", object.GetLabels()["example.org/team"])
	assert.Equal(t, "ours", object.GetAnnotations()["example.org/note"])
}

// CFG-01: the API server itself refuses to change a key; a lost Secret comes back with new keys, and the user is told.
func TestCFG01SecretLostOrEdited(t *testing.T) {
	t.Parallel()
	pool := createReady(t, "secret")
	secret := credentials(t, pool)
	base := secret.DeepCopy()
	secret.Data["cpa_client_key"] = []byte("chosen by hand")
	err := cluster.Admin.Patch(t.Context(), secret, client.MergeFrom(base))
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.ErrorContains(t, err, "immutable")

	require.NoError(t, cluster.Admin.Delete(t.Context(), base))
	eventually(t, readyBudget, func(c *assert.CollectT) {
		fresh := credentials(c, pool)
		for key, value := range base.Data {
			require.False(c, len(fresh.Data[key]) == 0 || bytes.Equal(fresh.Data[key], value), "%s is made anew", key)
		}
	})
	eventually(t, readyBudget, func(c *assert.CollectT) {
		assert.Contains(c, warnings(c, pool), v1alpha1.EventCredentialsMade)
	})
}

// The StatefulSet's Pod is not the operator's to make, but it comes back all the same.
func TestSTA01PodDeleted(t *testing.T) {
	t.Parallel()
	pool := createReady(t, "pod")
	pod := &corev1.Pod{ObjectMeta: in(pool, "runtime-0")}
	get(t, pod)
	old := pod.UID
	require.NoError(t, cluster.Admin.Delete(t.Context(), pod))
	eventually(t, readyBudget, func(c *assert.CollectT) {
		get(c, pod)
		assert.NotEqual(c, old, pod.UID)
	})
	awaitReady(t, pool)
}

// ownedUIDs are what must survive as long as the pool does.
type ownedUIDs struct{ namespace, secret, claim string }

func uidsOf(t *testing.T, pool *v1alpha1.SubPool) ownedUIDs {
	t.Helper()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: in(pool, "data-runtime-0")}
	get(t, claim)
	return ownedUIDs{
		namespace: string(poolNamespace(t, pool).UID),
		secret:    string(credentials(t, pool).UID),
		claim:     string(claim.UID),
	}
}

// warnings returns the reasons of the Warning Events about the pool.
func warnings(t require.TestingT, pool *v1alpha1.SubPool) []string {
	var reasons []string
	for _, event := range poolEvents(t, pool) {
		if event.Type == corev1.EventTypeWarning {
			reasons = append(reasons, event.Reason)
		}
	}
	return reasons
}

// poolEvents returns the Events about the SubPool; it is cluster-scoped, so they are in the default namespace.
func poolEvents(t require.TestingT, pool *v1alpha1.SubPool) []corev1.Event {
	var found []corev1.Event
	events := &corev1.EventList{}
	require.NoError(t, cluster.Admin.List(background, events, client.InNamespace(metav1.NamespaceDefault)))
	for i := range events.Items {
		if events.Items[i].InvolvedObject.UID == pool.UID {
			found = append(found, events.Items[i])
		}
	}
	return found
}
