package objects

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/example-org/subrelay-operator/internal/operatorconfig"
	"github.com/example-org/subrelay-operator/test/harness"
)

func shippedBlueprint(t *testing.T) *Blueprint {
	document, err := os.ReadFile("../../../../config/default/operator-config.yaml")
	require.NoError(t, err)
	configMap := &corev1.ConfigMap{}
	require.NoError(t, yaml.UnmarshalStrict(document, configMap))
	blueprint, err := NewBlueprint(configMap.Data[operatorconfig.Key])
	require.NoError(t, err)
	return blueprint
}

// The operator's objects are what tests expect of a pool, each once, and nothing else.
func TestPool(t *testing.T) {
	parts, err := shippedBlueprint(t).Pool("one")
	require.NoError(t, err)
	assert.Equal(t, "Namespace", parts[0].GetKind(), "the first object")
	found := map[string]bool{}
	script := ""
	for _, part := range parts {
		if part.GetKind() == "ConfigMap" {
			script = part.GetName()
		}
		assert.Empty(t, part.GetOwnerReferences(), part.GetKind())
		found[part.GetKind()+" "+part.GetNamespace()+"/"+part.GetName()] = true
	}
	expected := harness.PoolObjects("one", script)
	assert.Len(t, parts, len(expected))
	assert.Len(t, found, len(expected))
	assert.Contains(t, found, "Secret subpool-one/subpool-credentials")
	assert.Contains(t, found, "StatefulSet subpool-one/runtime")
}
