//go:build integration

package integration

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

// A Secret that is not the pool's, or of no use, is said and left as it is; whoever deletes it has a new one made.
func TestCFG01UnusableSecret(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spoil  func(t *testing.T, pool *v1alpha1.SubPool)
		reason string
		says   string
	}{
		"of nobody":     {disown, v1alpha1.ReasonCredentialConflict, "is not owned by this SubPool"},
		"without a key": {replaceWithoutKey, v1alpha1.ReasonCredentialInvalid, "cpamp_admin_key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := createReady(t, "spoilt")
			test.spoil(t, pool)
			awaitNotReady(t, pool, test.reason)
			assert.Contains(t, message(t, pool, v1alpha1.ConditionReady), test.says)
			get(t, &corev1.Pod{ObjectMeta: in(pool, "runtime-0")})

			spoilt := credentials(t, pool)
			remove(t, spoilt)
			awaitReady(t, pool)
			assert.NotEqual(t, spoilt.UID, credentials(t, pool).UID)
		})
	}
}

// disown takes the owner off the pool's Secret.
func disown(t *testing.T, pool *v1alpha1.SubPool) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`))
	require.NoError(t, cluster.Admin.Patch(t.Context(), credentials(t, pool), patch))
}

// replaceWithoutKey puts a Secret with a key less in the place of the pool's, before the operator makes a new one.
func replaceWithoutKey(t *testing.T, pool *v1alpha1.SubPool) {
	t.Helper()
	fresh := credentials(t, pool).DeepCopy()
	fresh.UID, fresh.ResourceVersion = "", ""
	delete(fresh.Data, "cpamp_admin_key")
	eventually(t, readyBudget, func(c *assert.CollectT) {
		require.NoError(c, client.IgnoreNotFound(cluster.Admin.Delete(background, credentials(c, pool))))
		require.NoError(c, cluster.Admin.Create(background, fresh.DeepCopy()))
	})
}

// CFG-02: two operators that both act, as after a second installation, make each pool's Secret once and never overwrite
// it. They agree on everything else, so they come to rest. All pools are theirs, so nothing runs in parallel.
func TestCFG02TwoOperators(t *testing.T) {
	const count = 10
	from := markAudit(t)
	second, err := cluster.StartOperator(background, "--leader-elect=false")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, second.Kill()) })
	pools := make([]*v1alpha1.SubPool, count)
	for i := range pools {
		pools[i] = newPool("twins")
		create(t, pools[i])
	}
	for _, pool := range pools {
		awaitReady(t, pool)
	}
	lost := credentials(t, pools[0])
	remove(t, lost)
	eventually(t, readyBudget, func(c *assert.CollectT) { assert.NotEqual(c, lost.UID, credentials(c, pools[0]).UID) })
	awaitReady(t, pools[0])

	for i, pool := range pools {
		want := []string{"create"}
		if i == 0 {
			want = []string{"create", "create"} // one was deleted
		}
		var made []string
		for _, c := range operatorCalls(t, from, func(c harness.Call) bool { return c.About(pool.Name) && writesSecret(c) && c.OK() }) {
			made = append(made, c.Verb)
		}
		assert.Equal(t, want, made, "writes of the Secret of %s", pool.Name)
	}
	for _, process := range []*harness.Operator{cluster.operator, second} {
		assert.NotEmpty(t, writesOf(t, from, process), "both act")
	}
	writes := -1
	for looks := 0; looks < 5 && writes != 0; looks++ { // the slower one may have a last word about a status
		rest := markAudit(t)
		awaitOperator(t)
		writes = 0
		for _, pool := range pools {
			writes += len(operatorWrites(t, rest, pool.Name))
		}
	}
	assert.Zero(t, writes, "both come to rest")
	late := operatorCalls(t, from, func(c harness.Call) bool {
		return writesSecret(c) && c.ResponseStatus.Code == http.StatusConflict
	})
	// Who has just given itself access may find the Secret made before it can read it: that is no news then.
	assert.LessOrEqual(t, timesLogged(t, "another process made the pool's credentials", cluster.operator, second), len(late),
		"nobody says so who was not too late")
}

func writesSecret(c harness.Call) bool { return c.Write() && c.ObjectRef.Resource == "secrets" }

// timesLogged counts lines with the words in the logs of processes.
func timesLogged(t *testing.T, words string, processes ...*harness.Operator) int {
	t.Helper()
	count := 0
	for _, process := range processes {
		log, err := process.Log()
		require.NoError(t, err)
		count += strings.Count(string(log), words)
	}
	return count
}
