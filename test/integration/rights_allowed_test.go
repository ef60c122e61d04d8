//go:build integration

package integration

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	netv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// With the token by which it gets nowhere else, the operator may do all that it needs.
func TestOperatorMayKeepPools(t *testing.T) {
	pool, route := createPublished(t, "allowed")
	const note = `{"metadata":{"annotations":{"example.org/note":"by hand"}}}`
	namespace := bareNamespace(pool.Name)
	var attempts []attempt
	for _, object := range append(poolObjects(t, pool), route) {
		if kind := kindOf(object); kind != "Secret" {
			attempts = append(attempts, attempt{fmt.Sprintf("change %s %s", kind, object.GetName()), patching(object, note), ""})
		}
	}
	fresh := bareNamespace("fresh-" + pool.Name)
	fresh.Labels = poolNamespace(t, pool).Labels
	fresh.Labels[v1alpha1.LabelPool] = "fresh-" + pool.Name
	fresh.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "SubPool", Name: "fresh-" + pool.Name, UID: "fresh", Controller: ptr.To(true),
	}}
	tryAll(t, byHand(t), append(attempts, []attempt{
		{"make a namespace", creating(fresh), ""},
		{"read a namespace", reading(namespace), ""},
		{"delete a namespace", deleting(namespace), ""},
		{"make the Secret", orThere(creating(&corev1.Secret{ObjectMeta: in(pool, "subpool-credentials")})), ""},
		{"delete a policy", deleting(&netv1.NetworkPolicy{ObjectMeta: in(pool, "default-deny")}), ""},
		{"delete a script", deleting(scriptOf(t, pool)), ""},
		{"delete the route", deleting(route), ""},
		{"delete the Pod", deleting(&corev1.Pod{ObjectMeta: in(pool, "runtime-0")}), ""},
		{"list Events of a pool", listing(&corev1.EventList{}, client.InNamespace(namespace.Name)), ""},
		{"take off its finalizer", patching(pool, `{"metadata":{"finalizers":null}}`), ""},
		{"write a status", func(t *testing.T, c client.Client) error {
			t.Helper()
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"namespace":"another"}}`))
			return c.Status().Patch(t.Context(), pool.DeepCopy(), patch)
		}, ""},
		{"tell about a SubPool", creating(eventAbout(metav1.NamespaceDefault, corev1.ObjectReference{Kind: "SubPool", Name: pool.Name})), ""},
		{"keep its Lease", renewing(named(systemNamespace, "subpool-operator")), ""},
		{"review a token", creating(&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: "of a scraper"}}), ""},
		{"review access", creating(&authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "scraper", NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
		}}), ""},
	}...))
}

// renewing is an update of a Lease, also of one that its holder renews at the same moment.
func renewing(meta metav1.ObjectMeta) try {
	return func(t *testing.T, c client.Client) error {
		t.Helper()
		return retry.RetryOnConflict(retry.DefaultRetry, func() error {
			lease := &coordinationv1.Lease{ObjectMeta: meta}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(lease), lease); err != nil {
				return err
			}
			return c.Update(t.Context(), lease)
		})
	}
}

// orThere lets an attempt to make an object pass that exists: what was allowed comes so far.
func orThere(do try) try {
	return func(t *testing.T, c client.Client) error {
		t.Helper()
		return client.IgnoreAlreadyExists(do(t, c))
	}
}

// listInstead makes a client ask API servers for lists, as one does of those that cannot stream a list as a watch.
const listInstead = "KUBE_FEATURE_WatchListClient"

// The right to list is for API servers, and moments, in which a watch cannot begin with a list.
func TestOperatorThatLists(t *testing.T) {
	stopOperator(t)
	t.Setenv(listInstead, "false")
	runOperator(t)
	t.Cleanup(func() { assert.NoError(t, cluster.operator.Stop()) }) // the next one is started without this
	createPublished(t, "lists")
}
