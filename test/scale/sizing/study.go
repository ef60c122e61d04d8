package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/test/harness"
	"github.com/example-org/subrelay-operator/test/scale/internal/load"
	"github.com/example-org/subrelay-operator/test/scale/internal/usage"
)

// foreignNamespace is where the objects of others are.
const foreignNamespace = "foreign"

// study runs the operator and notes what it takes in one situation after the other.
type study struct {
	cluster  *harness.Cluster
	scraper  *usage.Scraper
	operator *harness.Operator
	rows     []row
	begun    time.Time

	// What the operator's process had taken, and where the audit log was, when the situation began.
	before usage.Usage
	mark   harness.Mark
	since  time.Time
}

func newStudy(ctx context.Context, cluster *harness.Cluster) (*study, error) {
	scraper, err := usage.NewScraper(ctx, cluster)
	if err != nil {
		return nil, err
	}
	s := &study{cluster: cluster, scraper: scraper, begun: time.Now()}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// start begins a situation with a fresh process.
func (s *study) start(ctx context.Context) error {
	if err := s.begin(ctx, usage.Usage{}); err != nil {
		return err
	}
	operator, err := s.cluster.StartOperator(ctx, "--zap-log-level=info")
	if err != nil {
		return err
	}
	s.operator = operator
	return nil
}

func (s *study) restart(ctx context.Context) error {
	if err := s.end(); err != nil {
		return err
	}
	return s.start(ctx)
}

func (s *study) end() error { return s.operator.Stop() }

func (s *study) begin(ctx context.Context, before usage.Usage) (err error) {
	s.before, s.since = before, time.Now()
	s.mark, err = s.cluster.Audit.Mark(ctx)
	return err
}

// run goes through all situations.
func (s *study) run(ctx context.Context, opts options) error {
	if err := s.note(ctx, "no pool"); err != nil {
		return err
	}
	first := opts.pools / 10
	for _, wave := range []struct{ from, to int }{{0, first}, {first, opts.pools}} {
		if err := s.makePools(ctx, wave.from, wave.to); err != nil {
			return err
		}
		if err := s.note(ctx, fmt.Sprintf("%s pools, made by this process", grouped(wave.to))); err != nil {
			return err
		}
	}
	if err := s.restart(ctx); err != nil {
		return err
	}
	if err := s.note(ctx, fmt.Sprintf("%s pools, started anew", grouped(opts.pools))); err != nil {
		return err
	}
	return s.addForeign(ctx, opts)
}

func (s *study) makePools(ctx context.Context, from, to int) error {
	now, err := usage.OfProcess(s.operator.PID())
	if err != nil {
		return err
	}
	if err := s.begin(ctx, now); err != nil {
		return err
	}
	if err := load.Create(ctx, s.cluster.Admin, from, to-from, load.Pool); err != nil {
		return err
	}
	return load.AwaitReady(ctx, s.cluster.Admin, to, func(ready int) { s.say("%d of %d pools are Ready", ready, to) })
}

// addForeign adds objects of others, kind by kind, and starts the operator anew after each: what it keeps of them it has read
// by then.
func (s *study) addForeign(ctx context.Context, opts options) error {
	foreign := load.Foreign{Namespace: foreignNamespace}
	if err := load.Namespace(ctx, s.cluster.Admin, foreignNamespace); err != nil {
		return err
	}
	type kind struct {
		count  int
		object func(int) client.Object
	}
	for _, addition := range []struct {
		text  string
		kinds []kind
	}{
		{
			fmt.Sprintf("and %s Secrets and %s ConfigMaps of 100 KB", grouped(opts.large), grouped(opts.large)),
			[]kind{{opts.large, foreign.Secret}, {opts.large, foreign.ConfigMap}},
		},
		{fmt.Sprintf("and %s Pods", grouped(opts.foreign)), []kind{{opts.foreign, foreign.Pod}}},
		{fmt.Sprintf("and %s NetworkPolicies", grouped(opts.foreign)), []kind{{opts.foreign, foreign.NetworkPolicy}}},
		{fmt.Sprintf("and %s HTTPRoutes", grouped(opts.foreign)), []kind{{opts.foreign, foreign.HTTPRoute}}},
	} {
		s.say("making more objects of others: %s", addition.text)
		for _, kind := range addition.kinds {
			if err := load.Create(ctx, s.cluster.Admin, 0, kind.count, kind.object); err != nil {
				return err
			}
		}
		if err := s.restart(ctx); err != nil {
			return err
		}
		if err := s.note(ctx, addition.text); err != nil {
			return err
		}
	}
	return nil
}

// note ends a situation: it waits until the operator is idle and keeps what it has taken.
func (s *study) note(ctx context.Context, situation string) error {
	s.say("waiting until the operator is idle: %s", situation)
	idle, err := s.awaitIdle(ctx)
	if err != nil {
		return err
	}
	now, err := usage.OfProcess(s.operator.PID())
	if err != nil {
		return err
	}
	calls, err := s.cluster.Audit.OperatorCalls(ctx, s.mark, func(call harness.Call) bool {
		return call.TokenID() == s.operator.TokenID && call.ObjectRef.Resource != "leases"
	})
	if err != nil {
		return err
	}
	if now.LiveHeap, err = s.liveHeap(ctx); err != nil {
		return err
	}
	// Right before a collection is when a process holds most.
	after, err := usage.OfProcess(s.operator.PID())
	if err != nil {
		return err
	}
	now.Peak = after.Peak
	found := row{situation: situation, usage: now, cpu: now.CPU - s.before.CPU, took: idle.Sub(s.since), requests: len(calls)}
	for _, call := range calls {
		if call.Write() {
			found.writes++
		}
	}
	s.rows = append(s.rows, found)
	s.say("%s", found)
	return nil
}

func (s *study) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "[%4.0fs] %s\n", time.Since(s.begun).Seconds(), fmt.Sprintf(format, args...))
}
