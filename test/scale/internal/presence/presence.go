// Package presence tells when objects appear, change and go, by watches on their metadata alone.
package presence

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	toolswatch "k8s.io/client-go/tools/watch"

	"github.com/example-org/subrelay-operator/test/scale/internal/objects"
)

// Condition tells whether an event is the one that is waited for.
type Condition func(kind watch.EventType, object *metav1.PartialObjectMetadata) bool

// There is the condition that an object exists.
func There(kind watch.EventType, _ *metav1.PartialObjectMetadata) bool {
	return kind == watch.Added || kind == watch.Modified
}

// Gone is the condition that an object does not exist any more.
func Gone(kind watch.EventType, _ *metav1.PartialObjectMetadata) bool { return kind == watch.Deleted }

// Watch tells what happens after it was started.
type Watch struct {
	mu      sync.Mutex
	waiting map[objects.Key]map[*Expectation]struct{}

	failed chan struct{}
	err    error // to be read when failed is closed
}

// Expectation is something that will be true of objects one day.
type Expectation struct {
	condition Condition
	missing   map[objects.Key]struct{} // guarded by the Watch
	watch     *Watch
	done      chan struct{}
	at        time.Time // to be read when done is closed
}

// Start watches all objects of these resources until ctx ends.
func Start(ctx context.Context, config *rest.Config, resources ...schema.GroupVersionResource) (*Watch, error) {
	config = metadata.ConfigFor(config)
	config.UserAgent = "benchmark-watch"
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for watches: %w", err)
	}
	w := &Watch{waiting: map[objects.Key]map[*Expectation]struct{}{}, failed: make(chan struct{})}
	var once sync.Once
	for _, resource := range resources {
		list, err := client.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", resource.Resource, err)
		}
		watcher, err := toolswatch.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &starter{client.Resource(resource)})
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", resource.Resource, err)
		}
		go func() {
			if err := w.follow(resource, watcher.ResultChan()); err != nil || ctx.Err() == nil {
				once.Do(func() {
					w.err = errors.Join(fmt.Errorf("the watch on %s has ended early", resource.Resource), err)
					close(w.failed)
				})
			}
		}()
	}
	return w, nil
}

// starter begins watches.
type starter struct{ metadata.Getter }

func (s *starter) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return s.Watch(ctx, options)
}

// follow ends with the events.
func (w *Watch) follow(resource schema.GroupVersionResource, events <-chan watch.Event) error {
	for event := range events {
		now := time.Now()
		if event.Type == watch.Bookmark {
			continue
		}
		object, ok := event.Object.(*metav1.PartialObjectMetadata)
		if !ok {
			return fmt.Errorf("%s: %v", event.Type, event.Object)
		}
		w.see(objects.Key{Resource: resource, Namespace: object.Namespace, Name: object.Name}, event.Type, object, now)
	}
	return nil
}

func (w *Watch) see(key objects.Key, kind watch.EventType, object *metav1.PartialObjectMetadata, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for expectation := range w.waiting[key] {
		if !expectation.condition(kind, object) {
			continue
		}
		w.forget(expectation, key)
		if len(expectation.missing) == 0 {
			expectation.at = now
			close(expectation.done)
		}
	}
}

// forget needs the lock.
func (w *Watch) forget(expectation *Expectation, key objects.Key) {
	delete(expectation.missing, key)
	delete(w.waiting[key], expectation)
	if len(w.waiting[key]) == 0 {
		delete(w.waiting, key)
	}
}

// Expect waits for an event that satisfies the condition for each of the objects. Only events from now on count.
func (w *Watch) Expect(condition Condition, keys ...objects.Key) *Expectation {
	expectation := &Expectation{condition: condition, missing: map[objects.Key]struct{}{}, watch: w, done: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range keys {
		expectation.missing[key] = struct{}{}
		if w.waiting[key] == nil {
			w.waiting[key] = map[*Expectation]struct{}{}
		}
		w.waiting[key][expectation] = struct{}{}
	}
	return expectation
}

// Wait returns when the last of the events was seen. If that takes longer than patience, the error names the objects that
// are missing.
func (e *Expectation) Wait(ctx context.Context, patience time.Duration) (time.Time, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-e.done:
		return e.at, nil
	case <-e.watch.failed:
		return time.Time{}, e.watch.err
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	case <-timer.C:
		return time.Time{}, fmt.Errorf("not seen within %s: %v", patience, e.drop())
	}
}

// drop ends the expectation and returns what is missing.
func (e *Expectation) drop() []objects.Key {
	e.watch.mu.Lock()
	defer e.watch.mu.Unlock()
	var missing []objects.Key
	for key := range maps.Clone(e.missing) {
		missing = append(missing, key)
		e.watch.forget(e, key)
	}
	return missing
}
