package site

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCheckEnvironment(t *testing.T) {
	for _, name := range tuning {
		t.Setenv(name, "") // to have it as it was after the test
		require.NoError(t, os.Unsetenv(name))
	}
	require.NoError(t, CheckEnvironment())
	t.Setenv("GOMEMLIMIT", "100MiB")
	require.ErrorContains(t, CheckEnvironment(), "unset GOMEMLIMIT")
}

func TestWithFiles(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	failure := errors.New("failure")
	var left string
	err := WithFiles(func() error {
		left = filepath.Join(os.TempDir(), "left")
		return errors.Join(failure, os.WriteFile(left, nil, 0o600))
	})
	require.ErrorIs(t, err, failure)
	assert.NoFileExists(t, left)
}
