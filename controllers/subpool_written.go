package controllers

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// writtenStatuses remembers the SubPools whose status this process has written and the cache may not have yet. A pass that
// follows at once would take the status before for the current one, find that it fits again, and leave the one between
// standing until the next look, minutes later. The zero value is ready to use.
type writtenStatuses struct {
	mu   sync.Mutex
	last map[string]*v1alpha1.SubPool // by pool id
}

// remember takes what the API server answered to a write.
func (w *writtenStatuses) remember(answer *v1alpha1.SubPool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		w.last = map[string]*v1alpha1.SubPool{}
	}
	w.last[answer.Name] = answer
}

// catchUp gives a SubPool from the cache the status that this process has written since, if there is one.
func (w *writtenStatuses) catchUp(cached *v1alpha1.SubPool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	written := w.last[cached.Name]
	if written == nil {
		return
	}
	order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, written.ResourceVersion)
	if err != nil || order >= 0 || cached.UID != written.UID {
		delete(w.last, cached.Name)
		return
	}
	written.Status.DeepCopyInto(&cached.Status)
}

// forget is for a pool that does not exist any more.
func (w *writtenStatuses) forget(poolID string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.last, poolID)
}
