package controllers

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// writtenStatuses remember what this process wrote until the cache shows it. A pass that began in between would take the
// status of before for the one in force: it would leave a status alone that has to be written back, and tell of a change
// that is none.
type writtenStatuses struct {
	mu     sync.Mutex
	latest map[string]*v1alpha1.SubPool // by pool id; as the API server answered
}

func newWrittenStatuses() *writtenStatuses {
	return &writtenStatuses{latest: map[string]*v1alpha1.SubPool{}}
}

// remember keeps the answer to a write.
func (w *writtenStatuses) remember(pool *v1alpha1.SubPool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.latest[pool.Name] = pool
}

// forget is for a pool that is gone.
func (w *writtenStatuses) forget(poolID string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.latest, poolID)
}

// bringUpToDate gives a SubPool from the cache the status that was written last, if the cache does not have it yet.
func (w *writtenStatuses) bringUpToDate(pool *v1alpha1.SubPool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	latest, found := w.latest[pool.Name]
	if !found {
		return
	}
	order, err := resourceversion.CompareResourceVersion(pool.ResourceVersion, latest.ResourceVersion)
	if err != nil || order >= 0 || pool.UID != latest.UID {
		delete(w.latest, pool.Name)
		return
	}
	latest.Status.DeepCopyInto(&pool.Status)
}
