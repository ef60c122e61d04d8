package controllers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/internal/subpool"
)

// TestROL02Turns: only so many pools restart at a time, and one that does not come back does not hold up the others for
// ever.
func TestROL02Turns(t *testing.T) {
	var turns rollouts
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	require.True(t, turns.admit("a", 2, start))
	require.True(t, turns.admit("b", 2, start.Add(time.Minute)))
	require.False(t, turns.admit("c", 2, start.Add(time.Minute)))
	require.True(t, turns.admit("a", 2, start.Add(time.Minute)), "it has its turn")
	turns.finish("b")
	require.True(t, turns.admit("c", 2, start.Add(2*time.Minute)))
	require.False(t, turns.admit("d", 2, start.Add(3*time.Minute)))
	require.True(t, turns.admit("d", 2, start.Add(restartBudget+time.Second)), "a has used its time up")
	require.False(t, turns.admit("e", 0, start.Add(time.Hour)), "all are held back")
}

// TestROL02RestartsUnasked: what a user or a lost Secret asks for is not held up, and nothing that restarts no Ready Pod.
func TestROL02RestartsUnasked(t *testing.T) {
	const keys, otherKeys = types.UID("1"), types.UID("2")
	for name, c := range map[string]struct {
		change      func(*observation)
		credentials types.UID
		want        bool
	}{
		"a new version changes the Pod": {func(*observation) {}, keys, true},
		"nothing changes": {func(o *observation) {
			o.workload.Annotations["subrelay.example.com/template"] = currentTemplate(o, keys)
		}, keys, false},
		"the user changes the SubPool":   {func(o *observation) { o.pool.Status.ObservedGeneration-- }, keys, false},
		"the Secret is another":          {func(*observation) {}, otherKeys, false},
		"no Pod runs":                    {func(o *observation) { o.pod = nil }, keys, false},
		"the Pod is not Ready":           {func(o *observation) { o.pod.Status.Conditions[0].Status = corev1.ConditionFalse }, keys, false},
		"the pool is suspended":          {func(o *observation) { o.pool.Spec.Suspend = true }, keys, false},
		"there is no StatefulSet so far": {func(o *observation) { o.workload = nil }, keys, false},
	} {
		t.Run(name, func(t *testing.T) {
			seen := running(t)
			seen.pool.Status.ObservedGeneration = seen.pool.Generation
			seen.workload.Annotations = map[string]string{"subrelay.example.com/template": "of before"}
			seen.workload.Spec.Template.Annotations = map[string]string{"subrelay.example.com/credentials": string(keys)}
			c.change(seen)
			in := seen.input(subpool.Identity{})
			in.Credentials = c.credentials
			require.Equal(t, c.want, restartsUnasked(seen, in, subpool.Workload(in)))
		})
	}
}

func currentTemplate(seen *observation, credentials types.UID) string {
	in := seen.input(subpool.Identity{})
	in.Credentials = credentials
	return subpool.Workload(in).Annotations["subrelay.example.com/template"]
}

// A pool that waits for its turn is Ready, and says what it waits for.
func TestROL02WaitingPoolIsReady(t *testing.T) {
	got := assessWorkload(running(t), outcome{restartPending: true})
	require.True(t, got.ok())
	require.Equal(t, v1alpha1.ReasonRestartPending, got.reason)
}
