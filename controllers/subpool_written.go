package controllers

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// writtenStatuses remembers the SubPools whose status this process has written and the cache may not have yet. A pass that
// follows at once would take the status before for the current one, find that it fits again, and leave the one between
// standing until the next look, minutes later. The zero value is ready to use.
type writtenStatuses struct {
	mu   sync.Mutex
	last map[string]writtenStatus // by pool id
}

// writtenStatus is a status with the resource version and UID that the API server answered.
type writtenStatus struct {
	metav1.ObjectMeta

	status v1alpha1.SubPoolStatus
}

// remember takes a status that was written, and the answer to it.
func (w *writtenStatuses) remember(answer metav1.ObjectMeta, status v1alpha1.SubPoolStatus) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		w.last = map[string]writtenStatus{}
	}
	w.last[answer.Name] = writtenStatus{identity(&answer), status}
}

// catchUp gives a SubPool from the cache the status that this process has written since, if there is one.
func (w *writtenStatuses) catchUp(cached *v1alpha1.SubPool) {
	w.drop(cached)
	w.mu.Lock()
	defer w.mu.Unlock()
	if written, found := w.last[cached.Name]; found {
		written.status.DeepCopyInto(&cached.Status)
	}
}

// drop forgets what the cache has by now.
func (w *writtenStatuses) drop(cached metav1.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	written, found := w.last[cached.GetName()]
	if !found {
		return
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), written.ResourceVersion)
	if err != nil || order >= 0 || cached.GetUID() != written.UID {
		delete(w.last, cached.GetName())
	}
}

// follow drops what is remembered as soon as the cache has it. No pass needs to follow a write.
func (w *writtenStatuses) follow(ctx context.Context, informers cache.Informers) error {
	informer, err := informers.GetInformer(ctx, &v1alpha1.SubPool{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("cannot watch SubPools: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(_, after any) {
		w.drop(after.(metav1.Object))
	}})
	return err
}

// forget is for a pool that does not exist any more.
func (w *writtenStatuses) forget(poolID string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.last, poolID)
}
