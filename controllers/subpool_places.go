package controllers

import (
	"context"
	"sync"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
)

const (
	// workers bounds how many pools are worked on at once: enough to keep an API server busy, few enough not to crowd
	// out others.
	workers = 8

	// slowPass is when a pass stops counting as one of the workers: it does next to nothing but wait, for an admission
	// webhook that hangs in this pool's namespace, say. A pass takes 0.2 s on an idle API server.
	slowPass = 5 * time.Second

	// mostPasses bounds the passes that run at once, slow ones included.
	mostPasses = 4 * workers
)

// places are where pools are worked on. A pool that makes its pass wait gives its place to another one.
type places chan struct{}

func newPlaces() places { return make(places, workers) }

// take waits for a place. It is free again after slowPass, or when leave is called.
func (p places) take(ctx context.Context) (leave func(), err error) {
	select {
	case p <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	free := sync.OnceFunc(func() { <-p })
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
