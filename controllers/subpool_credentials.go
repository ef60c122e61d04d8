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

// credentials is what a pass knows of a pool's Secret: whose it is and what it lacks. Values are dropped as soon as they
// were looked at.
type credentials struct {
	metav1.ObjectMeta

	// empty are the required keys that have no value.
	empty []string
}

func credentialsOf(secret *corev1.Secret) *credentials {
	c := &credentials{ObjectMeta: identity(secret)}
	c.OwnerReferences = secret.OwnerReferences
	for _, key := range subpool.CredentialKeys {
		if len(secret.Data[key]) == 0 {
			c.empty = append(c.empty, key)
		}
	}
	return c
}

// credentialWatches tell when a pool's Secret is deleted or replaced, and that it still is the one that was read. A watch on
// all Secrets would need the right to read all of them, so there is one on each pool's single Secret, as every kubelet has
// for the Secrets of its Pods. Only metadata is received: no value enters this process by it.
type credentialWatches struct {
	client metadata.Interface
	events chan event.GenericEvent

	mu      sync.Mutex
	watches map[string]*credentialWatch // by pool id
}

// credentialWatch is the watch on one pool's Secret.
type credentialWatch struct {
	stop   context.CancelFunc
	store  cache.Store
	synced func() bool

	// read is the Secret as it was read last.
	read *credentials
}

func newCredentialWatches(client metadata.Interface) *credentialWatches {
	return &credentialWatches{
		client:  client,
		events:  make(chan event.GenericEvent),
		watches: map[string]*credentialWatch{},
	}
}

// Start implements manager.Runnable: the watches end with the manager.
func (w *credentialWatches) Start(ctx context.Context) error {
	<-ctx.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, running := range w.watches {
		running.stop()
	}
	return nil
}

// source feeds the events into a controller.
func (w *credentialWatches) source() source.Source {
	return source.Channel(w.events, &handler.EnqueueRequestForObject{})
}

// remember keeps what was read, or made, and starts the watch that says whether it still holds. The watch outlives ctx, the
// pass that read the Secret.
func (w *credentialWatches) remember(ctx context.Context, poolID string, read *credentials) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if running, found := w.watches[poolID]; found {
		running.read = read
		return
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: w.listerWatcher(subpool.NamespaceName(poolID)),
		ObjectType:    &metav1.PartialObjectMetadata{},
		Handler:       w.handler(ctx, poolID, read.ResourceVersion),
	})
	w.watches[poolID] = &credentialWatch{stop: stop, store: store, synced: informer.HasSynced, read: read}
	go informer.RunWithContext(ctx)
}

// current returns the pool's credentials without asking the API server, if the watch says that they are those that were read.
func (w *credentialWatches) current(poolID string) (*credentials, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	running, found := w.watches[poolID]
	if !found || !running.synced() {
		return nil, false
	}
	object, found, err := running.store.GetByKey(subpool.NamespaceName(poolID) + "/" + subpool.CredentialsName)
	if !found || err != nil {
		return nil, false
	}
	seen, ok := object.(*metav1.PartialObjectMetadata)
	return running.read, ok && seen.UID == running.read.UID && seen.ResourceVersion == running.read.ResourceVersion
}

// stop ends the watch of a pool that goes away.
func (w *credentialWatches) stop(poolID string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if running, found := w.watches[poolID]; found {
		running.stop()
		delete(w.watches, poolID)
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
