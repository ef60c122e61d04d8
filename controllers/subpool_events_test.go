package controllers

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// TestROL01ContentChanged: a new version of the same content is no event, and the cache's objects stay as they are.
func TestROL01ContentChanged(t *testing.T) {
	service := func(version, app string) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "cpa", ResourceVersion: version},
			Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": app}},
		}
	}
	before, same, edited := service("1", "cpa"), service("2", "cpa"), service("3", "other")
	changed := contentChanged()
	require.False(t, changed.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: same}))
	require.True(t, changed.Update(event.UpdateEvent{ObjectOld: same, ObjectNew: edited}))
	require.Equal(t, []string{"1", "2", "3"}, []string{before.ResourceVersion, same.ResourceVersion, edited.ResourceVersion})
}
