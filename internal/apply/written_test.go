package apply

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestROL01UnseenWrites: an object from a cache that is behind is not written to again, nor one that is as it was written; one that
// is newer, another one of its name, or one for which there is another intent, is.
func TestROL01UnseenWrites(t *testing.T) {
	sent := 0
	answer := interceptor.Funcs{Patch: func(_ context.Context, _ client.WithWatch, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
		sent++
		object.SetUID("1")
		object.SetResourceVersion("10")
		return nil
	}}
	engine := NewEngine(fake.NewClientBuilder().WithScheme(scheme.Scheme).WithInterceptorFuncs(answer).Build(), "test", nil)
	for _, step := range []struct {
		what     string
		see      func(*corev1.Service)
		selector string
		want     Cause
	}{
		{"edited", func(s *corev1.Service) { s.ResourceVersion = "9" }, "cpa", Edited},
		{"still as before the write", func(s *corev1.Service) { s.ResourceVersion = "9" }, "cpa", Unseen},
		{"as written", func(s *corev1.Service) { s.ResourceVersion = "10" }, "cpa", ""},
		{"edited once more", func(s *corev1.Service) { s.ResourceVersion = "11" }, "cpa", Edited},
		{"made again by somebody", func(s *corev1.Service) { s.ResourceVersion, s.UID = "9", "2" }, "cpa", Edited},
		{"another intent", func(s *corev1.Service) { s.ResourceVersion = "9" }, "new", Outdated},
	} {
		seen := liveService(t)
		seen.Spec.Selector["app"] = "edited"
		step.see(seen)
		live := Live{}
		require.NoError(t, live.Add(scheme.Scheme, seen))

		before := sent
		writes, err := engine.Apply(t.Context(), live, serviceIntent(step.selector))
		require.NoError(t, err, step.what)
		var cause Cause
		for _, write := range writes {
			cause = write.Cause
		}
		require.Equal(t, step.want, cause, step.what)
		require.Equal(t, step.want != Unseen && step.want != "", sent > before, step.what)
	}
}
