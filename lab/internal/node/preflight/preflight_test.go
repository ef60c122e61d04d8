package preflight

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDiskOfAFolderThatIsYetToBeMade(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "not", "there")
	require.NoError(t, checkDisk("state", folder, 1))
	err := checkDisk("state", folder, math.MaxUint64)
	require.ErrorContains(t, err, folder)
	require.ErrorContains(t, err, "GiB free")
}

func TestMachineOfTheTests(t *testing.T) {
	require.NoError(t, checkNamespaces())
	require.NoError(t, checkMemory())
}
