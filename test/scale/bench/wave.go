package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/example-org/subrelay-operator/test/harness"
	"github.com/example-org/subrelay-operator/test/scale/bench/report"
	"github.com/example-org/subrelay-operator/test/scale/internal/audit"
	"github.com/example-org/subrelay-operator/test/scale/internal/presence"
)

type waveOptions struct {
	ids []string
	// untilIdle also waits for the machine to become idle.
	untilIdle bool
	// made, if any, is closed when all pools have their objects.
	made chan<- struct{}
}

// poolIDs returns ids that begin with the word.
func poolIDs(word string, count int) []string {
	ids := make([]string, 0, count)
	for number := range count {
		ids = append(ids, fmt.Sprintf("%s-%05d", word, number))
	}
	return ids
}

// wave makes pools all at once and measures what that takes.
func (s *stage) wave(ctx context.Context, opts waveOptions) (report.Wave, error) {
	s.say("%s: making %d pools", s.subject.Name(), len(opts.ids))
	wave := report.Wave{Subject: s.subject.Name(), Pools: len(opts.ids)}
	pools, err := s.expect(opts.ids)
	if err != nil {
		return wave, err
	}
	mark, err := s.Audit.Mark(ctx)
	if err != nil {
		return wave, err
	}
	before, err := s.cpu()
	if err != nil {
		return wave, err
	}
	began := time.Now()
	last, err := s.make(ctx, pools)
	if opts.made != nil {
		close(opts.made)
	}
	if err != nil {
		return wave, err
	}
	for _, pool := range pools {
		wave.Latencies = append(wave.Latencies, pool.seconds)
	}
	if wave.ToMade, err = s.costSince(before, last.Sub(began)); err != nil {
		return wave, err
	}
	s.say("%s: made them in %.1f s: %.1f pools/s", s.subject.Name(), wave.ToMade.Seconds, float64(wave.Pools)/wave.ToMade.Seconds)
	if opts.untilIdle {
		idle, err := s.idle(ctx, idleSpan)
		if err != nil {
			return wave, err
		}
		if wave.ToIdle, err = s.costSince(before, idle.Sub(began)); err != nil {
			return wave, err
		}
		s.say("%s: idle after %.0f s", s.subject.Name(), wave.ToIdle.Seconds)
	}
	if wave.Memory, err = s.memory(); err != nil {
		return wave, err
	}
	calls, err := s.calls(ctx, mark)
	wave.Traffic = trafficOf(calls)
	return wave, err
}

// wanted is a pool that is to be made.
type wanted struct {
	id    string
	there *presence.Expectation
	// asked is when it was asked for, seconds how long it then took.
	asked   time.Time
	seconds float64
}

// expect watches for the objects of pools.
func (s *stage) expect(ids []string) ([]wanted, error) {
	pools := make([]wanted, 0, len(ids))
	for _, id := range ids {
		keys, err := s.keys(id)
		if err != nil {
			return nil, err
		}
		pools = append(pools, wanted{id: id, there: s.watch.Expect(presence.There, keys...)})
	}
	return pools, nil
}

// make asks for all pools and returns when the last object was seen.
func (s *stage) make(ctx context.Context, pools []wanted) (last time.Time, err error) {
	if err := s.ask(ctx, pools); err != nil {
		return last, err
	}
	for i := range pools {
		at, err := pools[i].there.Wait(ctx, patience(len(pools)))
		if err != nil {
			return last, fmt.Errorf("pool %s: %w", pools[i].id, err)
		}
		pools[i].seconds = at.Sub(pools[i].asked).Seconds()
		if at.After(last) {
			last = at
		}
	}
	return last, nil
}

func (s *stage) ask(ctx context.Context, pools []wanted) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(s.subject.Workers())
	for i := range pools {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			pools[i].asked = time.Now()
			if err := s.subject.Make(ctx, pools[i].id); err != nil {
				return fmt.Errorf("make pool %s with %s: %w", pools[i].id, s.subject.Name(), err)
			}
			return nil
		})
	}
	return group.Wait()
}

func (s *stage) costSince(before report.CPU, passed time.Duration) (report.Cost, error) {
	now, err := s.cpu()
	return report.Cost{Seconds: passed.Seconds(), CPU: report.CPU{
		APIServer:         now.APIServer - before.APIServer,
		Etcd:              now.Etcd - before.Etcd,
		ControllerManager: now.ControllerManager - before.ControllerManager,
		Subject:           now.Subject - before.Subject,
		Benchmark:         now.Benchmark - before.Benchmark,
	}}, err
}

// calls returns the subject's requests since the mark.
func (s *stage) calls(ctx context.Context, mark harness.Mark) (audit.Calls, error) {
	return audit.Since(ctx, s.Cluster, mark, s.subject.UserAgents())
}

func trafficOf(calls audit.Calls) report.Traffic {
	return report.Traffic{
		Requests: len(calls), Writes: calls.Writes(), Reads: calls.Reads(), ReadsBeforeWrites: calls.ReadsBeforeWrites(),
		ByKind: calls.ByKind(),
	}
}

func isNoWatch(call harness.Call) bool { return call.Verb != "watch" }

// isAboutSecrets is true for reads, lists and watches of pools' Secrets.
func isAboutSecrets(call harness.Call) bool {
	return call.ObjectRef.Resource == "secrets" && !call.Write()
}
