package host

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/example-org/subrelay-operator/lab/internal/node/control"
	"github.com/example-org/subrelay-operator/lab/internal/node/state"
	"github.com/example-org/subrelay-operator/lab/internal/progress"
)

func folderWith(t *testing.T, files ...string) string {
	t.Helper()
	folder := t.TempDir()
	for _, file := range files {
		require.NoError(t, os.WriteFile(filepath.Join(folder, file), nil, 0o755))
	}
	return folder
}

func TestReadyMadePrograms(t *testing.T) {
	components, ready, err := readyMade("")
	require.NoError(t, err)
	require.Equal(t, controlPlaneComponents, components)
	require.Empty(t, ready)

	all := folderWith(t, "etcd", "kube-apiserver", "kube-controller-manager", "kubectl")
	components, ready, err = readyMade(all)
	require.NoError(t, err)
	require.Empty(t, components)
	require.Equal(t, filepath.Join(all, "etcd"), ready["etcd"])

	some := folderWith(t, "etcd", "kube-apiserver", "kubectl")
	components, ready, err = readyMade(some)
	require.NoError(t, err)
	require.Equal(t, controlPlaneComponents, components)
	require.Len(t, ready, 3)

	_, _, err = readyMade(folderWith(t, "etcd"))
	require.ErrorContains(t, err, "has no kube-apiserver")
}

func TestWereBuilt(t *testing.T) {
	cache := t.TempDir()
	require.True(t, wereBuilt(cache, nil))
	require.False(t, wereBuilt(cache, []string{"etcd"}))
	require.NoError(t, os.MkdirAll(filepath.Join(cache, "components", "etcd", ".unfinished-1"), 0o755))
	require.False(t, wereBuilt(cache, []string{"etcd"}))
	require.NoError(t, os.MkdirAll(filepath.Join(cache, "components", "etcd", "v3-abc"), 0o755))
	require.True(t, wereBuilt(cache, []string{"etcd"}))
	require.False(t, wereBuilt(cache, []string{"etcd", "runc"}))
}

// recorder notes which steps begin and how they end.
type recorder []string

func (r *recorder) Step(name string) func(error) {
	*r = append(*r, name+" began")
	return func(err error) {
		if err != nil {
			*r = append(*r, name+" failed")
			return
		}
		*r = append(*r, name+" ended")
	}
}

func TestStepsAreShownOnce(t *testing.T) {
	var shown recorder
	steps := &shownSteps{report: &shown}
	running := control.Step{Name: "a"}
	ended := control.Step{Name: "a", Took: time.Second, Done: true}
	steps.update(control.Status{Steps: []control.Step{running}})
	steps.update(control.Status{Steps: []control.Step{running}})
	steps.update(control.Status{Steps: []control.Step{ended, {Name: "b"}, {Name: "c"}}})
	steps.update(control.Status{Steps: []control.Step{ended, {Name: "b", Took: time.Second}, {Name: "c"}}, Failure: "b: broken"})
	steps.abandon()
	require.Equal(t, recorder{"a began", "a ended", "b began", "c began", "b failed", "c failed"}, shown)
}

func TestDownOfNothing(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	folder, err := state.Open("never-started")
	require.NoError(t, err)
	require.NoError(t, Down(t.Context(), folder, progress.Discard))
	require.False(t, folder.Exists())
	_, _, err = Status(t.Context(), folder)
	require.ErrorIs(t, err, ErrDown)
	require.ErrorIs(t, Restart(t.Context(), folder, "etcd"), ErrDown)
	_, err = Load(t.Context(), folder, "image.tar")
	require.ErrorIs(t, err, ErrDown)
}

func TestDownClearsWhatADeadLabLeft(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	folder, err := state.Open("dead")
	require.NoError(t, err)
	require.NoError(t, folder.Create())
	require.NoError(t, folder.WriteProcess(state.Process{PID: os.Getpid(), StartTicks: 1}))
	require.NoError(t, os.MkdirAll(folder.Path("var", "lib"), 0o755))
	require.NoError(t, Down(t.Context(), folder, progress.Discard))
	require.False(t, folder.Exists())
}

func TestLastLines(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	require.Equal(t, " without a word", lastLines(log))
	require.NoError(t, os.WriteFile(log, []byte("1\n2\n3\n4\n5\n6\n"), 0o600))
	require.Equal(t, ":\n2\n3\n4\n5\n6", lastLines(log))
}
