package cgroup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseMounts(t *testing.T) {
	for name, test := range map[string]struct {
		mountinfo string
		want      []Hierarchy
	}{
		"version 2": {
			"24 1 8:1 / / rw - ext4 /dev/sda1 rw\n" +
				"30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
			[]Hierarchy{{Mount: "/sys/fs/cgroup", Unified: true}},
		},
		"version 1 with an empty version 2 beside it": {
			"30 24 0:25 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n" +
				"31 30 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
				"32 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
				"33 30 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
			[]Hierarchy{
				{Mount: "/sys/fs/cgroup/cpu,cpuacct"}, {Mount: "/sys/fs/cgroup/memory"},
				{Mount: "/sys/fs/cgroup/unified", Unified: true},
			},
		},
		"the same hierarchy twice": {
			"31 30 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n" +
				"99 90 0:26 / /somewhere/else rw - cgroup cgroup rw,cpu\n",
			[]Hierarchy{{Mount: "/sys/fs/cgroup/cpu"}},
		},
		"none": {"24 1 8:1 / / rw - ext4 /dev/sda1 rw\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseMounts(strings.NewReader(test.mountinfo))
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
	_, err := parseMounts(strings.NewReader("nonsense\n"))
	require.ErrorContains(t, err, "nonsense")
}

// A folder with files stands in for a hierarchy: what is written where can be told from it.
func fakeHierarchy(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	}
	return root
}

func read(t *testing.T, elem ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(elem...))
	require.NoError(t, err)
	return string(data)
}

func TestVersion1CPUSetsAreInherited(t *testing.T) {
	root := fakeHierarchy(t, map[string]string{
		"cpuset.cpus": "0-1\n", "cpuset.mems": "0\n",
		"lab/cpuset.cpus": "", "lab/cpuset.mems": "", "lab/system/cpuset.cpus": "", "lab/system/cpuset.mems": "",
	})
	lab, system := filepath.Join(root, "lab"), filepath.Join(root, "lab", "system")
	require.NoError(t, inheritCPUSet(root, lab, system))
	for _, folder := range []string{lab, system} {
		require.Equal(t, "0-1\n", read(t, folder, "cpuset.cpus"))
		require.Equal(t, "0\n", read(t, folder, "cpuset.mems"))
	}
	require.NoError(t, inheritCPUSet(t.TempDir(), lab, system), "a hierarchy without cpusets")
}

func TestVersion2ControllersAreHandedDown(t *testing.T) {
	root := fakeHierarchy(t, map[string]string{
		"cgroup.controllers": "memory\n", "cgroup.subtree_control": "", "lab/cgroup.subtree_control": "",
	})
	require.NoError(t, handDownControllers(root, filepath.Join(root, "lab")))
	require.Equal(t, "+memory", read(t, root, "cgroup.subtree_control"))
	require.Equal(t, "+memory", read(t, root, "lab", "cgroup.subtree_control"))
}

func TestRemoveTakesTheWholeTreeAndNothingElse(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "subrelay-lab-one/kubepods/burstable/pod1"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "subrelay-lab-other"), 0o755))
	tree := Tree{hierarchies: []Hierarchy{{Mount: root}, {Mount: t.TempDir()}}, path: "/subrelay-lab-one"}
	require.True(t, tree.Exists())
	require.NoError(t, tree.Remove(t.Context(), time.Second))
	require.False(t, tree.Exists())
	require.DirExists(t, filepath.Join(root, "subrelay-lab-other"))
	require.NoError(t, tree.Remove(t.Context(), time.Second), "what is not there needs no removing")
}
