package controllers

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/internal/subpool"
)

// credentialWatches tell when a pool's Secret is deleted or replaced. A watch on all Secrets would need the
// right to read all of them, so there is one on each pool's single Secret, as every kubelet has for the
// Secrets of its Pods. Only metadata is received: no value enters this process.
type credentialWatches struct {
	client metadata.Interface
	events chan event.GenericEvent

	mu    sync.Mutex
	stops map[string]context.CancelFunc // by pool id
}

func newCredentialWatches(client metadata.Interface) *credentialWatches {
	return &credentialWatches{
		client: client,
		events: make(chan event.GenericEvent),
		stops:  map[string]context.CancelFunc{},
	}
}

// Start implements manager.Runnable: the watches end with the manager.
func (w *credentialWatches) Start(ctx context.Context) error {
	<-ctx.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, stop := range w.stops {
		stop()
	}
	return nil
}

// source feeds the events into a controller.
func (w *credentialWatches) source() source.Source {
	return source.Channel(w.events, &handler.EnqueueRequestForObject{})
}

// ensure starts the watch of a pool whose Secret was just read; a second call does nothing. The watch outlives ctx, the
// pass that read the Secret.
func (w *credentialWatches) ensure(ctx context.Context, poolID string, secret *corev1.Secret) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, running := w.stops[poolID]; running {
		return
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	w.stops[poolID] = stop
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: w.listerWatcher(subpool.NamespaceName(poolID)),
		ObjectType:    &metav1.PartialObjectMetadata{},
		Handler:       w.handler(ctx, poolID, secret.ResourceVersion),
	})
	go informer.RunWithContext(ctx)
}

// stop ends the watch of a pool that goes away.
func (w *credentialWatches) stop(poolID string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if stop, running := w.stops[poolID]; running {
		stop()
		delete(w.stops, poolID)
	}
}

func (w *credentialWatches) listerWatcher(namespace string) cache.ListerWatcher {
	secrets := w.client.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(namespace)
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, subpool.CredentialsName).String()
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = only
			return secrets.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = only
			return secrets.Watch(ctx, options)
		},
	}
}

// handler tells of every change since the given version, which the pool was judged by.
func (w *credentialWatches) handler(ctx context.Context, poolID, judged string) cache.ResourceEventHandler {
	notify := func() {
		pool := &v1alpha1.SubPool{ObjectMeta: metav1.ObjectMeta{Name: poolID}}
		select {
		case w.events <- event.GenericEvent{Object: pool}:
		case <-ctx.Done():
		}
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			secret, ok := object.(*metav1.PartialObjectMetadata)
			if !initial || !ok || secret.ResourceVersion != judged {
				notify()
			}
		},
		UpdateFunc: func(_, _ any) { notify() },
		DeleteFunc: func(_ any) { notify() },
	}
}
