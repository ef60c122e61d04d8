package peers

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestKroIsPinned(t *testing.T) {
	t.Chdir("../..")
	version, err := goCommand(t.Context(), "list", "-m", "-f", "{{.Version}}", kroModule)
	require.NoError(t, err)
	assert.Regexp(t, `^v[0-9]+\.[0-9]+\.[0-9]+`, version)
}

func TestKroWithoutModules(t *testing.T) {
	t.Chdir("../..")
	_, err := goCommand(t.Context(), "list", "-m", "registry.example.invalid/none")
	require.ErrorContains(t, err, "not a known dependency")
	require.ErrorContains(t, err, "go -C test/scale/peers-modules/kro mod download")
}
