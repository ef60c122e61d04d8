package harness

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// Record is what the conditions of SubPools have said at any time since it was begun.
type Record struct {
	admin client.Client

	mu         sync.Mutex
	conditions map[string]bool
	reasons    map[string]bool
	err        error
}

// RecordStatuses begins a record, which grows until ctx ends. It misses no version of a status.
func (c *Cluster) RecordStatuses(ctx context.Context) (*Record, error) {
	watcher, err := c.Admin.Watch(ctx, &v1alpha1.SubPoolList{})
	if err != nil {
		return nil, fmt.Errorf("watch SubPools: %w", err)
	}
	record := &Record{admin: c.Admin, conditions: map[string]bool{}, reasons: map[string]bool{}}
	go func() {
		defer watcher.Stop()
		for event := range watcher.ResultChan() {
			record.add(event)
		}
		record.end(ctx)
	}()
	return record, nil
}

func (r *Record) add(event watch.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pool, ok := event.Object.(*v1alpha1.SubPool)
	if !ok {
		r.err = fmt.Errorf("watch SubPools: %s: %v", event.Type, event.Object)
		return
	}
	for i := range pool.Status.Conditions {
		r.conditions[pool.Status.Conditions[i].Type] = true
		r.reasons[pool.Status.Conditions[i].Reason] = true
	}
}

// end makes a record incomplete that did not end with its context.
func (r *Record) end(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() == nil {
		r.err = errors.Join(r.err, errors.New("the watch on SubPools ended early"))
	}
}

// Said returns the types of conditions and the reasons that were seen so far, and the reasons of Events about SubPools.
func (r *Record) Said(ctx context.Context) (conditions, reasons, events map[string]bool, err error) {
	events = map[string]bool{}
	list := &corev1.EventList{}
	// SubPools are cluster-scoped, so Events about them are in the default namespace.
	if err := r.admin.List(ctx, list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
		return nil, nil, nil, fmt.Errorf("list Events: %w", err)
	}
	for i := range list.Items {
		if list.Items[i].InvolvedObject.Kind == "SubPool" {
			events[list.Items[i].Reason] = true
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.conditions), maps.Clone(r.reasons), events, r.err
}
