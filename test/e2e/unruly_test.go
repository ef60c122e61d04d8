//go:build e2e

package e2e

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

// Images of applications that do what a test orders, see testdata/unruly.sh.
const (
	unrulyCPA     = "registry.example.invalid/subrelay-e2e/cpa:unruly"
	unrulyManager = "registry.example.invalid/subrelay-e2e/cpa-manager:unruly"
)

var unrulyImages sync.Mutex

// newUnrulyPool returns a pool whose applications obey order.
func newUnrulyPool(t *testing.T, word string) *v1alpha1.SubPool {
	t.Helper()
	loadUnrulyImages(t)
	return harness.NewPool(word, unrulyCPA, unrulyManager, harness.Resources("50m", "64Mi", "1", "256Mi"))
}

// loadUnrulyImages may be called again: the node keeps one copy of what is the same.
func loadUnrulyImages(t *testing.T) {
	t.Helper()
	unrulyImages.Lock()
	defer unrulyImages.Unlock()
	for _, image := range []struct {
		tag, program, workdir, path string
	}{
		{unrulyCPA, "cpa", "/CLIProxyAPI", "/CLIProxyAPI/CLIProxyAPI"},
		{unrulyManager, "cpa-manager", "/app", "/usr/local/bin/cpa-manager-plus"},
	} {
		archive := filepath.Join(t.TempDir(), image.program+".tar")
		require.NoError(t, lab.MakeImage(t.Context(), "--tag="+image.tag, "--output="+archive, "--busybox",
			"--workdir="+image.workdir, "--entrypoint="+image.path, "--env=PATH=/usr/local/bin:/bin",
			"--file=testdata/unruly.sh:"+image.path+":0755",
			"--file=../../bin/images/"+image.program+":"+image.path+".real:0755"))
		require.NoError(t, lab.Load(t.Context(), archive))
	}
}

// ordersFile is where the applications of an unruly pool look for orders.
var ordersFile = map[string]string{cpaName: "/cpa/orders", managerName: "/data/orders"}

// order ends an application of an unruly pool and returns when that has happened. Before the application comes again, the
// container does what the script says. The script has no single quotes.
func order(t *testing.T, poolID, container, script string) {
	t.Helper()
	before := containerStatus(t, readPod(t, poolID), container)
	inContainer(t, poolID, container, "echo '"+script+"' >"+ordersFile[container])
	end(t, poolID, container)
	eventually(t, truthBudget, func(c *assert.CollectT) {
		assert.NotEqual(c, before.State, containerStatus(c, readPod(c, poolID), container).State)
	})
}

// containerStatus is what the node says of a container.
func containerStatus(t require.TestingT, pod *corev1.Pod, name string) corev1.ContainerStatus {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == name {
			return status
		}
	}
	require.Fail(t, "the node says nothing of the container", name)
	return corev1.ContainerStatus{}
}
