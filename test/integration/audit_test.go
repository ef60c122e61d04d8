//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/example-org/subrelay-operator/test/harness"
)

func markAudit(t *testing.T) harness.Mark {
	t.Helper()
	mark, err := cluster.Audit.Mark(t.Context())
	require.NoError(t, err)
	return mark
}

// operatorCalls returns the operator's calls since the mark that satisfy keep, in the order of their answers.
func operatorCalls(t *testing.T, since harness.Mark, keep func(harness.Call) bool) []harness.Call {
	t.Helper()
	calls, err := cluster.Audit.OperatorCalls(t.Context(), since, keep)
	require.NoError(t, err)
	return calls
}

// operatorWrites returns what the operator wrote, or tried to, of one pool.
func operatorWrites(t *testing.T, since harness.Mark, poolID string) []harness.Call {
	t.Helper()
	return operatorCalls(t, since, func(c harness.Call) bool { return c.Write() && c.About(poolID) })
}

// accessPatience is how long the API server may take to honour a new RoleBinding, or a changed role.
const accessPatience = 2 * time.Second

// checkRights returns an error about calls of the operator, in the whole log, that its roles or its policy did not cover, and
// after a run of all tests about rights in its roles that no call needed.
func checkRights(ctx context.Context) error {
	granted, used := map[string][]time.Time{}, map[permission]bool{}
	refused, err := cluster.Audit.OperatorCalls(ctx, 0, func(c harness.Call) bool {
		if usedByHand(c) {
			return false
		}
		if c.ObjectRef.Resource == "rolebindings" && c.Write() && c.OK() {
			granted[c.ObjectRef.Namespace] = append(granted[c.ObjectRef.Namespace], c.Received.Time)
		}
		if c.OK() {
			note(used, c)
		}
		return beyondRights(c)
	})
	errs := []error{err}
	for _, c := range refused {
		if !accessIsNew(c, granted[c.ObjectRef.Namespace]) && !isWithdrawn(c) {
			errs = append(errs, fmt.Errorf("the operator has no right to what it tried: %s", c))
		}
	}
	if allTestsRun() {
		errs = append(errs, checkNeeded(ctx, used))
	}
	return errors.Join(errs...)
}

// beyondRights tells whether roles or the operator's policy refused a call. Other refusals of the same code are about the
// object, such as one of a kind that is being removed.
func beyondRights(c harness.Call) bool {
	said := c.ResponseStatus.Message
	return c.ResponseStatus.Code == http.StatusForbidden && (strings.Contains(said, byRoles) || strings.Contains(said, byPolicy))
}

// accessIsNew: calls about Secrets are expected to be refused around the moment in which the operator gives itself access
// to them.
func accessIsNew(c harness.Call, granted []time.Time) bool {
	return c.ObjectRef.Resource == "secrets" && slices.ContainsFunc(granted, func(at time.Time) bool {
		return c.Received.Sub(at).Abs() < accessPatience
	})
}
