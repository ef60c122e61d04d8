//go:build e2e

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The replica that leads is taken away: another one takes over and makes pools. No other test runs meanwhile.
func TestLeaderGone(t *testing.T) {
	assert.Equal(t, "restricted", read[corev1.Namespace](t, "", systemNamespace).Labels["pod-security.kubernetes.io/enforce"])
	before := leader(t)
	require.NoError(t, admin.Delete(t.Context(), read[corev1.Pod](t, systemNamespace, before), client.GracePeriodSeconds(0)))
	createReady(t, newPool("failover"))
	assert.NotEqual(t, before, leader(t))

	eventually(t, readyBudget, func(c *assert.CollectT) {
		deployment := read[appsv1.Deployment](c, systemNamespace, "subpool-operator")
		assert.EqualValues(c, 2, deployment.Status.ReadyReplicas)
	})
}

// leader is the name of the operator's Pod that acts.
func leader(t require.TestingT) string {
	lease := read[coordinationv1.Lease](t, systemNamespace, "subpool-operator")
	pod, _, _ := strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_")
	return pod
}

// Metrics are for those whom an administrator has given the shipped role.
func TestMetrics(t *testing.T) {
	t.Parallel()
	stranger, reader := account(t, "stranger"), account(t, "metrics-reader")
	create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "e2e-metrics-reader"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "subpool-operator-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: "metrics-reader"}},
	})
	metrics := forward(t, "https", systemNamespace, "subpool-operator-metrics", 8443)

	assert.Equal(t, http.StatusUnauthorized, metrics.get(t, "/metrics", "").status, "without a token")
	assert.Equal(t, http.StatusForbidden, metrics.get(t, "/metrics", stranger).status, "without the role")
	allowed := metrics.get(t, "/metrics", reader)
	assert.Equal(t, http.StatusOK, allowed.status, "with the role")
	assert.Contains(t, allowed.body, `leader_election_master_status{name="subpool-operator"}`, "whichever replica answers")
}

// account makes a ServiceAccount and returns a token of it.
func account(t *testing.T, name string) string {
	t.Helper()
	object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
	create(t, object)
	request := &authenticationv1.TokenRequest{}
	require.NoError(t, admin.SubResource("token").Create(t.Context(), object, request))
	return request.Status.Token
}
