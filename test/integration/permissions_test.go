//go:build integration

package integration

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

// withdrawal is the time in which the operator lacks a right.
type withdrawal struct {
	lost     permission
	from, to time.Time
}

var withdrawals struct {
	sync.Mutex
	all []withdrawal
}

var missingRight = regexp.MustCompile(`cannot (\w+) resource "([^"]+)" in API group "([^"]*)"`)

// missing returns the right for whose lack a call was refused.
func missing(c harness.Call) (permission, bool) {
	words := missingRight.FindStringSubmatch(c.ResponseStatus.Message)
	if len(words) == 0 {
		return permission{}, false
	}
	return permission{verb: words[1], resource: words[2], group: words[3]}, true
}

// isWithdrawn tells whether a call was refused because a test had taken the right away.
func isWithdrawn(c harness.Call) bool {
	right, refused := missing(c)
	withdrawals.Lock()
	defer withdrawals.Unlock()
	return refused && slices.ContainsFunc(withdrawals.all, func(w withdrawal) bool {
		return w.lost == right && c.Received.After(w.from) && c.Received.Time.Before(w.to.Add(accessPatience))
	})
}

// withdraw takes rights away from the operator and returns when the API server acts so. Everything comes back at the end of
// the test at the latest.
func withdraw(t *testing.T, name string, lost ...permission) (giveBack func()) {
	t.Helper()
	createProbe(t, name, lost[0])
	from := time.Now()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	get(t, role)
	shipped := role.Rules
	role.Rules = without(shipped, lost)
	require.NotEqual(t, len(rightsOf(shipped)), len(rightsOf(role.Rules)), "%v are in the role", lost)
	require.NoError(t, cluster.Admin.Update(t.Context(), role))
	giveBack = sync.OnceFunc(func() {
		get(t, role)
		role.Rules = shipped
		require.NoError(t, cluster.Admin.Update(background, role))
		withdrawals.Lock()
		defer withdrawals.Unlock()
		for _, right := range lost {
			withdrawals.all = append(withdrawals.all, withdrawal{right, from, time.Now()})
		}
	})
	t.Cleanup(giveBack)
	for _, right := range lost {
		awaitGranted(t, name, right, false)
	}
	return giveBack
}

// without returns the rules with one rule for each resource, and none for the lost rights.
func without(rules []rbacv1.PolicyRule, lost []permission) []rbacv1.PolicyRule {
	var left []rbacv1.PolicyRule
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				verbs := slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool {
					return slices.Contains(lost, permission{group, resource, verb})
				})
				if len(verbs) > 0 {
					left = append(left, rbacv1.PolicyRule{
						APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: rule.ResourceNames, Verbs: verbs,
					})
				}
			}
		}
	}
	return left
}

// probe is a user who has a role in the whole cluster, by which to see what the API server makes of the role.
func probe(role string) string { return "probe of " + role }

// createProbe returns when the API server knows the probe.
func createProbe(t *testing.T, role string, right permission) {
	t.Helper()
	create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: probe(role)}},
	})
	awaitGranted(t, role, right, true)
}

// awaitGranted waits until the API server, which learns of roles as everybody else does, grants the right by the role, or
// does not.
func awaitGranted(t *testing.T, role string, right permission, granted bool) {
	t.Helper()
	attributes := &authorizationv1.ResourceAttributes{Group: right.group, Verb: right.verb}
	attributes.Resource, attributes.Subresource, _ = strings.Cut(right.resource, "/")
	if right.verb == "bind" {
		attributes.Name = poolRole
	}
	eventually(t, readyBudget, func(c *assert.CollectT) {
		review := &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: probe(role), ResourceAttributes: attributes},
		}
		require.NoError(c, cluster.Admin.Create(background, review))
		assert.Equal(c, granted, review.Status.Allowed, "%s by role %s", right, role)
	})
}

// needs are the rights without which no runtime may start, each on its own. The apply of a new object needs create and patch.
func needs() []permission {
	rights := []permission{
		{"", "namespaces", "create"},
		{rbacv1.GroupName, "clusterroles", "bind"},
		{"", "secrets", "create"},
	}
	for _, applied := range []permission{
		{group: rbacv1.GroupName, resource: "rolebindings"},
		{group: "", resource: "resourcequotas"},
		{group: "networking.k8s.io", resource: "networkpolicies"},
		{group: "", resource: "serviceaccounts"},
		{group: "", resource: "configmaps"},
		{group: "", resource: "services"},
		{group: "policy", resource: "poddisruptionbudgets"},
		{group: "apps", resource: "statefulsets"},
	} {
		for _, verb := range []string{"create", "patch"} {
			rights = append(rights, permission{applied.group, applied.resource, verb})
		}
	}
	return rights
}

// With one right less the operator says which, starts nothing that lacks a wall or a key, leaves alone what is there, and
// goes on when it has the right again. Roles count for the whole cluster, so nothing runs in parallel.
func TestWithoutOnePermission(t *testing.T) {
	standing := createReady(t, "standing")
	from, before := markAudit(t), generationsOf(t, poolObjects(t, standing))
	var healing []*v1alpha1.SubPool
	for _, right := range needs() {
		pool := newPool("without")
		healing = append(healing, pool)
		t.Cleanup(func() { assert.NoError(t, client.IgnoreNotFound(cluster.Admin.Delete(background, pool))) })
		t.Run(right.String(), func(t *testing.T) { startWithout(t, pool, right) })
	}
	for _, pool := range healing {
		awaitReady(t, pool)
	}
	get(t, standing)
	awaitReady(t, standing)
	assert.Empty(t, operatorWrites(t, from, standing.Name))
	assert.Equal(t, before, generationsOf(t, poolObjects(t, standing)))
}

// startWithout makes the pool while the right is missing, and returns when its runtime is made because the right is back.
func startWithout(t *testing.T, pool *v1alpha1.SubPool, right permission) {
	t.Helper()
	role, refusal := operatorRole, fmt.Sprintf("cannot %s resource %q", right.verb, right.resource)
	switch right.resource {
	case "secrets":
		role = poolRole
	case "clusterroles": // the server does not name the verb: it asks for the rights themselves instead
		refusal = "attempting to grant RBAC permissions not currently held"
	}
	giveBack := withdraw(t, role, right)
	require.NoError(t, cluster.Admin.Create(t.Context(), pool))
	awaitNotReady(t, pool, v1alpha1.ReasonApplyFailed)
	assert.Contains(t, message(t, pool, v1alpha1.ConditionReady), refusal)
	workload := &appsv1.StatefulSet{ObjectMeta: in(pool, "runtime")}
	requireGone(t, workload)
	giveBack()
	eventually(t, readyBudget, func(c *assert.CollectT) { get(c, workload) })
}

// What a published pool needs beyond that.
func TestWithoutPermissionToPublish(t *testing.T) {
	withGateway(t)
	for _, verb := range []string{"create", "patch"} {
		t.Run(verb, func(t *testing.T) {
			giveBack := withdraw(t, poolRole, permission{gatewayv1.GroupName, "httproutes", verb})
			pool := newPublishedPool("unpublished")
			create(t, pool)
			awaitNotReady(t, pool, v1alpha1.ReasonApplyFailed)
			assert.Contains(t, message(t, pool, v1alpha1.ConditionReady), fmt.Sprintf("cannot %s resource \"httproutes\"", verb))
			giveBack()
			judgeRoute(t, pool, true, gatewayv1.RouteReasonAccepted)
			awaitReady(t, pool)
		})
	}
}

// What is not wanted any more and may not be removed is said; it goes when it may.
func TestWithoutPermissionToDelete(t *testing.T) {
	pool, route := createPublished(t, "kept")
	stale := &corev1.ConfigMap{ObjectMeta: scriptOf(t, pool).ObjectMeta}
	stale.Name, stale.ResourceVersion, stale.UID = "initialize-0123456789", "", ""
	giveBack := withdraw(t, operatorRole,
		permission{"", "configmaps", "delete"}, permission{"networking.k8s.io", "networkpolicies", "delete"})
	giveBackRoutes := withdraw(t, poolRole, permission{gatewayv1.GroupName, "httproutes", "delete"})
	require.NoError(t, cluster.Admin.Create(t.Context(), stale))
	change(t, pool, func(spec *v1alpha1.SubPoolSpec) { spec.Exposure.Mode = v1alpha1.ExposureInternal })
	eventually(t, readyBudget, func(c *assert.CollectT) {
		get(c, pool)
		said := harness.Message(t, pool, v1alpha1.ConditionReady)
		for _, resource := range []string{"configmaps", "networkpolicies", "httproutes"} {
			assert.Contains(c, said, fmt.Sprintf("cannot delete resource %q", resource))
		}
	})
	get(t, route)
	giveBack()
	giveBackRoutes()
	awaitReady(t, pool)
	requireGone(t, route)
	requireGone(t, stale)
}

// A Pod that is in the way and may not be removed.
func TestWithoutPermissionToReplacePods(t *testing.T) {
	pool := newPool("stuck")
	pool.Spec.CPA.Image = cpaTagged(harness.BrokenTag)
	create(t, pool)
	awaitNotReady(t, pool, v1alpha1.ReasonImagePullFailed)
	giveBack := withdraw(t, poolRole, permission{"", "pods", "delete"})
	change(t, pool, func(spec *v1alpha1.SubPoolSpec) { spec.CPA.Image = cpaImage })
	awaitNotReady(t, pool, v1alpha1.ReasonApplyFailed)
	assert.Contains(t, message(t, pool, v1alpha1.ConditionReady), `cannot delete resource "pods"`)
	giveBack()
	awaitReady(t, pool)
}

// A pool that is deleted keeps its finalizer until the operator may delete its namespace, and see that it is gone.
func TestWithoutPermissionToDeleteNamespaces(t *testing.T) {
	var kept []*v1alpha1.SubPool
	for _, verb := range []string{"get", "delete"} {
		t.Run(verb, func(t *testing.T) {
			pool := createReady(t, "kept")
			kept = append(kept, pool)
			giveBack := withdraw(t, operatorRole, permission{"", "namespaces", verb})
			from := markAudit(t)
			remove(t, pool)
			awaitRefusedCall(t, from, permission{"", "namespaces", verb})
			awaitWords(t, pool, fmt.Sprintf("cannot %s resource \"namespaces\"", verb))
			get(t, pool)
			assert.Contains(t, pool.Finalizers, v1alpha1.Finalizer)
			assert.Nil(t, poolNamespace(t, pool).DeletionTimestamp)
			giveBack()
		})
	}
	t.Parallel() // the rights are back; Kubernetes takes a while to empty a namespace
	for _, pool := range kept {
		awaitGone(t, goneBudget, pool)
		requireGone(t, bareNamespace(pool.Name))
	}
}

// A Service that is gone and may not be made again.
func TestWithoutPermissionToMendServices(t *testing.T) {
	pool := createReady(t, "unreachable")
	giveBack := withdraw(t, operatorRole, permission{"", "services", "create"})
	require.NoError(t, cluster.Admin.Delete(t.Context(), &corev1.Service{ObjectMeta: in(pool, "cpa")}))
	awaitCondition(t, pool, readyBudget, v1alpha1.ConditionWorkloadReady, metav1.ConditionFalse, v1alpha1.ReasonServiceMissing)
	awaitNotReady(t, pool, v1alpha1.ReasonApplyFailed)
	assert.Contains(t, message(t, pool, v1alpha1.ConditionReady), `cannot create resource "services"`)
	giveBack()
	awaitReady(t, pool)
}

// A namespace that somebody has changed stays so, and says why, until the operator may mend it.
func TestWithoutPermissionToMendNamespaces(t *testing.T) {
	pool := createReady(t, "changed")
	giveBack := withdraw(t, operatorRole, permission{"", "namespaces", "patch"})
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`))
	require.NoError(t, cluster.Admin.Patch(t.Context(), bareNamespace(pool.Name), patch))
	awaitNotReady(t, pool, v1alpha1.ReasonApplyFailed)
	assert.Contains(t, message(t, pool, v1alpha1.ConditionReady), `cannot patch resource "namespaces"`)
	giveBack()
	awaitReady(t, pool)
	assert.Equal(t, "restricted", poolNamespace(t, pool).Labels["pod-security.kubernetes.io/enforce"])
}

// awaitWords waits until the API server's words are in the pool's status, whether or not its spec could be judged.
func awaitWords(t *testing.T, pool *v1alpha1.SubPool, words string) {
	t.Helper()
	eventually(t, readyBudget, func(c *assert.CollectT) {
		get(c, pool)
		ready := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionReady)
		require.NotNil(c, ready)
		assert.Equal(c, v1alpha1.ReasonApplyFailed, ready.Reason)
		assert.Contains(c, ready.Message, words)
	})
}

// Without the right to its own kind the operator does nothing to a new pool, and with it does everything.
func TestWithoutPermissionToSubPools(t *testing.T) {
	for _, right := range []permission{
		{v1alpha1.SchemeGroupVersion.Group, "subpools", "patch"},
		{v1alpha1.SchemeGroupVersion.Group, "subpools/status", "patch"},
	} {
		t.Run(right.resource, func(t *testing.T) {
			standing := createReady(t, "standing")
			before := generationsOf(t, poolObjects(t, standing))
			giveBack := withdraw(t, operatorRole, right)
			from := markAudit(t)
			pool := newPool("unseen")
			create(t, pool)
			awaitRefusedCall(t, from, right)
			if right.resource == "subpools" {
				awaitWords(t, pool, `cannot patch resource "subpools"`)
			}
			assert.Equal(t, before, generationsOf(t, poolObjects(t, standing)))
			giveBack()
			awaitReady(t, pool)
		})
	}
}

// awaitRefusedCall waits until the operator has missed the right.
func awaitRefusedCall(t *testing.T, from harness.Mark, right permission) {
	t.Helper()
	eventually(t, readyBudget, func(c *assert.CollectT) {
		refused, err := cluster.Audit.OperatorCalls(background, from, func(call harness.Call) bool {
			missed, refused := missing(call)
			return refused && missed == right
		})
		require.NoError(c, err)
		assert.NotEmpty(c, refused)
	})
}

// An operator that may not look at the walls does nothing, and begins by itself when it may.
func TestWithoutPermissionToWatch(t *testing.T) {
	standing := createReady(t, "standing")
	before := generationsOf(t, poolObjects(t, standing))
	stopOperator(t)
	giveBack := withdraw(t, operatorRole,
		permission{"networking.k8s.io", "networkpolicies", "list"}, permission{"networking.k8s.io", "networkpolicies", "watch"})
	from := markAudit(t)
	runOperator(t)
	pool := newPool("blind")
	create(t, pool)
	awaitRefusedCall(t, from, permission{"networking.k8s.io", "networkpolicies", "list"})
	requireGone(t, bareNamespace(pool.Name))
	assert.Equal(t, before, generationsOf(t, poolObjects(t, standing)))
	giveBack()
	awaitReady(t, pool)
}
