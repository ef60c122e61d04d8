package controllers

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// STA-03: a status that the cache does not have yet counts, and one that it does have counts more.
func TestWrittenStatuses(t *testing.T) {
	version := func(uid types.UID, resourceVersion, namespace string) *v1alpha1.SubPool {
		return &v1alpha1.SubPool{
			ObjectMeta: metav1.ObjectMeta{Name: "demo-pool", UID: uid, ResourceVersion: resourceVersion},
			Status:     v1alpha1.SubPoolStatus{Namespace: namespace},
		}
	}
	remember := func(statuses *writtenStatuses, answer *v1alpha1.SubPool) {
		statuses.remember(answer.ObjectMeta, answer.Status)
	}
	for name, c := range map[string]struct {
		cached *v1alpha1.SubPool
		want   string
	}{
		"cache is behind":       {version(poolUID, "9", "cached"), "written"},
		"cache has it":          {version(poolUID, "10", "cached"), "cached"},
		"cache has a newer one": {version(poolUID, "11", "cached"), "cached"},
		"another SubPool":       {version("another-uid", "9", "cached"), "cached"},
	} {
		t.Run(name, func(t *testing.T) {
			var statuses writtenStatuses
			remember(&statuses, version(poolUID, "10", "written"))
			statuses.catchUp(c.cached)
			require.Equal(t, c.want, c.cached.Status.Namespace)
			require.Equal(t, c.want == "written", len(statuses.last) == 1, "what is not needed any more is forgotten")
		})
	}
	var statuses writtenStatuses
	remember(&statuses, version(poolUID, "10", "written"))
	statuses.drop(version(poolUID, "9", "cached"))
	require.Len(t, statuses.last, 1)
	statuses.drop(version(poolUID, "10", "cached"))
	require.Empty(t, statuses.last)
	remember(&statuses, version(poolUID, "10", "written"))
	statuses.forget("demo-pool")
	require.Empty(t, statuses.last)
}
