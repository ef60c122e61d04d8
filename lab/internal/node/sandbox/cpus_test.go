package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCPUTreeCountsAndSaysNoMore(t *testing.T) {
	tree := t.TempDir()
	require.NoError(t, writeCPUTree(tree, 4))
	cpus, err := filepath.Glob(filepath.Join(tree, "cpus", "cpu*[0-9]"))
	require.NoError(t, err)
	require.Len(t, cpus, 4)
	online, err := os.ReadFile(filepath.Join(tree, "cpus", "online"))
	require.NoError(t, err)
	require.Equal(t, "0-3\n", string(online))
	nodes, err := os.ReadDir(filepath.Join(tree, "nodes"))
	require.NoError(t, err)
	require.Empty(t, nodes)
}
