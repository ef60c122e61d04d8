package controllers

import (
	"context"
	"sync"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
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
type places struct{ made, unmade chan struct{} }

func newPlaces() places {
	return places{made: make(chan struct{}, workers), unmade: make(chan struct{}, workers)}
}

// take waits for a place. It is free again after slowPass, or when leave is called.
func (p places) take(ctx context.Context, made bool) (leave func(), err error) {
	kind := p.unmade
	if made {
		kind = p.made
	}
	select {
	case kind <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	free := sync.OnceFunc(func() { <-kind })
	slow := time.AfterFunc(slowPass, free)
	return func() {
		slow.Stop()
		free()
	}, nil
}

// yields tells whether the pool's next pass comes after those of pools to which something happens: because this one was
// slow, or because it is only to look again at what is not watched.
func yields(result ctrl.Result, took time.Duration) bool {
	return took > slowPass || result.RequeueAfter > conflictDelay
}
