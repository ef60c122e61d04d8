package apply

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func newTestEngine() *Engine {
	return NewEngine(fake.NewClientBuilder().WithScheme(scheme.Scheme).Build(), "test", nil)
}

func serviceIntent(selector string) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service("cpa", "ns").
		WithLabels(map[string]string{"ours": "yes"}).
		WithSpec(corev1ac.ServiceSpec().
			WithSelector(map[string]string{"app": selector}).
			WithPorts(corev1ac.ServicePort().WithPort(80).WithProtocol(corev1.ProtocolTCP)))
}

// liveService is the same Service as a server has it: defaults filled in, other people's metadata beside ours.
func liveService(t testing.TB) *corev1.Service {
	intent, err := newIntent(serviceIntent("cpa"))
	require.NoError(t, err)
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name: "cpa", Namespace: "ns", UID: "1", ResourceVersion: "7",
			Labels:      map[string]string{"ours": "yes", "foreign": "yes"},
			Annotations: map[string]string{AnnotationIntent: intent.hash, "foreign": "yes"},
		},
		Spec: corev1.ServiceSpec{
			Type:            corev1.ServiceTypeClusterIP,
			ClusterIP:       "10.0.0.1",
			SessionAffinity: corev1.ServiceAffinityNone,
			Selector:        map[string]string{"app": "cpa"},
			Ports:           []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(80)}},
		},
	}
}

// TestROL01DefaultsAreNotDrift: what the server or others add must not look like an edit, and every edit of ours must.
func TestROL01DefaultsAreNotDrift(t *testing.T) {
	for name, c := range map[string]struct {
		edit   func(*corev1.Service)
		intent *corev1ac.ServiceApplyConfiguration
		want   Cause
	}{
		"as applied": {func(*corev1.Service) {}, serviceIntent("cpa"), ""},
		"status changed": {func(s *corev1.Service) {
			s.ResourceVersion = "8"
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "1"}}
		}, serviceIntent("cpa"), ""},
		"foreign label removed": {func(s *corev1.Service) { delete(s.Labels, "foreign") }, serviceIntent("cpa"), ""},
		"our label removed":     {func(s *corev1.Service) { delete(s.Labels, "ours") }, serviceIntent("cpa"), Edited},
		"our label changed":     {func(s *corev1.Service) { s.Labels["ours"] = "no" }, serviceIntent("cpa"), Edited},
		"our field changed":     {func(s *corev1.Service) { s.Spec.Selector["app"] = "other" }, serviceIntent("cpa"), Edited},
		"our port removed":      {func(s *corev1.Service) { s.Spec.Ports = nil }, serviceIntent("cpa"), Edited},
		"hash removed":          {func(s *corev1.Service) { delete(s.Annotations, AnnotationIntent) }, serviceIntent("cpa"), Outdated},
		"another intent":        {func(*corev1.Service) {}, serviceIntent("new"), Outdated},
		"a field less":          {func(*corev1.Service) {}, corev1ac.Service("cpa", "ns").WithLabels(map[string]string{"ours": "yes"}), Outdated},
	} {
		t.Run(name, func(t *testing.T) {
			live := liveService(t)
			c.edit(live)
			intent, err := newIntent(c.intent)
			require.NoError(t, err)
			got, err := newTestEngine().compare(live, intent)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestIntentHash(t *testing.T) {
	one, err := newIntent(serviceIntent("cpa"))
	require.NoError(t, err)
	same, err := newIntent(serviceIntent("cpa"))
	require.NoError(t, err)
	other, err := newIntent(serviceIntent("new"))
	require.NoError(t, err)
	require.Equal(t, one.hash, same.hash)
	require.NotEqual(t, one.hash, other.hash)
	require.Equal(t, "Service ns/cpa", one.key.String())
	require.Equal(t, one.hash, one.object.GetAnnotations()[AnnotationIntent])
}

// Intents of two pools that differ in nothing but whose they are have one hash. Whatever else names a pool tells them apart, and so
// does a change within one.
func TestIntentHashIsThatOfAllAlike(t *testing.T) {
	hash := func(pool, says string) string {
		intent, err := newIntent(corev1ac.ConfigMap("settings", "subpool-"+pool).
			WithOwnerReferences(metav1ac.OwnerReference().WithKind("SubPool").WithName(pool).WithUID(types.UID("uid of " + pool))).
			WithLabels(map[string]string{"pool": pool, "namespace": "subpool-" + pool}).
			WithData(map[string]string{"says": says}))
		require.NoError(t, err)
		return intent.hash
	}
	require.Equal(t, hash("one", "hello"), hash("other", "hello"))
	require.NotEqual(t, hash("one", "hello"), hash("one", "bye"))
	require.NotEqual(t, hash("one", "hello, one"), hash("other", "hello, other"))
	require.NotEqual(t, hash("one", "one"), hash("one", "subpool-one"))
	require.NotEqual(t, hash("one", "\x01"), hash("one", "one"))
}

// Prune removes what is not wanted any more, and nothing that the caller keeps.
func TestPrune(t *testing.T) {
	live := Live{}
	names := []string{"wanted", "obsolete", "kept"}
	builder := fake.NewClientBuilder().WithScheme(scheme.Scheme)
	for _, name := range names {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: "1"}}
		builder.WithObjects(object)
		require.NoError(t, live.Add(scheme.Scheme, object))
	}
	c := builder.Build()
	mayGo := func(key Key) bool { return key.Name != "kept" }
	require.NoError(t, NewEngine(c, "test", nil).Prune(t.Context(), live, mayGo, corev1ac.ConfigMap("wanted", "ns")))

	var left corev1.ConfigMapList
	require.NoError(t, c.List(t.Context(), &left))
	var found []string
	for _, item := range left.Items {
		found = append(found, item.Name)
	}
	require.ElementsMatch(t, []string{"wanted", "kept"}, found)
}
