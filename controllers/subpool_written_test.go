package controllers

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// TestSTA03StaleCache: a pass that begins before the cache shows the last status compares with that status all the same.
func TestSTA03StaleCache(t *testing.T) {
	version := func(uid types.UID, version, hostname string) *v1alpha1.SubPool {
		return &v1alpha1.SubPool{
			ObjectMeta: metav1.ObjectMeta{Name: "demo-pool", UID: uid, ResourceVersion: version},
			Status:     v1alpha1.SubPoolStatus{Hostname: hostname},
		}
	}
	for name, c := range map[string]struct {
		cached *v1alpha1.SubPool
		want   string
	}{
		"cache is behind":                    {version("1", "9", "old"), "written"},
		"cache shows it":                     {version("1", "10", "written"), "written"},
		"somebody has written since":         {version("1", "11", "newer"), "newer"},
		"another SubPool of the same name":   {version("2", "9", "other"), "other"},
		"not comparable, so taken as it is":  {version("1", "x", "cached"), "cached"},
		"another one, cached after deletion": {version("2", "12", "other"), "other"},
	} {
		t.Run(name, func(t *testing.T) {
			written := newWrittenStatuses()
			written.remember(version("1", "10", "written"))
			written.bringUpToDate(c.cached)
			require.Equal(t, c.want, c.cached.Status.Hostname)
			require.Equal(t, c.want == "written" && c.cached.ResourceVersion == "9", len(written.latest) == 1, "kept only while it is needed")
		})
	}
	written := newWrittenStatuses()
	written.remember(version("1", "10", "written"))
	written.forget("demo-pool")
	require.Empty(t, written.latest)
}
