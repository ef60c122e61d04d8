//go:build integration

package clusterwide

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

// DEL-02: the documented uninstallation takes the operator away and nothing else. Pools run on untouched, and what was
// deleted meanwhile is finished after a reinstallation without a person.
func TestDEL02Undeploy(t *testing.T) {
	running, doomed := createReady(t, "running"), createReady(t, "doomed")
	before := versionsOf(t, running)
	stopOperator(t)
	undeploy(t)

	awaitGone(t, budget, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: harness.SystemNamespace}})
	remove(t, doomed)
	cluster.Get(t, doomed)
	assert.NotNil(t, doomed.DeletionTimestamp)
	cluster.Get(t, namespaceOf(doomed))
	cluster.Get(t, &corev1.Pod{ObjectMeta: in(doomed, "runtime-0")})
	cluster.Get(t, running)
	assert.Nil(t, running.DeletionTimestamp)
	assert.Equal(t, before, versionsOf(t, running), "not written to")

	require.NoError(t, lab.Install(t.Context()))
	startOperator(t)
	awaitGone(t, longBudget, doomed)
	cluster.RequireGone(t, namespaceOf(doomed))
	awaitReady(t, running, budget)
	assert.Equal(t, before, versionsOf(t, running), "not written to by the new operator either")
}

// versionsOf returns the versions of what makes up the pool's runtime and data.
func versionsOf(t *testing.T, pool *v1alpha1.SubPool) map[string]string {
	t.Helper()
	versions := map[string]string{}
	for _, object := range []client.Object{
		namespaceOf(pool),
		&appsv1.StatefulSet{ObjectMeta: in(pool, "runtime")},
		&corev1.Pod{ObjectMeta: in(pool, "runtime-0")},
		&corev1.Secret{ObjectMeta: in(pool, "subpool-credentials")},
		&corev1.PersistentVolumeClaim{ObjectMeta: in(pool, "data-runtime-0")},
	} {
		cluster.Get(t, object)
		versions[fmt.Sprintf("%T", object)] = string(object.GetUID()) + " " + object.GetResourceVersion()
	}
	return versions
}

// undeploy does what the manual says, on this lab.
func undeploy(t *testing.T) {
	t.Helper()
	kubectl := lab.KubectlCommand(t.Context())
	cmd := exec.CommandContext(t.Context(), "make", "-C", "../..", "undeploy", "KUBECTL="+strings.Join(kubectl.Args, " "))
	// This make has nothing to do with one that may have started the tests.
	cmd.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// DEL-02: whoever deletes the definition of SubPools deletes all pools. The operator finishes that, outlives it, and works
// on without a restart when the definition is back.
func TestDEL02DefinitionDeleted(t *testing.T) {
	pools := []*v1alpha1.SubPool{createReady(t, "first"), createReady(t, "second")}
	deleteDefinition(t)
	for _, pool := range pools {
		awaitGone(t, longBudget, namespaceOf(pool))
	}
	awaitNoDefinition(t)
	require.NoError(t, operator.Readyz(t.Context()))

	require.NoError(t, lab.Install(t.Context()))
	again := newPool("again")
	cluster.Create(t, again)
	awaitReady(t, again, longBudget)
	select {
	case <-operator.Exited:
		t.Fatal("the operator ended")
	default:
	}
}

// DEL-02: without an operator nothing is lost yet when the definition was deleted. Pools can be saved then, as
// docs/lifecycle.md tells; those that are not saved go when an operator is back.
func TestDEL02DefinitionDeletedWithoutOperator(t *testing.T) {
	saved, doomed := createReady(t, "saved"), createReady(t, "doomed")
	kept, keys := versionsOf(t, saved), keysOf(t, saved)
	stopOperator(t)
	deleteDefinition(t)
	harness.Eventually(t, budget, func(c *assert.CollectT) {
		for _, pool := range []*v1alpha1.SubPool{saved, doomed} {
			cluster.Get(c, pool)
			assert.NotNil(c, pool.DeletionTimestamp)
		}
	})
	assert.Equal(t, kept, versionsOf(t, saved), "it runs on")

	disown(t, namespaceOf(saved))
	disown(t, &corev1.Secret{ObjectMeta: in(saved, "subpool-credentials")})
	startOperator(t)
	awaitGone(t, longBudget, namespaceOf(doomed))
	awaitNoDefinition(t)
	require.NoError(t, lab.Install(t.Context()))

	again := newPool("")
	again.Name = saved.Name
	cluster.Create(t, again)
	cluster.AwaitCondition(t, again, longBudget, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNamespaceConflict)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: in(saved, "data-runtime-0")}
	cluster.Get(t, claim)
	volume := claim.UID
	handOver(t, again, namespaceOf(saved))
	handOver(t, again, &corev1.Secret{ObjectMeta: in(saved, "subpool-credentials")})
	awaitReady(t, again, longBudget)
	cluster.Get(t, claim)
	assert.Equal(t, volume, claim.UID)
	assert.Equal(t, keys, keysOf(t, again))
}

// keysOf returns the keys of the pool. None may become part of a test's output.
func keysOf(t *testing.T, pool *v1alpha1.SubPool) map[string][]byte {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: in(pool, "subpool-credentials")}
	cluster.Get(t, secret)
	require.NotEmpty(t, secret.Data)
	return secret.Data
}

// disown takes the owner off an object.
func disown(t *testing.T, object client.Object) {
	t.Helper()
	setOwners(t, object, nil)
}

// handOver makes the pool the owner of an object.
func handOver(t *testing.T, pool *v1alpha1.SubPool, object client.Object) {
	t.Helper()
	setOwners(t, object, []metav1.OwnerReference{{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "SubPool", Name: pool.Name, UID: pool.UID, Controller: ptr.To(true),
	}})
}

func setOwners(t *testing.T, object client.Object, owners []metav1.OwnerReference) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": owners}})
	require.NoError(t, err)
	require.NoError(t, cluster.Admin.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, patch)))
}
