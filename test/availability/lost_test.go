//go:build integration || chaos

package availability

import (
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

// wire carries the operator's calls. Of each pool that has a fault, one write is lost in every step of the pool's life.
type wire struct {
	mu     sync.Mutex
	faults map[string]fault // by pool id
	counts map[string]int   // writes in this step, by pool id
	lost   int              // in this step
}

type fault struct {
	// nth is which write is lost, counted from 1 in each step.
	nth int
	// done: the API server does what it is asked for, and only the answer is lost.
	done bool
}

func (w *wire) strikes(pool string) (fault, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[pool]++
	fault := w.faults[pool]
	if fault.nth == 0 || w.counts[pool] != fault.nth {
		return fault, false
	}
	w.lost++
	return fault, true
}

func (w *wire) meddle(next http.Handler) http.Handler {
	return http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		pool, err := harness.WrittenPool(request)
		if err != nil {
			http.Error(answer, err.Error(), http.StatusBadGateway)
			return
		}
		if pool != "" {
			if fault, strikes := w.strikes(pool); strikes && fault.done {
				harness.LoseAnswer(next, request)
			} else if strikes {
				harness.Cut()
			}
		}
		next.ServeHTTP(answer, request)
	})
}

// CTL-04: whichever write of a creation, an update, a suspension, a resumption or a deletion is lost, before or after the
// API server did it, the pool ends up as an undisturbed one does, with the keys that were made once, and one Pod.
func TestCTL04LostWrites(t *testing.T) {
	// More than an undisturbed pool takes to be made, and to be deleted, which the test checks. Kubernetes takes its time to
	// delete namespaces, so no more of those than needed.
	const mostWrites, mostDeleting = 22, 12
	calm := newPools("calm", 1)[0]
	w := &wire{faults: map[string]fault{}, counts: map[string]int{}}
	all, deleted := []*v1alpha1.SubPool{calm}, []*v1alpha1.SubPool{calm}
	for nth := 1; nth <= mostWrites; nth++ {
		for _, done := range []bool{false, true} {
			pool := newPools("struck", 1)[0]
			w.faults[pool.Name] = fault{nth, done}
			all = append(all, pool)
			if nth <= mostDeleting {
				deleted = append(deleted, pool)
			}
		}
	}
	start(t, behind(t, w.meddle))
	from := markAudit(t)

	for _, step := range []struct {
		name string
		act  func()
		pods int
	}{
		{"create", func() { create(t, all...); awaitReady(t, all...) }, 1},
		{"update", func() {
			change(t, func(spec *v1alpha1.SubPoolSpec) { spec.CPA.Image = cpaImage + "-next" }, all...)
			awaitReady(t, all...)
		}, 1},
		{"suspend", func() {
			change(t, func(spec *v1alpha1.SubPoolSpec) { spec.Suspend = true }, all...)
			awaitSuspended(t, all...)
		}, 0},
		{"resume", func() {
			change(t, func(spec *v1alpha1.SubPoolSpec) { spec.Suspend = false }, all...)
			awaitReady(t, all...)
		}, 1},
	} {
		step.act()
		want := contents(t, calm)
		require.NotEmpty(t, want)
		for _, pool := range all {
			harness.Eventually(t, budget, func(c *assert.CollectT) { requireContents(c, want, step.pods, pool) })
		}
		w.endStep(t, step.name, calm, mostWrites)
	}
	for _, pool := range deleted {
		require.NoError(t, cluster.Admin.Delete(t.Context(), pool))
	}
	awaitGone(t, deleted...)
	w.endStep(t, "delete", calm, mostDeleting)
	requireNoKeysTwice(t, from, all)
}

// endStep checks that every write of the step was lost for some pool.
func (w *wire) endStep(t *testing.T, name string, calm *v1alpha1.SubPool, most int) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	writes := w.counts[calm.Name]
	t.Logf("%s: an undisturbed pool takes %d writes; %d were lost", name, writes, w.lost)
	assert.Positive(t, writes, name)
	assert.LessOrEqual(t, writes, most, "%s: lose more", name)
	// Twice as many, if all pools took as many writes; some take one less than others.
	assert.Greater(t, w.lost, writes, name)
	w.counts, w.lost = map[string]int{}, 0
}

// requireNoKeysTwice checks that no pool's keys were made a second time. That they were made is up to the caller.
func requireNoKeysTwice(t *testing.T, from harness.Mark, pools []*v1alpha1.SubPool) {
	t.Helper()
	made := map[string]int{}
	for _, write := range writesSince(t, from) {
		if write.ObjectRef.Resource == "secrets" && write.OK() {
			made[write.ObjectRef.Namespace]++
		}
	}
	require.NotEmpty(t, made)
	for _, pool := range pools {
		assert.LessOrEqual(t, made[harness.NamespaceOf(pool.Name)], 1, "Secrets made for %s", pool.Name)
	}
}
