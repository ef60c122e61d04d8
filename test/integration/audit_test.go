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

// accessPatience is how long the API server may take to honour a new RoleBinding.
const accessPatience = 2 * time.Second

// checkRights returns an error about calls, in the whole log, that the operator's rights did not cover. Calls about
// Secrets around the moment in which the operator gives itself access to them are expected.
func checkRights(ctx context.Context) error {
	granted := map[string][]time.Time{}
	refused, err := cluster.Audit.OperatorCalls(ctx, 0, func(c harness.Call) bool {
		if c.ObjectRef.Resource == "rolebindings" && c.Write() && c.OK() {
			granted[c.ObjectRef.Namespace] = append(granted[c.ObjectRef.Namespace], c.Received.Time)
		}
		// Other refusals of the same code are about the object, such as one of a kind that is being removed.
		return c.ResponseStatus.Code == http.StatusForbidden && strings.Contains(c.ResponseStatus.Message, " cannot ")
	})
	errs := []error{err}
	for _, c := range refused {
		expected := slices.ContainsFunc(granted[c.ObjectRef.Namespace], func(at time.Time) bool {
			return c.Received.Sub(at).Abs() < accessPatience
		})
		if c.ObjectRef.Resource != "secrets" || !expected {
			errs = append(errs, fmt.Errorf("the operator has no right to what it tried: %s", c))
		}
	}
	return errors.Join(errs...)
}
