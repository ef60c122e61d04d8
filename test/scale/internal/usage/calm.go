package usage

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Calm is what counts as calm: for a span, no process takes more than its share of a core.
type Calm struct {
	Span     time.Duration
	Patience time.Duration
	// Most is how much of one core each process may take, by its id.
	Most map[int]float64
}

// calmTick is how often processes are looked at.
const calmTick = 250 * time.Millisecond

// sample is what processes had taken at some time.
type sample struct {
	at  time.Time
	cpu map[int]time.Duration
}

// Await returns when the processes have come to rest: the beginning of the first calm span.
func (c Calm) Await(ctx context.Context) (time.Time, error) {
	var samples []sample
	var calm time.Time
	err := wait.PollUntilContextTimeout(ctx, calmTick, c.Patience, true, func(context.Context) (bool, error) {
		now := sample{at: time.Now(), cpu: map[int]time.Duration{}}
		for pid := range c.Most {
			used, err := OfProcess(pid)
			if err != nil {
				return false, err
			}
			now.cpu[pid] = used.CPU
		}
		samples = append(samples, now)
		for len(samples) > 1 && now.at.Sub(samples[1].at) >= c.Span {
			samples = samples[1:]
		}
		calm = samples[0].at
		return now.at.Sub(calm) >= c.Span && c.busy(samples[0], now) == 0, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		err = fmt.Errorf("the machine did not become calm within %s: process %d takes too much",
			c.Patience, c.busy(samples[0], samples[len(samples)-1]))
	}
	return calm, err
}

// busy returns a process that took more than its share, or 0.
func (c Calm) busy(first, last sample) int {
	took := last.at.Sub(first.at).Seconds()
	for pid, most := range c.Most {
		if (last.cpu[pid] - first.cpu[pid]).Seconds() > most*took {
			return pid
		}
	}
	return 0
}

// OfSelf returns the CPU time of this process and of those of its children that have ended.
func OfSelf() (time.Duration, error) {
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var used syscall.Rusage
		if err := syscall.Getrusage(who, &used); err != nil {
			return 0, fmt.Errorf("read what this process has taken: %w", err)
		}
		sum += time.Duration(used.Utime.Nano() + used.Stime.Nano())
	}
	return sum, nil
}
