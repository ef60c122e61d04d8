//go:build integration

package integration

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

const sizeImmutable = "storage.size is immutable: " +
	"create a pool with the size you need, move the data there, then delete this one"

// sizeChanges are the ways in which users change a SubPool.
var sizeChanges = map[string]func(t *testing.T, pool *v1alpha1.SubPool, size any) error{
	"patch": func(t *testing.T, pool *v1alpha1.SubPool, size any) error {
		t.Helper()
		patch, err := runtime.Encode(unstructured.UnstructuredJSONScheme, sizeOnly(pool, size))
		require.NoError(t, err)
		return cluster.Admin.Patch(t.Context(), pool.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
	},
	"replace": func(t *testing.T, pool *v1alpha1.SubPool, size any) error {
		t.Helper()
		object := sizeOnly(pool, nil)
		get(t, object)
		require.NoError(t, unstructured.SetNestedField(object.Object, size, "spec", "storage", "size"))
		return cluster.Admin.Update(t.Context(), object)
	},
	"apply": func(t *testing.T, pool *v1alpha1.SubPool, size any) error {
		t.Helper()
		return cluster.Admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(sizeOnly(pool, size)),
			client.FieldOwner("somebody"), client.ForceOwnership)
	},
}

func sizeOnly(pool *v1alpha1.SubPool, size any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"storage": map[string]any{"size": size}},
	}}
	object.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("SubPool"))
	object.SetName(pool.Name)
	return object
}

// STO-02: the size cannot change, but it may be spelled in another way; whatever was tried, an update of the image
// still arrives.
func TestSTO02SizeIsImmutable(t *testing.T) {
	t.Parallel()
	for name, changeSize := range sizeChanges {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := createReady(t, "size")
			for _, size := range []string{"2Gi", "512Mi"} {
				require.ErrorContains(t, changeSize(t, pool, size), sizeImmutable)
			}
			for _, size := range []any{"1024Mi", int64(1 << 30), "1Gi"} {
				require.NoError(t, changeSize(t, pool, size), "%v is the same size", size)
				awaitReady(t, pool)
			}
			assert.True(t, pool.Spec.Storage.Size.Equal(resource.MustParse("1Gi")))

			from := markAudit(t)
			change(t, pool, func(spec *v1alpha1.SubPoolSpec) { spec.CPA.Image = "registry.example.invalid/subrelay/cpa:v2" })
			workload := &appsv1.StatefulSet{ObjectMeta: in(pool, "runtime")}
			eventually(t, readyBudget, func(c *assert.CollectT) {
				get(c, workload)
				assert.Equal(c, "registry.example.invalid/subrelay/cpa:v2", workload.Spec.Template.Spec.Containers[0].Image)
			})
			awaitReady(t, pool)
			for _, c := range operatorWrites(t, from, pool.Name) {
				assert.True(t, c.OK(), "%s", c)
			}
		})
	}
}

// A pool whose size was spelled as a number from the start, or later, is not written to again and again.
func TestSTO02SpellingsSettle(t *testing.T) {
	t.Parallel()
	pool := createReady(t, "spelling")
	require.NoError(t, sizeChanges["patch"](t, pool, int64(1<<30)))
	awaitReady(t, pool)
	awaitOperator(t)

	from := markAudit(t)
	workload := &appsv1.StatefulSet{ObjectMeta: in(pool, "runtime")}
	get(t, workload)
	base := workload.DeepCopy()
	workload.Labels["example.org/team"] = "a"
	require.NoError(t, cluster.Admin.Patch(t.Context(), workload, client.MergeFrom(base)))
	awaitOperator(t)
	assert.Empty(t, operatorWrites(t, from, pool.Name), "the operator looks at the pool and finds nothing to do")
}

// STO-02: somebody enlarges the claim by hand, as its StorageClass allows. The pool stays Ready, the operator tries no write,
// and updates still arrive.
func TestSTO02ClaimEnlargedByHand(t *testing.T) {
	t.Parallel()
	pool := createReady(t, "enlarged")
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: in(pool, "data-runtime-0")}
	bindExpandable(t, pool, claim)
	from := markAudit(t)
	base := claim.DeepCopy()
	claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
	require.NoError(t, cluster.Admin.Patch(t.Context(), claim, client.MergeFrom(base)))
	awaitOperator(t)
	assert.Empty(t, operatorWrites(t, from, pool.Name))
	awaitReady(t, pool)

	change(t, pool, func(spec *v1alpha1.SubPoolSpec) { spec.CPA.Image = "registry.example.invalid/subrelay/cpa:v2" })
	awaitReady(t, pool)
	assert.Equal(t, "registry.example.invalid/subrelay/cpa:v2"+imageDigest, pool.Status.Images[0].ImageID)
	for _, c := range operatorWrites(t, from, pool.Name) {
		assert.True(t, c.OK(), "%s", c)
	}
	get(t, claim)
	assert.Equal(t, "2Gi", claim.Spec.Resources.Requests.Storage().String(), "it stays as it was made")
}

// bindExpandable gives the claim, which has neither in this cluster, a StorageClass that allows to enlarge it and a volume.
func bindExpandable(t *testing.T, pool *v1alpha1.SubPool, claim *corev1.PersistentVolumeClaim) {
	t.Helper()
	name := "expandable-" + pool.Name
	create(t, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: "example.org/none", AllowVolumeExpansion: ptr.To(true),
	})
	get(t, claim)
	base := claim.DeepCopy()
	claim.Spec.StorageClassName = &name
	require.NoError(t, cluster.Admin.Patch(t.Context(), claim, client.MergeFrom(base)))
	create(t, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName:              name,
			AccessModes:                   claim.Spec.AccessModes,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: pool.Spec.Storage.Size},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: "/nowhere"},
			},
		},
	})
	eventually(t, readyBudget, func(c *assert.CollectT) {
		get(c, claim)
		assert.Equal(c, corev1.ClaimBound, claim.Status.Phase)
	})
}
