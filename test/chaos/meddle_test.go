//go:build chaos

package chaos

import (
	"context"
	"fmt"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	netv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/test/harness"
)

// meddling is what an administrator does by hand to an object of a pool.
type meddling struct {
	kind client.Object
	// name is empty for the pool's namespace itself.
	name string
	// patch is a merge patch. Without one the object is deleted.
	patch string
}

var meddlings = []meddling{
	{kind: &corev1.Namespace{}},
	{kind: &corev1.Secret{}, name: "subpool-credentials"},
	{kind: &corev1.ServiceAccount{}, name: "runtime"},
	{kind: &corev1.Service{}, name: "cpa"},
	{kind: &corev1.ResourceQuota{}, name: "pool"},
	{kind: &corev1.Pod{}, name: "runtime-0"},
	{kind: &rbacv1.RoleBinding{}, name: "subpool-operator"},
	{kind: &netv1.NetworkPolicy{}, name: "default-deny"},
	{kind: &netv1.NetworkPolicy{}, name: "allow-mihomo"},
	{kind: &policyv1.PodDisruptionBudget{}, name: "runtime"},
	{kind: &appsv1.StatefulSet{}, name: "runtime"},

	{&corev1.Namespace{}, "", `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`},
	{&corev1.ServiceAccount{}, "runtime", `{"automountServiceAccountToken":true}`},
	{&corev1.Service{}, "cpa-manager", `{"spec":{"selector":{"app":"another"}}}`},
	{&corev1.ResourceQuota{}, "pool", `{"spec":{"hard":{"limits.cpu":"99"}}}`},
	{&rbacv1.RoleBinding{}, "subpool-operator", `{"subjects":[]}`},
	{&netv1.NetworkPolicy{}, "default-deny", `{"spec":{"policyTypes":["Ingress"],"egress":null}}`},
	{&netv1.NetworkPolicy{}, "allow-dns", `{"metadata":{"labels":{"subrelay.example.com/managed":null}}}`},
	{&policyv1.PodDisruptionBudget{}, "runtime", `{"spec":{"maxUnavailable":0}}`},
	{&appsv1.StatefulSet{}, "runtime", `{"spec":{"replicas":0}}`},
	{&appsv1.StatefulSet{}, "runtime", `{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":60}}}}`},
}

func (m meddling) String() string {
	what := fmt.Sprintf("%s %s", reflect.TypeOf(m.kind).Elem().Name(), m.name)
	if m.patch == "" {
		return what + " deleted by hand"
	}
	return what + " edited by hand: " + m.patch
}

// meddle does it, if there is such an object now. A deletion is noted, since it may be the cause of what comes after.
func (m meddling) do(ctx context.Context, id string, seen *ledger) error {
	object := m.kind.DeepCopyObject().(client.Object)
	object.SetNamespace(harness.NamespaceOf(id))
	object.SetName(m.name)
	if m.name == "" {
		object.SetNamespace("")
		object.SetName(harness.NamespaceOf(id))
	}
	if m.patch != "" {
		return passing(cluster.Admin.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(m.patch))))
	}
	if err := cluster.Admin.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return passing(err)
	}
	uid := object.GetUID()
	err := cluster.Admin.Delete(ctx, object, client.Preconditions{UID: &uid})
	if err == nil {
		seen.deletedByHand(uid)
	}
	return passing(err)
}

// passing leaves out errors that say no more than that the object came, went or changed meanwhile.
func passing(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
