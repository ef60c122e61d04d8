//go:build integration

package integration

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

func TestReadyPool(t *testing.T) {
	t.Parallel()
	pool := createReady(t, "ready")

	assert.Equal(t, namespaceOf(pool.Name), pool.Status.Namespace)
	assert.Equal(t, []v1alpha1.RunningImage{
		{Container: "cpa", ImageID: cpaImage + imageDigest},
		{Container: "cpa-manager", ImageID: managerImage + imageDigest},
	}, pool.Status.Images)
	require.NotNil(t, pool.Status.OperatorConfiguration)
	assert.Equal(t, operatorConfig, pool.Status.OperatorConfiguration.Name)
	assert.Empty(t, pool.Status.Hostname)
	for kind, want := range map[string]metav1.ConditionStatus{
		v1alpha1.ConditionWorkloadReady: metav1.ConditionTrue,
		v1alpha1.ConditionProxyReady:    metav1.ConditionTrue,
		v1alpha1.ConditionExposureReady: metav1.ConditionTrue,
		v1alpha1.ConditionSuspended:     metav1.ConditionFalse,
	} {
		condition := meta.FindStatusCondition(pool.Status.Conditions, kind)
		require.NotNil(t, condition, kind)
		assert.Equal(t, want, condition.Status, kind)
		assert.Equal(t, pool.Generation, condition.ObservedGeneration, kind)
	}
	for _, kind := range []string{v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled, v1alpha1.ConditionDeleting} {
		assert.Nil(t, meta.FindStatusCondition(pool.Status.Conditions, kind), kind)
	}
}

// RES-03: what the node says of a container is in the pool's status.
func TestRES03StatusNamesTheContainer(t *testing.T) {
	t.Parallel()
	pool := newPool("broken")
	pool.Spec.CPAManager.Image = "registry.example.invalid/subrelay/cpa-manager:" + brokenTag
	create(t, pool)
	eventually(t, readyBudget, func(c *assert.CollectT) {
		get(c, pool)
		ready := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionReady)
		require.NotNil(c, ready)
		assert.Equal(c, v1alpha1.ReasonImagePullFailed, ready.Reason)
		for _, word := range []string{"cpa-manager", "ImagePullBackOff", string(pool.Spec.CPAManager.Image)} {
			assert.Contains(c, ready.Message, word)
		}
	})
}

// NET-04: when the shared proxy counts as there. Every pool depends on it, so nothing runs in parallel.
func TestNET04ProxyReadiness(t *testing.T) {
	pool := createReady(t, "proxy")
	t.Cleanup(func() {
		putSlices(t, harness.MihomoSlice(harness.ReadyEndpoint()))
		putService(t, harness.MihomoService())
	})
	endpoint := func(conditions discoveryv1.EndpointConditions) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{Addresses: []string{"10.244.0.251"}, Conditions: conditions}
	}
	named := func(name string, slice *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
		slice.Name = name
		return slice
	}
	notReady := endpoint(discoveryv1.EndpointConditions{Ready: ptr.To(false)})
	terminating := endpoint(discoveryv1.EndpointConditions{
		Ready: ptr.To(false), Serving: ptr.To(true), Terminating: ptr.To(true),
	})
	wrongService := harness.MihomoSlice(harness.ReadyEndpoint())
	wrongService.Labels[discoveryv1.LabelServiceName] = "another-proxy"
	wrongPort := harness.MihomoSlice(harness.ReadyEndpoint())
	wrongPort.Ports[0].Port = ptr.To[int32](9999)

	// Two neighbours never have the same outcome, so that each is seen to take effect.
	for _, test := range []struct {
		name   string
		ready  bool
		slices []*discoveryv1.EndpointSlice
	}{
		{"no slice", false, nil},
		{"readiness unset", true, []*discoveryv1.EndpointSlice{harness.MihomoSlice(endpoint(discoveryv1.EndpointConditions{}))}},
		{"no endpoint", false, []*discoveryv1.EndpointSlice{harness.MihomoSlice()}},
		{"ready", true, []*discoveryv1.EndpointSlice{harness.MihomoSlice(harness.ReadyEndpoint())}},
		{"not ready", false, []*discoveryv1.EndpointSlice{harness.MihomoSlice(notReady)}},
		{"one of two slices ready", true, []*discoveryv1.EndpointSlice{
			named("bad", harness.MihomoSlice(notReady)), named("good", harness.MihomoSlice(harness.ReadyEndpoint())),
		}},
		{"terminating but serving", false, []*discoveryv1.EndpointSlice{harness.MihomoSlice(terminating)}},
		{"in doubt again", true, []*discoveryv1.EndpointSlice{harness.MihomoSlice(endpoint(discoveryv1.EndpointConditions{}))}},
		{"other service", false, []*discoveryv1.EndpointSlice{wrongService}},
		{"made anew", true, []*discoveryv1.EndpointSlice{harness.MihomoSlice(harness.ReadyEndpoint())}},
		{"other port", false, []*discoveryv1.EndpointSlice{wrongPort}},
		{"mended", true, []*discoveryv1.EndpointSlice{harness.MihomoSlice(harness.ReadyEndpoint())}},
	} {
		t.Run(test.name, func(t *testing.T) {
			putSlices(t, test.slices...)
			awaitProxy(t, pool, test.ready)
		})
	}
	for _, test := range []struct {
		name string
		edit func(*corev1.Service)
	}{
		{"Service without selector", func(s *corev1.Service) { s.Spec.Selector = nil }},
		{"Service of another port", func(s *corev1.Service) { s.Spec.Ports[0].Port = 1080 }},
		{"Service is a name outside", func(s *corev1.Service) {
			s.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "proxy.example.org"}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			service := harness.MihomoService()
			test.edit(service)
			putService(t, service)
			putSlices(t, harness.MihomoSlice(harness.ReadyEndpoint()))
			awaitProxy(t, pool, false)

			putService(t, harness.MihomoService())
			putSlices(t, harness.MihomoSlice(harness.ReadyEndpoint()))
			awaitProxy(t, pool, true)
		})
	}
}

// awaitProxy waits for the change of the proxy to show in the pool's status.
func awaitProxy(t *testing.T, pool *v1alpha1.SubPool, ready bool) {
	t.Helper()
	if ready {
		awaitCondition(t, pool, healBudget, v1alpha1.ConditionProxyReady, metav1.ConditionTrue, v1alpha1.ReasonEndpointsReady)
		awaitCondition(t, pool, healBudget, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonPoolReady)
		return
	}
	awaitCondition(t, pool, healBudget, v1alpha1.ConditionProxyReady, metav1.ConditionFalse, v1alpha1.ReasonEndpointsUnavailable)
	awaitCondition(t, pool, healBudget, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonEndpointsUnavailable)
	assert.Contains(t, message(t, pool, v1alpha1.ConditionReady), sharedNamespace+"/"+harness.MihomoName)
}

// putSlices makes these the only hand-written EndpointSlices of the shared namespace.
func putSlices(t *testing.T, slices ...*discoveryv1.EndpointSlice) {
	t.Helper()
	old := &discoveryv1.EndpointSliceList{}
	require.NoError(t, cluster.Admin.List(background, old, client.InNamespace(sharedNamespace)))
	for i := range old.Items {
		if old.Items[i].Labels[discoveryv1.LabelManagedBy] == "" {
			require.NoError(t, cluster.Admin.Delete(background, &old.Items[i]))
		}
	}
	for _, slice := range slices {
		require.NoError(t, cluster.Admin.Create(background, slice.DeepCopy()))
	}
}

// putService replaces the shared proxy's Service.
func putService(t *testing.T, service *corev1.Service) {
	t.Helper()
	require.NoError(t, client.IgnoreNotFound(cluster.Admin.Delete(background, harness.MihomoService())))
	require.NoError(t, cluster.Admin.Create(background, service))
}
