//go:build chaos

package chaos

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

// reference and second are pools that nothing happens to.
const reference, second = "reference", "second"

// pristine is what every user wants who has changed nothing.
var pristine = want{exists: true, image: 1, cpu: 1}

// takeoverBudget is how long it may take until new operators have looked at every pool: the Lease of a leader that died
// runs out after 15 s.
const takeoverBudget = time.Minute

// leastBudget is for a look at a pool after all time is used up.
const leastBudget = 5 * time.Second

// requireSettled waits until every pool is what its user wants, and like one that nothing has happened to.
func (r *run) requireSettled(t *testing.T, wants []want) {
	t.Helper()
	quiet := time.Now()
	model := createReady(t, reference)
	deadline := quiet.Add(settleBudget)
	for i, w := range wants {
		id := poolID(i)
		settled := t.Run(id+" is what its spec asks for", func(t *testing.T) {
			require.EventuallyWithT(t, func(c *assert.CollectT) { requirePool(c, id, w, model) },
				max(time.Until(deadline), leastBudget), tick)
		})
		if !settled {
			t.Logf("what was done to %s:\n%s", id, strings.Join(r.history[i], "\n"))
			t.Logf("what the operators say of it:\n%s", r.linesWith(t, `"`+id+`"`))
		}
	}
	t.Logf("settled after %s", time.Since(quiet).Round(time.Second))
}

// createReady makes a pool and returns what it consists of as soon as it is ready.
func createReady(t *testing.T, id string) contents {
	t.Helper()
	require.NoError(t, cluster.Admin.Create(t.Context(), pristine.pool(id)))
	require.EventuallyWithT(t, func(c *assert.CollectT) { requireReady(c, id, pristine) }, settleBudget, tick)
	return contentsOf(t, id)
}

func requirePool(t require.TestingT, id string, w want, model contents) {
	if !w.exists {
		requireGone(t, &v1alpha1.SubPool{ObjectMeta: metav1.ObjectMeta{Name: id}})
		requireGone(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: harness.NamespaceOf(id)}})
		return
	}
	requireReady(t, id, w)
	requireWorkload(t, id, w)
	require.Equal(t, model.of(w), contentsOf(t, id).of(w))
}

// requireReady checks what the pool's status says.
func requireReady(t require.TestingT, id string, w want) {
	pool := &v1alpha1.SubPool{ObjectMeta: metav1.ObjectMeta{Name: id}}
	get(t, pool)
	ready := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionReady)
	require.NotNil(t, ready)
	status, reason := metav1.ConditionTrue, v1alpha1.ReasonPoolReady
	if w.suspend {
		status, reason = metav1.ConditionFalse, v1alpha1.ReasonSuspended
	}
	require.Equal(t, reason, ready.Reason, ready.Message)
	require.Equal(t, status, ready.Status)
	require.Equal(t, pool.Generation, ready.ObservedGeneration)
	require.Equal(t, pool.Generation, pool.Status.ObservedGeneration)
}

// requireWorkload checks what really runs.
func requireWorkload(t require.TestingT, id string, w want) {
	workload := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: harness.NamespaceOf(id), Name: "runtime"}}
	get(t, workload)
	pods := &corev1.PodList{}
	require.NoError(t, cluster.Admin.List(background, pods, client.InNamespace(workload.Namespace)))
	specs := []corev1.PodSpec{workload.Spec.Template.Spec}
	if w.suspend {
		require.Zero(t, *workload.Spec.Replicas)
		require.Empty(t, pods.Items)
	} else {
		require.EqualValues(t, 1, *workload.Spec.Replicas)
		require.Len(t, pods.Items, 1)
		require.Equal(t, corev1.PodRunning, pods.Items[0].Status.Phase)
		specs = append(specs, pods.Items[0].Spec)
	}
	for _, spec := range specs {
		at := slices.IndexFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == "cpa" })
		require.GreaterOrEqual(t, at, 0)
		require.Equal(t, string(w.cpaImage()), spec.Containers[at].Image)
		require.Equal(t, w.pool(id).Spec.CPA.Resources.Requests.CPU.String(), spec.Containers[at].Resources.Requests.Cpu().String())
	}
}

// requireNothingElse checks that there are no namespaces and no managed objects but those of pools that should exist.
func requireNothingElse(t *testing.T, wants []want) {
	t.Helper()
	ids := []string{reference}
	for i, w := range wants {
		if w.exists {
			ids = append(ids, poolID(i))
		}
	}
	var places []string
	for _, id := range ids {
		places = append(places, harness.NamespaceOf(id))
	}
	pools := &v1alpha1.SubPoolList{}
	require.NoError(t, cluster.Admin.List(t.Context(), pools))
	for _, pool := range pools.Items {
		assert.Contains(t, append(ids, foreign), pool.Name)
	}
	for _, object := range managedObjects(t) {
		assert.Contains(t, places, placeOf(object), "%T %s", object, object.GetName())
	}
	places = append(places, harness.NamespaceOf(foreign), harness.SystemNamespace, harness.SharedNamespace)
	namespaces := &corev1.NamespaceList{}
	require.NoError(t, cluster.Admin.List(t.Context(), namespaces))
	for _, namespace := range namespaces.Items {
		if strings.HasPrefix(namespace.Name, "subpool-") {
			assert.Contains(t, places, namespace.Name)
		}
	}
}

// requireSteady replaces the operators, waits until the new ones have been through all pools and checks that they left
// everything as it was.
func (r *run) requireSteady(t *testing.T, wants []want) {
	t.Helper()
	from, err := cluster.Audit.Mark(t.Context())
	require.NoError(t, err)
	before := r.crew.tokens()
	for i := range operators {
		require.NoError(t, r.crew.kill(i))
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		looked, err := cluster.Audit.OperatorCalls(t.Context(), from, func(call harness.Call) bool {
			return call.ObjectRef.Resource == "secrets" && call.Verb == "watch" && call.OK() && !before[call.TokenID()]
		})
		require.NoError(c, err)
		for i, w := range wants {
			require.True(c, !w.exists || slices.ContainsFunc(looked, func(call harness.Call) bool { return call.About(poolID(i)) }),
				"a look at %s", poolID(i))
		}
	}, takeoverBudget, time.Second)
	// Whatever they decided to write before this pool is written before it.
	createReady(t, second)
	writes, err := cluster.Audit.OperatorCalls(t.Context(), from, func(call harness.Call) bool {
		return call.Write() && call.OK() && !call.About(second)
	})
	require.NoError(t, err)
	assert.Empty(t, writes)
}

func requireForeignUntouched(t *testing.T, from harness.Mark) {
	t.Helper()
	writes, err := cluster.Audit.OperatorCalls(t.Context(), from, func(call harness.Call) bool {
		return call.Write() && call.OK() && call.About(foreign) && call.ObjectRef.Resource != "subpools"
	})
	require.NoError(t, err)
	assert.Empty(t, writes)
	pool := &v1alpha1.SubPool{ObjectMeta: metav1.ObjectMeta{Name: foreign}}
	get(t, pool)
	ready := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionReady)
	require.NotNil(t, ready)
	assert.Equal(t, v1alpha1.ReasonNamespaceConflict, ready.Reason, ready.Message)
}

// requireNoPanic looks for what controller-runtime and Go itself say of a panic.
func (r *run) requireNoPanic(t *testing.T) {
	logs, err := r.crew.logs()
	require.NoError(t, err)
	require.Contains(t, string(logs), "starting the SubRelay operator")
	assert.Empty(t, r.linesWith(t, "panic"))
	t.Logf("%d operators ran, %d did not get ready", len(r.crew.all), len(r.crew.failed))
}

// linesWith returns the lines of the operators' logs that contain the text.
func (r *run) linesWith(t *testing.T, text string) string {
	t.Helper()
	logs, err := r.crew.logs()
	require.NoError(t, err)
	var found []byte
	for line := range bytes.Lines(logs) {
		if bytes.Contains(line, []byte(text)) {
			found = append(found, line...)
		}
	}
	return string(found)
}

// get reads an object anew.
func get(t require.TestingT, object client.Object) {
	require.NoError(t, cluster.Admin.Get(background, client.ObjectKeyFromObject(object), object))
}

func requireGone(t require.TestingT, object client.Object) {
	err := cluster.Admin.Get(background, client.ObjectKeyFromObject(object), object)
	require.True(t, apierrors.IsNotFound(err), "%T %s should be gone: %v", object, object.GetName(), err)
}
