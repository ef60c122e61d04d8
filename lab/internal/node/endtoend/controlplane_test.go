//go:build lab

package endtoend

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

func TestControlPlaneOnly(t *testing.T) {
	l := newLab(t)
	l.mustRun("build", "kubernetes")
	before := hostState(t)
	began := time.Now()
	l.must("up", "--control-plane-only")
	took := time.Since(began)
	t.Logf("from nothing to a ready control plane: %s", took.Round(100*time.Millisecond))
	require.Less(t, took, 30*time.Second)
	require.Equal(t, before, hostState(t), "the host is as it was")

	// Objects that three different controllers have to act on.
	l.kubectl("create", "namespace", "work")
	l.kubectl("create", "quota", "--namespace=work", "pods", "--hard=pods=5")
	l.kubectl("create", "deployment", "--namespace=work", "web", "--image=registry.example.invalid/web:v1", "--replicas=2")
	l.kubectl("wait", "--namespace=work", "quota/pods", "--for=jsonpath={.status.used.pods}=2", "--timeout="+patience.String())
	l.kubectl("delete", "deployment", "--namespace=work", "web")
	l.kubectl("wait", "--namespace=work", "pod", "--for=delete", "--all", "--timeout="+patience.String())
	l.kubectl("delete", "namespace", "work", "--timeout="+patience.String())

	_, err := l.try("load", "testdata/web.yaml")
	require.ErrorContains(t, err, "no node")
	l.must("down")
	l.requireGone()
}

func TestControlPlaneEndsWithItsSupervisor(t *testing.T) {
	l := newLab(t)
	l.must("up", "--control-plane-only")
	require.Greater(t, len(l.processes()), 3)
	kill(t, l.supervisor(), syscall.SIGKILL)
	require.Eventually(t, func() bool { return len(l.processes()) == 0 }, 20*time.Second, interval)
	l.must("down")
	l.requireGone()
}

// An ordinary user runs a control plane from ready-made programs.
func TestControlPlaneNeedsNoRoot(t *testing.T) {
	const nobody = 65534
	l := newLab(t)
	assets, home := t.TempDir(), t.TempDir()
	// The folder around a test's temporary folders is closed to other users.
	require.NoError(t, os.Chmod(filepath.Dir(home), 0o755))
	copyAssets(t, l, assets)
	require.NoError(t, os.Chown(home, nobody, nobody))
	l.state = home
	l.env = []string{"PATH=/usr/bin:/bin", "HOME=" + home, "XDG_STATE_HOME=" + home, "KUBEBUILDER_ASSETS=" + assets}

	asNobody := func(verb string, args ...string) (string, error) {
		cmd := l.command(verb, args...)
		cmd.Dir = home
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		output, err := cmd.CombinedOutput()
		return string(output), err
	}
	output, err := asNobody("up", "--control-plane-only")
	require.NoError(t, err, output)
	output, err = asNobody("kubectl", "--", "get", "namespace", "default")
	require.NoError(t, err, output)
	output, err = asNobody("down")
	require.NoError(t, err, output)
	l.requireGone()

	output, err = asNobody("up")
	require.Error(t, err)
	require.Contains(t, output, "needs root")
	l.requireGone()
}

// copyAssets puts the lab's own programs of a control plane into a folder that every user may read.
func copyAssets(t *testing.T, l *lab, folder string) {
	t.Helper()
	for line := range strings.Lines(l.mustRun("build", "kubernetes")) {
		name, path, found := strings.Cut(strings.TrimSpace(line), "\t")
		if !found || (name != "etcd" && name != "kube-apiserver" && name != "kube-controller-manager" && name != "kubectl") {
			continue
		}
		source, err := os.Open(path)
		require.NoError(t, err)
		target, err := os.OpenFile(filepath.Join(folder, name), os.O_CREATE|os.O_WRONLY, 0o755)
		require.NoError(t, err)
		_, err = io.Copy(target, source)
		require.NoError(t, err)
		require.NoError(t, target.Close())
		require.NoError(t, source.Close())
	}
}

func TestBrokenAssetsAreNamed(t *testing.T) {
	l := newLab(t)
	l.env = append(l.env, "KUBEBUILDER_ASSETS="+t.TempDir())
	_, err := l.try("up", "--control-plane-only")
	require.ErrorContains(t, err, "has no etcd")
	l.requireGone()
}

func TestLabsRunSideBySide(t *testing.T) {
	first, second, third := newLab(t), newLab(t), newLab(t)
	var ups errgroup.Group
	for l, arguments := range map[*lab][]string{first: nil, second: nil, third: {"--control-plane-only"}} {
		ups.Go(func() error {
			_, err := l.try("up", arguments...)
			return err
		})
	}
	require.NoError(t, ups.Wait())
	first.must("down")
	first.requireGone()
	second.kubectl("wait", "--for=condition=Ready", "node/lab-node", "--timeout="+patience.String())
	require.Contains(t, second.must("status"), "lab-node: Ready")
	third.must("status")
	second.must("down")
	third.must("down")
	second.requireGone()
	third.requireGone()
}
