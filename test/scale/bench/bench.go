package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/example-org/subrelay-operator/test/harness"
	"github.com/example-org/subrelay-operator/test/scale/bench/report"
	"github.com/example-org/subrelay-operator/test/scale/internal/peers"
	"github.com/example-org/subrelay-operator/test/scale/internal/subject"
	"github.com/example-org/subrelay-operator/test/scale/internal/usage"
)

// bench goes through all rounds.
type bench struct {
	options
	begun   time.Time
	results report.Results
	// program is the operator's.
	program string
	// where is what progress is about.
	where string
}

func newBench(ctx context.Context, opts options) (*bench, error) {
	machine, err := usage.DescribeMachine()
	if err != nil {
		return nil, err
	}
	program, err := harness.Program("MANAGER", "manager")
	if err != nil {
		return nil, err
	}
	version, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("ask the operator for its version: %w", err)
	}
	if err := os.MkdirAll(opts.out, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of --out: %w", err)
	}
	fresh := report.Results{
		Started: time.Now().UTC(), Operator: strings.TrimSpace(string(version)), Machine: machine, Quiet: opts.quiet,
	}
	results, err := continued(opts.out, fresh)
	return &bench{options: opts, begun: time.Now(), program: program, results: results}, err
}

// run keeps what it has after each round, so that a failure costs only one. Rounds at different numbers of pools take turns.
func (b *bench) run(ctx context.Context) error {
	earlier := map[int]int{}
	for _, run := range b.results.Runs {
		earlier[run.Pools] = max(earlier[run.Pools], run.Round)
	}
	for round := 1; round <= b.rounds; round++ {
		for _, pools := range b.pools {
			b.where = fmt.Sprintf("N=%d, round %d of %d", pools, round, b.rounds)
			run := report.Run{Pools: pools, Round: earlier[pools] + round, Unmeasured: map[string]string{}}
			err := b.measure(ctx, &run)
			b.results.Runs = append(b.results.Runs, run)
			if err := errors.Join(err, b.save()); err != nil {
				return fmt.Errorf("%s: %w", b.where, err)
			}
		}
	}
	return nil
}

// measure fills in one round at one number of pools.
func (b *bench) measure(ctx context.Context, run *report.Run) (err error) {
	if b.wants("limit") {
		if run.Before, err = b.limit(ctx, run.Pools); err != nil {
			return err
		}
	}
	if b.wants("create", "steady", "restart", "heal", "change", "delete") {
		if err := b.measureOperator(ctx, run.Pools, &run.Operator); err != nil {
			return err
		}
	}
	if b.wants("limit") {
		if run.After, err = b.limit(ctx, run.Pools); err != nil {
			return err
		}
	}
	if b.peers && b.wants("peers") && run.Pools <= mostForPeers {
		return b.measurePeers(ctx, run)
	}
	return nil
}

// limit measures plain writes. Only the reference is watched until idle; the others tell which verb and how many workers are best.
func (b *bench) limit(ctx context.Context, pools int) ([]report.Wave, error) {
	var waves []report.Wave
	for _, plain := range plainSubjects() {
		reference := plain.Name() == report.Reference
		if !reference && (pools > mostForPeers || !b.wants("variants")) {
			continue
		}
		err := b.on(ctx, plain, func(s *stage) error {
			wave, err := s.wave(ctx, waveOptions{ids: poolIDs("pool", pools), untilIdle: reference})
			if err == nil {
				waves = append(waves, wave)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return waves, nil
}

// measurePeers goes on after one that fails, unless that was because of an interrupt.
func (b *bench) measurePeers(ctx context.Context, run *report.Run) error {
	for _, peer := range peers.All() {
		err := b.on(ctx, peer, func(s *stage) error {
			wave, err := s.wave(ctx, waveOptions{ids: poolIDs("pool", run.Pools), untilIdle: true})
			if err == nil {
				run.Peers = append(run.Peers, wave)
			}
			return err
		})
		if ctx.Err() != nil {
			return err
		}
		if err != nil {
			reason, _, _ := strings.Cut(err.Error(), "\n") // logs and the like may follow
			run.Unmeasured[peer.Name()] = reason
			b.say("%s is not measured: %v", peer.Name(), err)
		}
	}
	return nil
}

// on measures a subject on a fresh control plane.
func (b *bench) on(ctx context.Context, subject subject.Subject, measure func(*stage) error) (err error) {
	b.say("%s: starting a control plane", subject.Name())
	stage, err := openStage(ctx, subject)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.close()) }()
	stage.say = b.say
	if b.results.Objects == 0 {
		b.results.Objects = stage.objects
	}
	if err := stage.start(ctx); err != nil {
		return err
	}
	return measure(stage)
}

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "[%5.0fs] %s: %s\n", time.Since(b.begun).Seconds(), b.where, fmt.Sprintf(format, args...))
}
