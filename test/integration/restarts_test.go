//go:build integration

package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

// ROL-02: a new operator configuration that changes every Pod restarts so many pools at a time as it says, starts no
// suspended one, and lets users' own changes through at once. The others are Ready and say that they wait.
func TestROL02RestartsTakeTurns(t *testing.T) {
	const most = 2
	var pools []*v1alpha1.SubPool
	for range 8 {
		pools = append(pools, newPool("turns"))
		create(t, pools[len(pools)-1])
	}
	suspended := newPool("asleep")
	suspended.Spec.Suspend = true
	create(t, suspended)
	for _, pool := range pools {
		awaitReady(t, pool)
	}
	awaitNotReady(t, suspended, v1alpha1.ReasonSuspended)
	before := podsOf(t, pools)

	held := configurationWithRestarts(t, "subpool-operator-config-held", 0)
	stopOperator(t)
	runOperator(t, "--operator-config="+held)
	for _, pool := range pools {
		awaitCondition(t, pool, readyBudget, v1alpha1.ConditionWorkloadReady, metav1.ConditionTrue, v1alpha1.ReasonRestartPending)
		assert.True(t, meta.IsStatusConditionTrue(pool.Status.Conditions, v1alpha1.ConditionReady))
	}
	assert.Equal(t, before, podsOf(t, pools), "all are held back")
	change(t, pools[0], func(spec *v1alpha1.SubPoolSpec) { spec.CPA.Image = cpaImage + "-next" })
	awaitCondition(t, pools[0], readyBudget, v1alpha1.ConditionWorkloadReady, metav1.ConditionTrue, v1alpha1.ReasonReplicaReady)
	assert.NotEqual(t, before[pools[0].Name], podsOf(t, pools)[pools[0].Name], "its user asked for it")

	paced := configurationWithRestarts(t, "subpool-operator-config-paced", most)
	stopOperator(t)
	from := markAudit(t)
	runOperator(t, "--operator-config="+paced)
	for _, pool := range pools[1:] {
		eventually(t, 4*time.Minute, func(c *assert.CollectT) {
			assert.NotEqual(c, before[pool.Name], podsOf(c, pools)[pool.Name])
		})
		awaitCondition(t, pool, readyBudget, v1alpha1.ConditionWorkloadReady, metav1.ConditionTrue, v1alpha1.ReasonReplicaReady)
	}
	assert.LessOrEqual(t, mostAtOnce(t, from, pools), most)
	requireGone(t, &corev1.Pod{ObjectMeta: in(suspended, "runtime-0")})
}

// configurationWithRestarts makes an operator configuration that changes every Pod template and lets so many pools restart
// at a time. It returns its name.
func configurationWithRestarts(t *testing.T, name string, most int) string {
	t.Helper()
	document := operatorConfigMap(t).Data[configKey] + fmt.Sprintf("runtime: {maxRestarting: %d, cpa: {env: {NAME: %q}}}\n", most, name)
	create(t, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: name},
		Immutable:  ptr.To(true),
		Data:       map[string]string{configKey: document},
	})
	return name
}

// podsOf returns the UIDs of the pools' Pods that are there.
func podsOf(t require.TestingT, pools []*v1alpha1.SubPool) map[string]types.UID {
	uids := map[string]types.UID{}
	for _, pool := range pools {
		var pods corev1.PodList
		require.NoError(t, cluster.Admin.List(background, &pods, client.InNamespace(namespaceOf(pool.Name))))
		for i := range pods.Items {
			uids[pool.Name] = pods.Items[i].UID
		}
	}
	return uids
}

// mostAtOnce reads from the audit log how many restarts of the pools overlapped: each begins when the operator writes the
// StatefulSet, and ends when the kubelet says of a Pod that it is ready.
func mostAtOnce(t *testing.T, since harness.Mark, pools []*v1alpha1.SubPool) int {
	t.Helper()
	ours := map[string]bool{}
	for _, pool := range pools {
		ours[namespaceOf(pool.Name)] = true
	}
	calls, err := cluster.Audit.Calls(t.Context(), since, func(c harness.Call) bool {
		return ours[c.ObjectRef.Namespace] && c.OK() && c.Write()
	})
	require.NoError(t, err)
	running, most := map[string]bool{}, 0
	for _, c := range calls {
		switch {
		case c.ObjectRef.Resource == "statefulsets" && c.ObjectRef.Subresource == "":
			running[c.ObjectRef.Namespace] = true
		case c.ObjectRef.Resource == "pods" && c.ObjectRef.Subresource == "binding":
			delete(running, c.ObjectRef.Namespace) // the new Pod; ready in the next moment
		}
		most = max(most, len(running))
	}
	return most
}
