//go:build e2e

package e2e

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

// The example that the documents show, at its full size, runs on an empty node, and a further pool beside it. Other
// tests wait until this one has measured its times.
func TestDemoPool(t *testing.T) {
	id := createReady(t, examplePool(t))
	namespace := namespaceOf(id)

	t.Run("objects", func(t *testing.T) {
		pool := readPool(t, id)
		for _, object := range poolObjects(t, id) {
			require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(object), object))
			assert.True(t, metav1.IsControlledBy(object, pool), "%T %s is owned by the SubPool", object, object.GetName())
		}
		assert.Equal(t, namespace, pool.Status.Namespace)
		exposure := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionExposureReady)
		require.NotNil(t, exposure)
		assert.Equal(t, v1alpha1.ReasonClusterInternal, exposure.Reason)
		require.Len(t, pool.Status.Images, 2)
		for _, image := range pool.Status.Images {
			assert.Contains(t, image.ImageID, "sha256:", "image that %s runs", image.Container)
		}
	})
	t.Run("volume", func(t *testing.T) {
		claim := read[corev1.PersistentVolumeClaim](t, namespace, claimName)
		assert.Equal(t, corev1.ClaimBound, claim.Status.Phase)
		assert.Equal(t, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, claim.Spec.AccessModes)
		assert.Equal(t, "20Gi", claim.Status.Capacity.Storage().String())
	})
	t.Run("quota", func(t *testing.T) {
		quota := read[corev1.ResourceQuota](t, namespace, "pool")
		used := quota.Status.Used[corev1.ResourceRequestsCPU]
		assert.Equal(t, "2400m", used.String(), "both containers are counted")
	})
	t.Run("restricted", func(t *testing.T) { requireRestricted(t, namespace) })
	for _, container := range []string{cpaName, managerName} {
		t.Run(container, func(t *testing.T) { requireConfined(t, id, container) })
	}
	t.Run("further pool", func(t *testing.T) {
		begin := time.Now()
		createReady(t, newPool("further"))
		t.Logf("a further pool is ready after %.1f s", time.Since(begin).Seconds())
	})
}

// examplePool is the shipped example with images that the node has.
func examplePool(t *testing.T) *v1alpha1.SubPool {
	t.Helper()
	content, err := os.ReadFile("../../examples/subpool-internal.yaml")
	require.NoError(t, err)
	pool := &v1alpha1.SubPool{}
	require.NoError(t, yaml.UnmarshalStrict(content, pool))
	pool.Spec.CPA.Image, pool.Spec.CPAManager.Image = cpaImage, managerImage
	return pool
}

// poolObjects are all objects that the operator itself keeps for a pool.
func poolObjects(t *testing.T, poolID string) []client.Object {
	t.Helper()
	return harness.PoolObjects(poolID, scriptName(t, poolID))
}

// scriptName is the name of the ConfigMap with the init script, which depends on its content.
func scriptName(t *testing.T, poolID string) string {
	t.Helper()
	for _, volume := range readWorkload(t, poolID).Spec.Template.Spec.Volumes {
		if volume.ConfigMap != nil {
			return volume.ConfigMap.Name
		}
	}
	require.Fail(t, "the Pod template mounts no ConfigMap")
	return ""
}

// requireRestricted: the namespace admits no Pod that could harm the node. The control case is the same Pod elsewhere.
func requireRestricted(t *testing.T, namespace string) {
	t.Helper()
	small := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("10m"),
		corev1.ResourceMemory: resource.MustParse("16Mi"),
	}
	privileged := func(namespace string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "privileged"},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "shell", Image: cpaImage,
				Resources:       corev1.ResourceRequirements{Requests: small, Limits: small},
				SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)},
			}}},
		}
	}
	err := admin.Create(t.Context(), privileged(namespace), client.DryRunAll)
	require.True(t, apierrors.IsForbidden(err), "a privileged Pod should be refused: %v", err)
	require.ErrorContains(t, err, `violates PodSecurity "restricted`)
	assert.NoError(t, admin.Create(t.Context(), privileged(metav1.NamespaceDefault), client.DryRunAll), "control case")
}

// requireConfined: what a process in the container can and cannot do, seen from inside.
func requireConfined(t *testing.T, id, container string) {
	t.Helper()
	assert.Equal(t, "65532 65532", inContainer(t, id, container, `echo "$(id -u) $(id -g)"`))
	assert.Contains(t, inContainer(t, id, container, "touch /escaped 2>&1 || true"), "Read-only file system")
	assert.Equal(t, "none", inContainer(t, id, container, "ls -d /var/run/secrets/kubernetes.io 2>/dev/null || echo none"),
		"a token of the ServiceAccount")

	var names []string
	for entry := range strings.SplitSeq(inContainer(t, id, container, `tr '\0' '\n' </proc/1/environ`), "\n") {
		name, _, _ := strings.Cut(entry, "=")
		names = append(names, name)
	}
	assert.Contains(t, names, "TZ", "control case: this is the application's environment")
	// The manager would take the variables of a Service with the name cpa for its own settings.
	for _, name := range []string{"CPA_SERVICE_HOST", "CPA_PORT", "CPA_MANAGER_SERVICE_HOST", "CPA_MANAGER_PORT"} {
		assert.NotContains(t, names, name)
	}
}
