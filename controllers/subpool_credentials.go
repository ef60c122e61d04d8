package controllers

import (
	"context"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
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

// credentialWatches tell when what was read of a pool's Secret does not hold any more. A watch on all Secrets would need the
// right to read all of them, so there is one on each pool's single Secret, as every kubelet has for the Secrets of its Pods.
// Only metadata is received: no value enters this process by it.
type credentialWatches struct {
	open   secretStreamOpener
	events chan event.GenericEvent

	mu      sync.Mutex
	watches map[string]*credentialWatch // by pool id
}

// credentialWatch is what was read of a Secret, and whether that still holds.
type credentialWatch struct {
	read *credentials
	stop context.CancelFunc

	// stale: something has happened to the Secret since, or the API server does not let it be watched at the moment.
	stale bool
}

// firstWord is how long a new watch may take to say that the Secret exists: the API server says so at once.
const firstWord = time.Second

// renewal is how a watch is opened again that the API server has ended, as it does to each after half an hour or more.
var renewal = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 1, Steps: 6, Cap: time.Minute}

func newCredentialWatches(open secretStreamOpener) *credentialWatches {
	return &credentialWatches{
		open:    open,
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
	return source.Channel(w.events, existingFirst(func(_ context.Context, pool client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(pool)}}
	}))
}

// current returns the pool's credentials without asking the API server, if they are those that were read last.
func (w *credentialWatches) current(poolID string) (*credentials, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	running, found := w.watches[poolID]
	if !found || running.stale {
		return nil, false
	}
	return running.read, true
}

// remember keeps what was read, or made, until the watch that it starts says that it does not hold any more.
func (w *credentialWatches) remember(poolID string, read *credentials) {
	ctx, stop := newWatchContext()
	w.keep(ctx, poolID, &credentialWatch{read: read, stop: stop}, nil)
}

// newWatchContext is not made from that of the pass that read the Secret: the watch outlives it, and would hold on to its logger.
func newWatchContext() (context.Context, context.CancelFunc) {
	return context.WithCancel(context.Background())
}

// recognise returns the pool's credentials, at this process's first look at the pool, if they are those that its StatefulSet uses:
// they were looked at before that was written, and are immutable. One request is enough then, the watch's own.
func (w *credentialWatches) recognise(ctx context.Context, poolID string, workload *appsv1.StatefulSet) (*credentials, bool) {
	if w.knows(poolID) {
		return nil, false // something has happened to them
	}
	watching, stop := newWatchContext()
	survives := context.AfterFunc(ctx, stop) // the watch hangs no longer than the pass may
	opened, err := w.open(watching, poolID, "")
	if err != nil {
		stop()
		return nil, false // whoever reads the Secret then is told why
	}
	late := time.AfterFunc(firstWord, stop)
	secret, err := opened.next()
	if err != nil || !subpool.RunsWith(workload, secret.UID) || !late.Stop() || !survives() {
		stop()
		opened.close()
		return nil, false
	}
	known := &credentials{ObjectMeta: identity(secret)}
	known.OwnerReferences = secret.OwnerReferences
	w.keep(watching, poolID, &credentialWatch{read: known, stop: stop}, opened)
	return known, true
}

func (w *credentialWatches) knows(poolID string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, found := w.watches[poolID]
	return found
}

// stop ends the watch of a pool that goes away.
func (w *credentialWatches) stop(poolID string) { w.replace(poolID, nil) }

// keep goes on with a watch that was opened, or opens one.
func (w *credentialWatches) keep(ctx context.Context, poolID string, running *credentialWatch, opened *secretStream) {
	w.replace(poolID, running)
	go func() {
		defer running.stop()
		if w.watch(ctx, poolID, running, opened) {
			w.lose(ctx, poolID, running)
		}
	}()
}

func (w *credentialWatches) replace(poolID string, running *credentialWatch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if before, found := w.watches[poolID]; found {
		before.stop()
	}
	if running == nil {
		delete(w.watches, poolID)
		return
	}
	w.watches[poolID] = running
}

// lose has the Secret read again.
func (w *credentialWatches) lose(ctx context.Context, poolID string, running *credentialWatch) {
	w.mu.Lock()
	running.stale = true
	w.mu.Unlock()
	pool := &v1alpha1.SubPool{ObjectMeta: metav1.ObjectMeta{Name: poolID}}
	select {
	case w.events <- event.GenericEvent{Object: pool}:
	case <-ctx.Done():
	}
}

// watch returns true when something has happened to the Secret since it was read, or when the API server cannot tell, and false
// when the watch was stopped. While the server does not let it watch, it tries again: nothing is missed by that.
func (w *credentialWatches) watch(ctx context.Context, poolID string, running *credentialWatch, opened *secretStream) bool {
	for delay := renewal; ; {
		var err error
		if opened == nil {
			opened, err = w.open(ctx, poolID, running.read.ResourceVersion)
			w.mu.Lock()
			running.stale = err != nil
			w.mu.Unlock()
		}
		if err == nil {
			delay = renewal
			_, err = opened.next()
			opened.close()
			opened = nil
		}
		if err == nil || gone(err) {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(delay.Step()):
		}
	}
}

// gone: the API server does not remember this version any more.
func gone(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }
