package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// idleTick is how often the operator's counters are read, idleSpan for how long they must stand still.
	idleTick = time.Second
	idleSpan = 5 * time.Second

	// idlePatience is how long the operator may take to come to rest.
	idlePatience = 10 * time.Minute

	// scrapesPerTick is how many scrapes hasten a collection of garbage: each leaves some behind.
	scrapesPerTick = 100
)

// awaitIdle waits until the operator leads and has worked on nothing for a while, and returns when it stopped working.
func (s *study) awaitIdle(ctx context.Context) (time.Time, error) {
	var last float64
	still := time.Now()
	err := wait.PollUntilContextTimeout(ctx, idleTick, idlePatience, true, func(ctx context.Context) (bool, error) {
		metrics, err := s.scraper.Scrape(ctx, s.operator)
		if errors.Is(err, syscall.ECONNREFUSED) {
			return false, nil // the process has just begun
		}
		if err != nil {
			return false, err
		}
		// The controller's counters are there from when it starts, which only a leader's does.
		passes, counts := metrics.Sum("controller_runtime_reconcile_total")
		working, known := metrics.Sum("controller_runtime_active_workers")
		if !counts || !known || working > 0 || passes != last {
			last, still = passes, time.Now()
		}
		return time.Since(still) >= idleSpan, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		err = fmt.Errorf("the operator did not come to rest within %s", idlePatience)
	}
	return still, err
}

// liveHeap returns how much memory was in use, in bytes, in a collection of garbage that began after the call.
func (s *study) liveHeap(ctx context.Context) (uint64, error) {
	first, _, err := s.collections(ctx)
	if err != nil {
		return 0, err
	}
	var live float64
	err = wait.PollUntilContextTimeout(ctx, idleTick, idlePatience, true, func(ctx context.Context) (bool, error) {
		for range scrapesPerTick {
			var now float64
			if now, live, err = s.collections(ctx); err != nil {
				return false, err
			}
			// The one that may have been under way at first does not count.
			if now >= first+2 {
				return true, nil
			}
		}
		return false, nil
	})
	return uint64(live), err
}

// collections returns how often the operator has collected garbage, and how many bytes were in use the last time.
func (s *study) collections(ctx context.Context) (count, live float64, err error) {
	metrics, err := s.scraper.Scrape(ctx, s.operator)
	if err != nil {
		return 0, 0, err
	}
	count, counts := metrics.Sum("go_gc_cycles_total_gc_cycles_total")
	live, known := metrics.Sum("go_gc_heap_live_bytes")
	if !counts || !known {
		return 0, 0, errors.New("the operator's metrics tell nothing about its heap: see which names the library uses now")
	}
	return count, live, nil
}
