//go:build integration

package integration

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The one file that a release hands out is what deploy/operator has installed here: the API server would take every object
// of it and change nothing.
func TestInstallManifest(t *testing.T) {
	content, err := os.ReadFile("../../dist/install.yaml")
	require.NoError(t, err, "make it with: make dist/install.yaml")
	objects := decodeAll(t, content)
	kinds := map[string]bool{}
	for _, object := range objects {
		kinds[object.GetKind()] = true
		name := object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
		eventually(t, readyBudget, func(c *assert.CollectT) {
			live := &unstructured.Unstructured{}
			live.SetGroupVersionKind(object.GroupVersionKind())
			require.NoError(c, cluster.Admin.Get(t.Context(), client.ObjectKeyFromObject(object), live))
			applied := object.DeepCopy()
			require.NoError(c, cluster.Admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(applied),
				client.FieldOwner("kubectl"), client.ForceOwnership, client.DryRunAll), name)
			live.SetManagedFields(nil)
			applied.SetManagedFields(nil)
			assert.Equal(c, live.Object, applied.Object, name)
		})
	}
	for _, kind := range []string{"Namespace", "CustomResourceDefinition", "ClusterRole", "ConfigMap", "Deployment"} {
		assert.Contains(t, kinds, kind)
	}
	first := objects[0]
	assert.Equal(t, metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		metav1.TypeMeta{APIVersion: first.GetAPIVersion(), Kind: first.GetKind()},
		"what the other objects are in must come before them")
}

func decodeAll(t *testing.T, content []byte) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), len(content)); ; {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			require.NotEmpty(t, objects)
			return objects
		}
		require.NoError(t, err)
		objects = append(objects, object)
	}
}
