//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

// permission is one verb on one resource, as roles grant them.
type permission struct {
	group string
	// resource has its subresource behind a slash.
	resource string
	verb     string
}

func (p permission) String() string {
	return fmt.Sprintf("%s %s of API group %q", p.verb, p.resource, p.group)
}

// unseen are rights that no request has, with the test that fails without them.
var unseen = map[permission]string{
	// Asked for when a RoleBinding is made.
	{rbacv1.GroupName, "clusterroles", "bind"}: "TestWithoutOnePermission",
}

// Roles that are shipped for the operator.
const (
	operatorRole = "subpool-operator"
	poolRole     = "subpool-operator-pool"
	leaderRole   = "subpool-operator-leader-election"
)

// note adds the rights that a successful call needed.
func note(used map[permission]bool, c harness.Call) {
	if c.ObjectRef.Resource == "" {
		return // discovery
	}
	needed := permission{resource: c.ObjectRef.Resource, verb: c.Verb}
	if c.ObjectRef.Subresource != "" {
		needed.resource += "/" + c.ObjectRef.Subresource
	}
	if path, ok := strings.CutPrefix(c.RequestURI, "/apis/"); ok {
		needed.group, _, _ = strings.Cut(path, "/")
	}
	used[needed] = true
	if c.Verb == "patch" && c.ResponseStatus.Code == http.StatusCreated {
		needed.verb = "create" // an apply of an object that did not exist
		used[needed] = true
	}
}

// grantedRights returns every right of the shipped roles.
func grantedRights(ctx context.Context) (map[permission]bool, error) {
	rights := map[permission]bool{}
	for _, name := range []string{operatorRole, poolRole} {
		role := &rbacv1.ClusterRole{}
		if err := cluster.Admin.Get(ctx, client.ObjectKey{Name: name}, role); err != nil {
			return nil, err
		}
		maps.Copy(rights, rightsOf(role.Rules))
	}
	role := &rbacv1.Role{}
	if err := cluster.Admin.Get(ctx, client.ObjectKey{Namespace: systemNamespace, Name: leaderRole}, role); err != nil {
		return nil, err
	}
	maps.Copy(rights, rightsOf(role.Rules))
	return rights, nil
}

func rightsOf(rules []rbacv1.PolicyRule) map[permission]bool {
	rights := map[permission]bool{}
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					rights[permission{group, resource, verb}] = true
				}
			}
		}
	}
	return rights
}

// checkNeeded returns an error about rights that are granted and were not used.
func checkNeeded(ctx context.Context, used map[permission]bool) error {
	rights, err := grantedRights(ctx)
	errs := []error{err}
	for right := range rights {
		if _, shown := unseen[right]; !shown && !used[right] {
			errs = append(errs, fmt.Errorf("the operator may %s and never did: take the right away, or write a test that uses it", right))
		}
	}
	return errors.Join(errs...)
}

// An Event that is repeated before anything else is known of its SubPool is counted by a patch.
func TestRepeatedEventIsCounted(t *testing.T) {
	t.Parallel()
	pool := newPool("series")
	pool.Spec.Suspend = true
	create(t, pool)
	awaitNotReady(t, pool, v1alpha1.ReasonSuspended)
	secret := credentials(t, pool)
	for range 2 {
		old := secret.UID
		remove(t, secret)
		eventually(t, readyBudget, func(c *assert.CollectT) {
			secret = credentials(c, pool)
			assert.NotEqual(c, old, secret.UID)
		})
	}
	eventually(t, readyBudget, func(c *assert.CollectT) {
		events := &eventsv1.EventList{}
		require.NoError(c, cluster.Admin.List(background, events, client.InNamespace(metav1.NamespaceDefault)))
		assert.True(c, slices.ContainsFunc(events.Items, func(e eventsv1.Event) bool {
			return e.Regarding.UID == pool.UID && e.Type == corev1.EventTypeWarning && e.Reason == v1alpha1.EventCredentialsMade &&
				e.Series != nil && e.Series.Count == 2
		}))
	})
}
