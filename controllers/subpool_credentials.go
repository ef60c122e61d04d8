package controllers

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
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

// credentialWatch is the watch on one pool's Secret: the store of a reflector that keeps nothing but a resource version.
type credentialWatch struct {
	stop   context.CancelFunc
	notify func()

	mu sync.Mutex
	// read is the Secret as it was read last, and version what the watch says that it is at; empty before the watch has said
	// anything, and when there is no Secret.
	read    *credentials
	version string
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
		running.remember(read)
		return
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	running := &credentialWatch{stop: stop, notify: func() { w.notify(ctx, poolID) }, read: read}
	w.watches[poolID] = running
	namespace := subpool.NamespaceName(poolID)
	reflector := cache.NewReflectorWithOptions(w.listerWatcher(namespace), &metav1.PartialObjectMetadata{}, running,
		cache.ReflectorOptions{Name: "credentials of " + namespace})
	go reflector.RunWithContext(ctx)
}

// current returns the pool's credentials without asking the API server, if the watch says that they are those that were read.
func (w *credentialWatches) current(poolID string) (*credentials, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	running, found := w.watches[poolID]
	if !found {
		return nil, false
	}
	return running.current()
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

func (w *credentialWatches) notify(ctx context.Context, poolID string) {
	pool := &v1alpha1.SubPool{ObjectMeta: metav1.ObjectMeta{Name: poolID}}
	select {
	case w.events <- event.GenericEvent{Object: pool}:
	case <-ctx.Done():
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

func (c *credentialWatch) remember(read *credentials) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = read
}

func (c *credentialWatch) current() (*credentials, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read, c.version == c.read.ResourceVersion
}

// hear takes the version that the Secret is at, and tells when it is not the one that was read.
func (c *credentialWatch) hear(version string) {
	c.mu.Lock()
	c.version = version
	news := version != c.read.ResourceVersion
	c.mu.Unlock()
	if news {
		c.notify()
	}
}

// Add implements cache.ReflectorStore.
func (c *credentialWatch) Add(object any) error { return c.Replace([]any{object}, "") }

// Update implements cache.ReflectorStore.
func (c *credentialWatch) Update(object any) error { return c.Replace([]any{object}, "") }

// Delete implements cache.ReflectorStore.
func (c *credentialWatch) Delete(any) error { return c.Replace(nil, "") }

// Replace implements cache.ReflectorStore: the list has the Secret, or nothing.
func (c *credentialWatch) Replace(objects []any, _ string) error {
	version := ""
	for _, object := range objects {
		accessor, err := meta.Accessor(object)
		if err != nil {
			return err
		}
		version = accessor.GetResourceVersion()
	}
	c.hear(version)
	return nil
}

// Resync implements cache.ReflectorStore: there is nothing to say again.
func (c *credentialWatch) Resync() error { return nil }
