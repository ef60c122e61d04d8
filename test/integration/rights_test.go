//go:build integration

package integration

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/test/harness"
)

// asOperator returns a client with the operator's rights. It impersonates, so its calls do not count as the operator's
// in the audit log.
func asOperator(t *testing.T) client.Client {
	t.Helper()
	config := rest.CopyConfig(cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: harness.OperatorUser,
		Groups:   []string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:" + systemNamespace},
	}
	operator, err := client.New(config, client.Options{Scheme: cluster.Admin.Scheme()})
	require.NoError(t, err)
	return operator
}

func TestRightsToSecrets(t *testing.T) {
	t.Parallel()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "subpool-operator"}}
	get(t, role)
	for _, rule := range role.Rules {
		assert.False(t, slices.Contains(rule.Resources, "secrets") || slices.Contains(rule.Resources, "*"), "%s", rule.String())
	}

	pool := createReady(t, "rights")
	operator := asOperator(t)
	own := &corev1.Secret{ObjectMeta: in(pool, "subpool-credentials")}
	require.NoError(t, operator.Get(t.Context(), client.ObjectKeyFromObject(own), own), "its rights are the operator's")

	neighbour := &corev1.Secret{ObjectMeta: in(pool, "neighbour")}
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: pool.Name}}
	for _, secret := range []client.Object{neighbour, foreign} {
		create(t, secret)
	}
	read := func(object client.Object) error {
		return operator.Get(t.Context(), client.ObjectKeyFromObject(object), object)
	}
	elsewhere := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: pool.Name}}
	admin := &rbacv1.RoleBinding{
		ObjectMeta: in(pool, "admin"),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: systemNamespace, Name: operatorAccount}},
	}
	for what, err := range map[string]error{
		"list all Secrets":                    operator.List(t.Context(), &corev1.SecretList{}),
		"list the Secrets of a pool":          operator.List(t.Context(), &corev1.SecretList{}, client.InNamespace(own.Namespace)),
		"read another Secret of a pool":       read(neighbour),
		"read a Secret in kube-system":        read(foreign),
		"make a Secret elsewhere":             operator.Create(t.Context(), elsewhere),
		"change a pool's Secret":              operator.Patch(t.Context(), own, client.RawPatch("application/merge-patch+json", []byte(`{}`))),
		"delete a pool's Secret":              operator.Delete(t.Context(), own),
		"give itself more rights in a pool":   operator.Create(t.Context(), admin),
		"delete a Pod elsewhere":              operator.Delete(t.Context(), &corev1.Pod{ObjectMeta: foreign.ObjectMeta}),
		"read Events elsewhere":               operator.List(t.Context(), &corev1.EventList{}, client.InNamespace(metav1.NamespaceSystem)),
		"force the end of a pool's namespace": operator.SubResource("finalize").Update(t.Context(), poolNamespace(t, pool)),
	} {
		assert.True(t, apierrors.IsForbidden(err), "%s: %v", what, err)
	}
}
