package hostpkg

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/example-org/subrelay-operator/lab/internal/progress"
)

// fakeProgram makes PATH consist of the folder of a shell script called name. It returns the folder.
func fakeProgram(t *testing.T, name, script string) string {
	t.Helper()
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+script), 0o755))
	t.Setenv("PATH", folder)
	return folder
}

func TestEnsureDoesNothingWhenAllIsThere(t *testing.T) {
	fakeProgram(t, "dpkg-query", `echo "gcc installed"; echo "ipset installed"`)
	require.NoError(t, Ensure(t.Context(), []string{"ipset", "gcc", "ipset"}, progress.Discard))
}

func TestMissing(t *testing.T) {
	cases := map[string]struct {
		script string
		want   []string
	}{
		"unknown to dpkg":       {`echo "gcc installed"; echo "no packages found matching ipset" >&2; exit 1`, []string{"ipset"}},
		"removed, config stays": {`echo "gcc installed"; echo "ipset config-files"`, []string{"ipset"}},
		"nothing is there":      {`exit 1`, []string{"gcc", "ipset"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			fakeProgram(t, "dpkg-query", c.script)
			missing, err := missingOf(t.Context(), []string{"gcc", "ipset"})
			require.NoError(t, err)
			assert.Equal(t, c.want, missing)
		})
	}
}

func TestEnsureTellsOfABrokenPackageDatabase(t *testing.T) {
	fakeProgram(t, "dpkg-query", `exit 2`)
	require.ErrorContains(t, Ensure(t.Context(), []string{"gcc"}, progress.Discard), "dpkg-query")
}

func TestEnsureNamesThePackagesOnAnotherDistribution(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := Ensure(t.Context(), []string{"ipset", "gcc"}, progress.Discard)
	require.ErrorContains(t, err, "gcc ipset")
}

func TestInstall(t *testing.T) {
	folder := fakeProgram(t, "apt-get", `echo "$DEBIAN_FRONTEND $*" >> "${0%/*}/calls"`)
	require.NoError(t, install(t.Context(), []string{"gcc", "ipset"}))
	calls, err := os.ReadFile(filepath.Join(folder, "calls"))
	require.NoError(t, err)
	assert.Equal(t, "noninteractive update\nnoninteractive install -o DPkg::Lock::Timeout=300 --yes --no-install-recommends --no-remove gcc ipset\n", string(calls))
}

func TestInstallShowsWhatAptGetSays(t *testing.T) {
	fakeProgram(t, "apt-get", `[ "$1" = update ] || { echo "E: Unable to locate package ipset" >&2; exit 100; }`)
	err := install(t.Context(), []string{"ipset"})
	require.ErrorContains(t, err, "Unable to locate package ipset")
	require.ErrorContains(t, err, "apt-get install -o DPkg::Lock::Timeout=300 --yes --no-install-recommends --no-remove ipset")
}

// Labs that start side by side on a new machine install once, and none fails because another one does.
func TestEnsureInstallsOnce(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root installs packages")
	}
	programs := map[string]string{}
	for _, name := range []string{"mkdir", "rmdir"} {
		path, err := exec.LookPath(name)
		require.NoError(t, err)
		programs[name] = path
	}
	folder := fakeProgram(t, "apt-get", `
		case "$1" in
		update) mkdir "${0%/*}/lists.lock" || exit 100 ;;
		install) echo "$*" >> "${0%/*}/calls"; echo "gcc installed" > "${0%/*}/status"; rmdir "${0%/*}/lists.lock" ;;
		esac`)
	for name, path := range programs {
		require.NoError(t, os.Symlink(path, filepath.Join(folder, name)))
	}
	require.NoError(t, os.WriteFile(filepath.Join(folder, "status"), nil, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "dpkg-query"),
		[]byte("#!/bin/sh\nwhile read -r line; do echo \"$line\"; done <\"${0%/*}/status\""), 0o755))

	machines := lockFile
	lockFile = filepath.Join(folder, "lock")
	t.Cleanup(func() { lockFile = machines })
	var group errgroup.Group
	for range 4 {
		group.Go(func() error { return Ensure(t.Context(), []string{"gcc"}, progress.Discard) })
	}
	require.NoError(t, group.Wait())
	calls, err := os.ReadFile(filepath.Join(folder, "calls"))
	require.NoError(t, err)
	assert.Len(t, strings.Split(strings.TrimSpace(string(calls)), "\n"), 1)
}
