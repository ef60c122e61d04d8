//go:build chaos

package chaos

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

// seedVariable is set to see a run again.
const seedVariable = "SUBRELAY_CHAOS_SEED"

// foreign is the id of a pool whose namespace is somebody else's.
const foreign = "foreign"

// tick is how often a condition is looked at.
const tick = 200 * time.Millisecond

// settleBudget is how long the operator may take to bring everything in order. Its longest pause after errors is 5 minutes.
const settleBudget = 6 * time.Minute

func TestChaos(t *testing.T) {
	pools, steps := 30, 1000
	if testing.Short() {
		pools, steps = 10, 150
	}
	seed := chooseSeed(t)
	plan, wants := newPlan(seed, pools, steps)
	createForeign(t)
	beginning, err := cluster.Audit.Mark(t.Context())
	require.NoError(t, err)

	r := beginRun(t, pools)
	r.play(t, plan)
	r.requireSettled(t, wants)
	t.Run("nothing is left over", func(t *testing.T) { requireNothingElse(t, wants) })
	t.Run("new operators change nothing", func(t *testing.T) { r.requireSteady(t, wants) })
	t.Run("nothing was lost or doubled on the way", func(t *testing.T) {
		assert.NotEmpty(t, r.seen.secrets, "the ledger was kept")
		assert.NoError(t, r.seen.verdict())
	})
	t.Run("a foreign namespace is not written to", func(t *testing.T) { requireForeignUntouched(t, beginning) })
	t.Run("no operator panicked", r.requireNoPanic)
}

// The same seed means the same steps, or a run could not be seen again.
func TestPlanDependsOnSeedOnly(t *testing.T) {
	one, wants := newPlan(1, 10, 1000)
	again, wantsAgain := newPlan(1, 10, 1000)
	assert.Equal(t, one, again)
	assert.Equal(t, wants, wantsAgain)
	other, _ := newPlan(2, 10, 1000)
	assert.NotEqual(t, one, other)
}

// chooseSeed also says at once what was chosen, so that it is known whatever becomes of the run.
func chooseSeed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if given := os.Getenv(seedVariable); given != "" {
		var err error
		seed, err = strconv.ParseUint(given, 10, 64)
		require.NoError(t, err, "%s is a number from 0 to 2^64-1", seedVariable)
	}
	fmt.Fprintf(os.Stderr, "seed %d; to see this run again, set %s=%d\n", seed, seedVariable, seed)
	return seed
}

// createForeign makes a namespace with something in it, and a pool that would like to have it.
func createForeign(t *testing.T) {
	t.Helper()
	name := harness.NamespaceOf(foreign)
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "subpool-credentials"}},
		want{image: 1, cpu: 1}.pool(foreign),
	} {
		require.NoError(t, cluster.Admin.Create(t.Context(), object))
	}
}

// run is one run of a plan.
type run struct {
	seen   *ledger
	wire   *wire
	server *server
	crew   *crew
	// users are waited for, and so are pauses of the API server.
	users sync.WaitGroup

	begun time.Time
	mu    sync.Mutex
	// history is what was done to each pool, and when.
	history [][]string
}

func beginRun(t *testing.T, pools int) *run {
	t.Helper()
	seen, err := openLedger(t.Context())
	require.NoError(t, err)
	wire, err := layWire(t.Context(), cluster.Config.Host)
	require.NoError(t, err)
	server, err := findServer(t.Context(), lab)
	require.NoError(t, err)
	ctx, dismiss := context.WithCancel(t.Context())
	crew := hire(ctx, wire.address())
	t.Cleanup(func() {
		dismiss()
		crew.running.Wait()
	})
	return &run{seen: seen, wire: wire, server: server, crew: crew, begun: time.Now(), history: make([][]string, pools)}
}

// play takes the steps in the order and at the pace of the plan. Each pool has a user of its own, who does one thing after
// the other and may fall behind the plan.
func (r *run) play(t *testing.T, plan []step) {
	t.Helper()
	users := make([]chan step, len(r.history))
	for i := range users {
		users[i] = make(chan step, len(plan))
		r.users.Go(func() {
			for s := range users[i] {
				assert.NoError(t, r.serve(t.Context(), s), "%s: %s", poolID(i), s)
			}
		})
	}
	for _, s := range plan {
		switch s.action {
		case killOperator:
			require.NoError(t, r.crew.kill(s.operator))
		case pauseServer:
			r.users.Go(func() { assert.NoError(t, r.server.pause(t.Context(), s.pause)) })
		case cutWatches:
			r.wire.cut()
		default:
			users[s.pool] <- s
		}
		pass(t.Context(), s.gap)
	}
	for _, user := range users {
		close(user)
	}
	r.users.Wait()
	t.Logf("%d steps in %s", len(plan), time.Since(r.begun).Round(time.Second))
}

// serve takes a step that is about a pool.
func (r *run) serve(ctx context.Context, s step) error {
	r.mu.Lock()
	r.history[s.pool] = append(r.history[s.pool], fmt.Sprintf("%8s %s", time.Since(r.begun).Round(time.Millisecond), s))
	r.mu.Unlock()
	pool := s.want.pool(poolID(s.pool))
	switch s.action {
	case createPool:
		return createWhenGone(ctx, pool)
	case changePool:
		return change(ctx, pool)
	case deletePool:
		return cluster.Admin.Delete(ctx, pool)
	case recreatePool:
		if err := cluster.Admin.Delete(ctx, pool); err != nil {
			return err
		}
		return createWhenGone(ctx, pool)
	default:
		return s.meddling.do(ctx, pool.Name, r.seen)
	}
}

// createWhenGone creates the pool as soon as an older one of that name is gone.
func createWhenGone(ctx context.Context, pool *v1alpha1.SubPool) error {
	return wait.PollUntilContextTimeout(ctx, tick, settleBudget, true, func(ctx context.Context) (bool, error) {
		err := cluster.Admin.Create(ctx, pool.DeepCopy())
		if apierrors.IsAlreadyExists(err) {
			return false, nil
		}
		return err == nil, err
	})
}

// change gives the pool that exists this spec.
func change(ctx context.Context, pool *v1alpha1.SubPool) error {
	now := &v1alpha1.SubPool{}
	if err := cluster.Admin.Get(ctx, client.ObjectKeyFromObject(pool), now); err != nil {
		return err
	}
	before := now.DeepCopy()
	now.Spec = pool.Spec
	return cluster.Admin.Patch(ctx, now, client.MergeFrom(before))
}
