package controllers

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const (
	// workers bounds how many pools of one kind, made or unmade, are worked on at once: enough to keep an API server busy,
	// few enough not to crowd out others.
	workers = 8

	// slowPass is when a pass stops counting as one of the workers: it does next to nothing but wait, for an admission
	// webhook that hangs in this pool's namespace, say. A pass takes 0.2 s on an idle API server.
	slowPass = 5 * time.Second

	// mostPasses bounds the passes that run at once, slow ones included.
	mostPasses = 4 * workers
)

// places are where pools are worked on. A pool that makes its pass wait gives its place to another one. Pools that have been
// made have places of their own: neither does a wave of new ones keep repairs waiting, nor a restart a new one.
type places struct {
	made   chan struct{}
	unmade unmadePlaces
}

func newPlaces() *places { return &places{made: make(chan struct{}, workers)} }

// source lets pools that wait for a place come back to the controller's queue.
func (p *places) source() source.Source {
	return source.Func(func(_ context.Context, queue queue) error {
		p.unmade.queue = queue.(priorityqueue.PriorityQueue[reconcile.Request])
		return nil
	})
}

// take waits for a place for a pool that has been made. One that has not gets a place at once or none: then leave is nil, and the
// pool comes back to the queue when there is one. A place is free again after slowPass, or when leave is called.
func (p *places) take(ctx context.Context, request reconcile.Request, made bool) (leave func(), err error) {
	free := p.unmade.leave
	if made {
		free = func() { <-p.made }
		select {
		case p.made <- struct{}{}:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	} else if !p.unmade.enter(request) {
		return nil, nil
	}
	free = sync.OnceFunc(free)
	slow := time.AfterFunc(slowPass, free)
	return func() {
		slow.Stop()
		free()
	}, nil
}

// unmadePlaces are those of pools that are yet to be made. Whoever finds none does not hold up the goroutine that came with it:
// a repair may need that.
type unmadePlaces struct {
	queue priorityqueue.PriorityQueue[reconcile.Request]

	mu      sync.Mutex
	taken   int
	order   []reconcile.Request // who waits, and who did until it got a place by itself
	waiting map[reconcile.Request]bool
}

// enter takes a place if there is one, else the pool waits.
func (u *unmadePlaces) enter(request reconcile.Request) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.taken < workers {
		u.taken++
		delete(u.waiting, request)
		return true
	}
	if u.waiting == nil {
		u.waiting = map[reconcile.Request]bool{}
	}
	if !u.waiting[request] {
		u.waiting[request] = true
		u.order = append(u.order, request)
	}
	return false
}

// leave frees a place and sends the next pool that waits.
func (u *unmadePlaces) leave() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.taken--
	for len(u.order) > 0 {
		next := u.order[0]
		u.order = u.order[1:]
		if u.waiting[next] {
			delete(u.waiting, next)
			u.queue.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(highPriority)}, next)
			return
		}
	}
}

// yields tells whether the pool's next pass comes after those of pools to which something happens: because this one was
// slow, or because it is only to look again at what is not watched.
func yields(result ctrl.Result, took time.Duration) bool {
	return took > slowPass || result.RequeueAfter > conflictDelay
}
