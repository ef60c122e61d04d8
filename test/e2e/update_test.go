//go:build e2e

package e2e

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

// A changed image and changed resources each cost one restart.
func TestUpdate(t *testing.T) {
	t.Parallel()
	const nextImage = "registry.example.invalid/subrelay-standin/cpa:next"
	loadCPA(t, nextImage)
	id := createReady(t, newPool("update"))
	before := readPool(t, id).Status.Images

	t.Run("image", func(t *testing.T) {
		pod := replacedOnce(t, id, func(spec *v1alpha1.SubPoolSpec) { spec.CPA.Image = nextImage })
		assert.Equal(t, nextImage, containerOf(t, pod, cpaName).Image)
		after := readPool(t, id).Status.Images
		require.Len(t, after, 2)
		assert.NotEqual(t, before[0], after[0], "image that cpa runs")
		assert.Equal(t, before[1], after[1], "image that cpa-manager runs")
	})
	t.Run("resources", func(t *testing.T) {
		memory := resource.MustParse("96Mi")
		pod := replacedOnce(t, id, func(spec *v1alpha1.SubPoolSpec) { spec.CPAManager.Resources.Requests.Memory = memory })
		assert.True(t, memory.Equal(containerOf(t, pod, managerName).Resources.Requests[corev1.ResourceMemory]))
	})
}

// loadCPA gives the node the stand-in for cpa under another name, and with another digest.
func loadCPA(t *testing.T, image string) {
	t.Helper()
	archive := filepath.Join(t.TempDir(), "cpa.tar")
	require.NoError(t, lab.MakeImage(t.Context(), "--tag="+image, "--output="+archive, "--label=for="+image,
		"--busybox", "--workdir=/CLIProxyAPI", "--file=../../bin/images/cpa:/CLIProxyAPI/CLIProxyAPI:0755"))
	require.NoError(t, lab.Load(t.Context(), archive))
}

// replacedOnce changes the pool, waits until the change has arrived, checks that it took one new Pod and returns that.
func replacedOnce(t *testing.T, id string, edit func(*v1alpha1.SubPoolSpec)) *corev1.Pod {
	t.Helper()
	mark, err := audit.Mark(t.Context())
	require.NoError(t, err)
	before := readPod(t, id)
	change(t, id, edit)
	awaitOtherPod(t, id, before.UID)
	awaitReady(t, id)

	made, err := audit.Calls(t.Context(), mark, func(c harness.Call) bool {
		return c.Verb == "create" && c.OK() && c.ObjectRef.Namespace == namespaceOf(id) &&
			c.ObjectRef.Resource == "pods" && c.ObjectRef.Subresource == ""
	})
	require.NoError(t, err)
	assert.Len(t, made, 1, "Pods that were made")
	pod := readPod(t, id)
	for _, container := range pod.Status.ContainerStatuses {
		assert.Zero(t, container.RestartCount, "restarts of %s", container.Name)
	}
	return pod
}

func containerOf(t *testing.T, pod *corev1.Pod, name string) corev1.Container {
	t.Helper()
	for _, container := range pod.Spec.Containers {
		if container.Name == name {
			return container
		}
	}
	require.Fail(t, "the Pod has no such container", name)
	return corev1.Container{}
}
