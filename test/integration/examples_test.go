//go:build integration

package integration

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// Whoever copies an example gets a SubPool that the API server takes.
func TestExamplesAreAccepted(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../examples/subpool-*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		document, err := os.ReadFile(file)
		require.NoError(t, err)
		pool := &v1alpha1.SubPool{}
		require.NoError(t, yaml.UnmarshalStrict(document, pool), file)
		require.NoError(t, cluster.Admin.Create(t.Context(), pool, client.DryRunAll), file)
	}
}
