//go:build integration

package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

// patience is longer than two of the operator's looks at a pool in trouble, 20 s apart.
const patience = 45 * time.Second

// quietTick is how often somebody who expects nothing looks.
const quietTick = 5 * time.Second

// RES-04: a Pod that no node takes for long is neither given up nor replaced, and runs when a node comes.
func TestRES04UnschedulableForLong(t *testing.T) {
	t.Parallel()
	pool := newPool("patient")
	pool.Spec.CPA.Image = cpaTagged(harness.PickyTag)
	create(t, pool)
	awaitNotReady(t, pool, v1alpha1.ReasonUnschedulable)
	assert.Contains(t, message(t, pool, v1alpha1.ConditionReady), "1 Insufficient memory")
	pod, workload := &corev1.Pod{ObjectMeta: in(pool, "runtime-0")}, &appsv1.StatefulSet{ObjectMeta: in(pool, "runtime")}
	get(t, pod)
	waiting, from := pod.UID, markAudit(t)

	assert.Never(t, func() bool {
		get(t, pod)
		get(t, workload)
		get(t, pool)
		ready := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionReady)
		return pod.UID != waiting || ptr.Deref(workload.Spec.Replicas, 0) != 1 ||
			ready == nil || ready.Reason != v1alpha1.ReasonUnschedulable
	}, patience, quietTick)
	assert.Empty(t, operatorWrites(t, from, pool.Name))

	create(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: harness.LargeNode}})
	awaitReady(t, pool)
	get(t, pod)
	assert.Equal(t, waiting, pod.UID, "the Pod that waited runs")
}

// STA-03: many pools, each with its own trouble or none: the operator looks at them again and again, and writes nothing,
// since nothing changes.
func TestSTA03TroubleIsQuiet(t *testing.T) {
	const (
		window   = time.Minute
		ofEach   = 3
		mostLook = 12 // calls about one pool: at most 4 looks in a minute, with 3 calls each
	)
	t.Parallel()
	expected := map[*v1alpha1.SubPool]string{}
	add := func(word, reason string, upset func(*v1alpha1.SubPool)) {
		for range ofEach {
			pool := newPool(word)
			upset(pool)
			create(t, pool)
			expected[pool] = reason
		}
	}
	for _, trouble := range troubles {
		add(trouble.tag, trouble.reason, func(pool *v1alpha1.SubPool) { pool.Spec.CPA.Image = cpaTagged(trouble.tag) })
	}
	add("fine", v1alpha1.ReasonPoolReady, func(*v1alpha1.SubPool) {})
	add("asleep", v1alpha1.ReasonSuspended, func(pool *v1alpha1.SubPool) { pool.Spec.Suspend = true })
	add("greedy", v1alpha1.ReasonResourcesExceedBaseline, func(pool *v1alpha1.SubPool) {
		pool.Spec.CPA.Resources = harness.Resources("9", "128Mi", "9", "256Mi")
	})
	add("foreign", v1alpha1.ReasonNamespaceConflict, func(pool *v1alpha1.SubPool) { create(t, bareNamespace(pool.Name)) })

	for pool, reason := range expected {
		status := metav1.ConditionFalse
		if reason == v1alpha1.ReasonPoolReady {
			status = metav1.ConditionTrue
		}
		awaitCondition(t, pool, 2*readyBudget, v1alpha1.ConditionReady, status, reason)
	}
	versions, events := map[string]string{}, map[string]int{}
	for pool := range expected {
		get(t, pool)
		versions[pool.Name], events[pool.Name] = pool.ResourceVersion, len(poolEvents(t, pool))
	}
	from := markAudit(t)
	assert.Never(t, func() bool { return len(writesAboutAny(t, from, expected)) > 0 }, window, quietTick)
	assert.Empty(t, writesAboutAny(t, from, expected))

	looked := 0
	for pool := range expected {
		get(t, pool)
		assert.Equal(t, versions[pool.Name], pool.ResourceVersion, pool.Name)
		assert.Len(t, poolEvents(t, pool), events[pool.Name], "Events about %s", pool.Name)
		calls := operatorCalls(t, from, func(c harness.Call) bool { return c.About(pool.Name) })
		assert.LessOrEqual(t, len(calls), mostLook, "%s: %v", pool.Name, calls)
		looked += len(calls)
	}
	assert.NotZero(t, looked, "the operator does look at pools in trouble")
}

// writesAboutAny returns what the operator wrote of these pools. A namespace of somebody else, which it does not see, it tries
// to make once a minute, and is refused.
func writesAboutAny(t require.TestingT, since harness.Mark, pools map[*v1alpha1.SubPool]string) []harness.Call {
	writes, err := cluster.Audit.OperatorCalls(background, since, func(c harness.Call) bool {
		if !c.Write() || !c.OK() {
			return false
		}
		for pool := range pools {
			if c.About(pool.Name) {
				return true
			}
		}
		return false
	})
	require.NoError(t, err)
	return writes
}
