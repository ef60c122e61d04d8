package main

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/example-org/subrelay-operator/test/scale/bench/report"
	"github.com/example-org/subrelay-operator/test/scale/internal/load"
)

const (
	// alone is how many pools are made one at a time, aloneSpan how long it must be calm before each.
	alone     = 20
	aloneSpan = 2 * time.Second
)

// afterReady are the measurements on pools that work.
var afterReady = []string{"steady", "restart", "heal", "change", "delete"}

// turn is the operator's, with a number of pools.
type turn struct {
	*stage
	operator *operator
	pools    []string
	found    *report.Operator
	quiet    time.Duration
}

// measureOperator makes the pools and then measures on them what was asked for.
func (b *bench) measureOperator(ctx context.Context, pools int, found *report.Operator) error {
	operator := &operator{userAgent: filepath.Base(b.program) + "/"}
	var profiler *profiler
	if b.profile != "" {
		var err error
		if profiler, err = newProfiler(b.profile, pools); err != nil {
			return err
		}
		operator.flags = []string{"--pprof-bind-address=" + profiler.address}
	}
	return b.on(ctx, operator, func(s *stage) error {
		t := &turn{stage: s, operator: operator, pools: poolIDs("pool", pools), found: found, quiet: b.quiet}
		ctx, stopKubelet := context.WithCancel(ctx)
		defer stopKubelet()
		err := t.create(ctx, profiler)
		if err == nil && b.wants("create") {
			s.say("operator: one pool at a time")
			err = t.alone(ctx)
		}
		if err == nil && b.wants(afterReady...) {
			s.say("operator: waiting until all pools are Ready")
			err = t.ready(ctx)
		}
		for _, step := range []struct {
			name    string
			measure func(context.Context) error
		}{
			{"steady", t.steady}, {"restart", t.restart}, {"heal", t.heal}, {"change", t.change}, {"heal", t.healWhileBusy},
			{"delete", t.remove},
		} {
			if err == nil && b.wants(step.name) {
				s.say("operator: %s", step.name)
				err = step.measure(ctx)
			}
		}
		if err != nil && operator.process != nil {
			err = errors.Join(err, errors.New(operator.process.LogTail()))
		}
		return err
	})
}

func (t *turn) create(ctx context.Context, profiler *profiler) error {
	finish := func() error { return nil }
	if profiler != nil {
		finish = profiler.begin(ctx)
	}
	wave, err := t.wave(ctx, waveOptions{ids: t.pools, untilIdle: true})
	if err == nil {
		t.found.Create = &wave
	}
	return errors.Join(err, finish())
}

// alone makes pools one at a time, each when the cluster has become calm after the one before, and removes them.
func (t *turn) alone(ctx context.Context) error {
	ids := poolIDs("alone", alone)
	for _, id := range ids {
		if _, err := t.idle(ctx, aloneSpan); err != nil {
			return err
		}
		pool, err := t.expect([]string{id})
		if err != nil {
			return err
		}
		if _, err := t.make(ctx, pool); err != nil {
			return err
		}
		t.found.Alone = append(t.found.Alone, pool[0].seconds)
	}
	_, err := t.discard(ctx, ids)
	return err
}

// ready starts what stands in for nodes, and waits until all pools are Ready: what follows is about pools that work.
func (t *turn) ready(ctx context.Context) error {
	if err := t.StartKubelet(ctx); err != nil {
		return err
	}
	if err := load.AwaitReady(ctx, t.Admin, len(t.pools), func(int) {}); err != nil {
		return err
	}
	_, err := t.idle(ctx, idleSpan)
	return err
}

// steady watches the operator do nothing.
func (t *turn) steady(ctx context.Context) error {
	if _, err := t.idle(ctx, idleSpan); err != nil {
		return err
	}
	mark, err := t.Audit.Mark(ctx)
	if err != nil {
		return err
	}
	before, err := t.cpu()
	if err != nil {
		return err
	}
	began := time.Now()
	timer := time.NewTimer(t.quiet)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
	}
	span, err := t.span(before, time.Since(began))
	if err != nil {
		return err
	}
	calls, err := t.calls(ctx, mark)
	if err != nil {
		return err
	}
	span.Traffic = trafficOf(calls.Select(isNoWatch))
	t.found.Steady = &span
	return nil
}

// span is what the operator's process has taken; its requests are to be counted by the caller.
func (t *turn) span(before report.CPU, passed time.Duration) (report.Span, error) {
	cost, err := t.costSince(before, passed)
	if err != nil {
		return report.Span{}, err
	}
	memory, err := t.memory()
	return report.Span{Seconds: cost.Seconds, CPU: cost.CPU.Subject, Memory: memory}, err
}

// restart measures a new process twice: by itself, and with a pool that waits for it.
func (t *turn) restart(ctx context.Context) error {
	if err := t.operator.Stop(); err != nil {
		return err
	}
	mark, err := t.Audit.Mark(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := t.operator.Start(ctx, t.Cluster); err != nil {
		return err
	}
	idle, err := t.idle(ctx, idleSpan)
	if err != nil {
		return err
	}
	span, err := t.span(report.CPU{}, idle.Sub(began))
	if err != nil {
		return err
	}
	calls, err := t.calls(ctx, mark)
	if err != nil {
		return err
	}
	span.Traffic = trafficOf(calls)
	t.found.Restart = &report.Restart{Span: span, SecretReads: len(calls.Select(isAboutSecrets))}
	t.found.Restart.Fresh, err = t.freshAtRestart(ctx)
	return err
}

// freshAtRestart returns how long after the start of a process a pool has its objects that was asked for right before, and removes
// the pool.
func (t *turn) freshAtRestart(ctx context.Context) (float64, error) {
	if err := t.operator.Stop(); err != nil {
		return 0, err
	}
	ids := []string{"fresh"}
	pool, err := t.expect(ids)
	if err != nil {
		return 0, err
	}
	if err := t.ask(ctx, pool); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := t.operator.Start(ctx, t.Cluster); err != nil {
		return 0, err
	}
	at, err := pool[0].there.Wait(ctx, patience(len(t.pools)))
	if err != nil {
		return 0, err
	}
	_, err = t.discard(ctx, ids)
	return at.Sub(began).Seconds(), err
}
