//go:build integration

package integration

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/internal/operatorconfig"
)

// ROL-05: an operator configuration that is replaced under its own name, which its immutability asks for a detour to do, is
// what every replica acts on from then on: the one that acts, and the one that takes over. The status says so by its hash.
func TestROL05ReplacedUnderTheSameName(t *testing.T) {
	shipped := operatorConfigMap(t)
	old := shipped.Data[configKey]
	fresh := strings.Replace(old, "storage: 100Gi", "storage: 50Gi", 1)
	require.NotEqual(t, old, fresh)
	t.Cleanup(func() { putConfig(t, shipped.Data) })
	pool := createReady(t, "judged")
	assert.Equal(t, operatorconfig.Hash([]byte(old)), pool.Status.OperatorConfiguration.Hash)
	leader := cluster.operator
	standby := startStandby(t, leader)

	edited := shipped.DeepCopy()
	edited.Data[configKey] = fresh
	err := cluster.Admin.Update(t.Context(), edited)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.ErrorContains(t, err, "immutable")
	putConfig(t, edited.Data)
	awaitJudgedBy(t, pool, fresh)
	awaitOperator(t)

	from := markAudit(t)
	require.NoError(t, leader.Stop())
	late := createReady(t, "late")
	require.NotEmpty(t, writesOf(t, from, standby), "the other replica acts now")
	awaitJudgedBy(t, late, fresh)
	assert.Empty(t, operatorWrites(t, from, pool.Name), "it is content with what the first one made")

	putConfig(t, shipped.Data)
	for _, each := range []*v1alpha1.SubPool{pool, late} {
		awaitJudgedBy(t, each, old)
	}
}

// awaitJudgedBy waits until the pool's status and its quota follow the operator configuration with this content.
func awaitJudgedBy(t *testing.T, pool *v1alpha1.SubPool, document string) {
	t.Helper()
	config, err := operatorconfig.Parse([]byte(document))
	require.NoError(t, err)
	quota := &corev1.ResourceQuota{ObjectMeta: in(pool, "pool")}
	eventually(t, healBudget, func(c *assert.CollectT) {
		get(c, pool)
		assert.Equal(c, operatorConfig, pool.Status.OperatorConfiguration.Name)
		assert.Equal(c, operatorconfig.Hash([]byte(document)), pool.Status.OperatorConfiguration.Hash)
		get(c, quota)
		storage := quota.Spec.Hard[corev1.ResourceRequestsStorage]
		assert.True(c, config.MaxPerPool.Storage.Equal(storage), storage.String())
	})
}
