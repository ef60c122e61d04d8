//go:build integration

package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/test/harness"
)

// stopOperator stops the shared operator until runOperator, at the latest until the end of the test.
func stopOperator(t *testing.T) {
	t.Helper()
	require.NoError(t, cluster.operator.Stop())
	t.Cleanup(func() {
		select {
		case <-cluster.operator.Exited:
			runOperator(t)
		default:
		}
	})
}

// runOperator starts the shared operator. With flags beside the usual ones it runs until the end of the test.
func runOperator(t *testing.T, flags ...string) {
	t.Helper()
	fresh, err := cluster.StartOperator(background, flags...)
	require.NoError(t, err)
	cluster.operator = fresh
	if len(flags) == 0 {
		return
	}
	t.Cleanup(func() {
		if cluster.operator == fresh {
			assert.NoError(t, fresh.Stop())
			runOperator(t)
		}
	})
}

// ROL-01: a pool that is as it should be is left alone, whatever its metadata does, also by a new operator process.
func TestROL01SteadyPoolIsNotWritten(t *testing.T) {
	const (
		window  = 30 * time.Second
		touches = 20
	)
	pool := createReady(t, "steady")
	awaitOperator(t)
	generations := generationsOf(t, poolObjects(t, pool))
	from := markAudit(t)
	pace := time.NewTicker(window / touches)
	defer pace.Stop()
	for touch := range touches {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.org/touch":"%d"}}}`, touch)
		require.NoError(t, cluster.Admin.Patch(t.Context(), pool, client.RawPatch(types.MergePatchType, patch)))
		if touch == touches/3 || touch == touches*2/3 {
			stopOperator(t)
			runOperator(t)
		}
		<-pace.C
	}
	awaitOperator(t)

	assert.Empty(t, operatorWrites(t, from, pool.Name))
	assert.Equal(t, generations, generationsOf(t, poolObjects(t, pool)))
	looked := map[string]bool{}
	for _, c := range operatorCalls(t, from, func(c harness.Call) bool {
		return c.About(pool.Name) && c.ObjectRef.Resource == "secrets" && c.Verb == "watch" && c.OK()
	}) {
		looked[c.TokenID()] = true
	}
	assert.Len(t, looked, 3, "the first process and both new ones watched the pool's Secret")
}

// generationsOf returns the generation of every object that has one.
func generationsOf(t *testing.T, objects []client.Object) map[string]int64 {
	t.Helper()
	generations := map[string]int64{}
	for _, object := range objects {
		get(t, object)
		generations[kindOf(object)+" "+object.GetName()] = object.GetGeneration()
	}
	return generations
}
