package report

import (
	"math"
	"slices"
)

// slack is how far a rate or a latency may miss its bound, since the machine is shared.
const slack = 0.25

const (
	milli    = 1000.0
	mebibyte = 1 << 20
)

// figure is one number of a run, and what it should be.
type figure struct {
	name   string
	digits int
	// value is false if it was not measured.
	value func(Run) (float64, bool)
	// must and aim are bounds by the number of pools and of objects of a pool; nil means there are none.
	must, aim bound
	// from is the least number of pools at which the bounds hold.
	from int
	// more tells that more is better, noisy that there is slack.
	more, noisy bool
}

type bound func(pools, objects int) float64

func fixed(value float64) bound { return func(int, int) float64 { return value } }

func perObject(more float64) bound {
	return func(_, objects int) float64 { return float64(objects) + more }
}

// growing is a bound at 1,000 pools that grows with each further 1,000.
func growing(first, further float64) bound {
	return func(pools, _ int) float64 { return first + further*float64(pools-1000)/1000 }
}

// figures are those with goals, ratios first.
var figures = []figure{
	{
		name: "pools/s created ÷ plain create with 8 workers", digits: 2, value: rateRatio,
		must: fixed(0.60), aim: fixed(0.75), from: 200, more: true, noisy: true,
	},
	{
		name: "CPU of all per pool, create to idle ÷ plain create", digits: 2, value: cpuRatio,
		must: fixed(1.35), aim: fixed(1.20),
	},
	{
		name: "one new pool on an idle cluster, p50, ms", digits: 0, value: ofAlone(0.5),
		must: fixed(120), aim: fixed(60), noisy: true,
	},
	{name: "one new pool on an idle cluster, worst of 20, ms", digits: 0, value: ofAlone(1)},
	{
		name: "operator's requests per pool, create to idle", digits: 1,
		value: ofCreate(func(w Wave) float64 { return w.each(w.Requests) }),
		must:  perObject(4), aim: perObject(2),
	},
	{
		name: "reads before writes per pool", digits: 2, value: ofCreate(func(w Wave) float64 { return w.each(w.ReadsBeforeWrites) }),
		must: fixed(0), aim: fixed(0),
	},
	{
		name: "operator's own CPU per pool, create to idle, ms", digits: 1,
		value: ofCreate(func(w Wave) float64 { return w.ToIdle.CPU.Own() / float64(w.Pools) * milli }),
		must:  fixed(30), aim: fixed(15),
	},
	{
		name: "requests in the quiet window", digits: 0, value: requestsWhenQuiet,
		must: fixed(0), aim: fixed(0),
	},
	{
		name: "deleted or edited object back, p50, ms", digits: 0, value: ofRepairs(idleRepairs, 0.5),
		must: fixed(25), aim: fixed(12), noisy: true,
	},
	{
		name: "deleted or edited object back, worst, ms", digits: 0, value: ofRepairs(idleRepairs, 1),
		must: fixed(100), aim: fixed(30), noisy: true,
	},
	{
		name: "the same while as many pools again are being made, p99, ms", digits: 0, value: ofRepairs(busyRepairs, 0.99),
		must: fixed(500), aim: fixed(150), noisy: true,
	},
	{
		name: "requests for one repair, median", digits: 1, value: requestsOfRepair,
		must: fixed(3), aim: fixed(1),
	},
	{
		name: "peak resident memory after the wave, MiB", digits: 0,
		value: ofCreate(func(w Wave) float64 { return float64(w.Peak) / mebibyte }),
		must:  growing(120, 70), aim: growing(80, 35), from: 1000,
	},
	{
		name: "resident memory of each further 1,000 pools, MiB", digits: 0, value: furtherMemory,
		must: fixed(70), aim: fixed(35), from: 1000,
	},
	{
		name: "restart: idle after, s", digits: 1, value: ofRestart(func(r Restart, _ int) float64 { return r.Seconds }),
		must: fixed(10), aim: fixed(4), noisy: true,
	},
	{
		name: "restart: requests until idle, without one check of each Secret", digits: 0,
		value: ofRestart(func(r Restart, pools int) float64 { return float64(r.Requests - min(r.SecretReads, pools)) }),
		must:  fixed(100), aim: fixed(100),
	},
	{
		name: "restart: requests for each Secret until idle", digits: 2,
		value: ofRestart(func(r Restart, pools int) float64 { return perPool(r.SecretReads, pools) }),
		must:  fixed(1), aim: fixed(0),
	},
	{
		name: "restart: writes", digits: 0, value: ofRestart(func(r Restart, _ int) float64 { return float64(r.Writes) }),
		must: fixed(0), aim: fixed(0),
	},
	{
		name: "restart: a pool asked for at once has its objects after, s", digits: 1,
		value: ofRestart(func(r Restart, _ int) float64 { return r.Fresh }),
	},
}

func perPool(count, pools int) float64 { return float64(count) / float64(pools) }

// each is a count per pool.
func (w Wave) each(count int) float64 { return perPool(count, w.Pools) }

// rate is in pools per second.
func (w Wave) rate() float64 { return float64(w.Pools) / w.ToMade.Seconds }

// reference returns the plain waves that others are compared with: see Reference.
func (r Run) reference() []Wave {
	waves := slices.Concat(r.Before, r.After)
	return slices.DeleteFunc(waves, func(w Wave) bool { return w.Subject != Reference })
}

// relative returns a value of a wave as a multiple of the mean of the references.
func (r Run) relative(wave Wave, value func(Wave) float64) (float64, bool) {
	references := r.reference()
	if len(references) == 0 {
		return 0, false
	}
	values := make([]float64, 0, len(references))
	for _, reference := range references {
		values = append(values, value(reference))
	}
	ratio := value(wave) / mean(values)
	return ratio, !math.IsNaN(ratio) && !math.IsInf(ratio, 0)
}

func allCPU(w Wave) float64 { return w.ToIdle.CPU.All() / float64(w.Pools) }

func rateRatio(r Run) (float64, bool) {
	if r.Operator.Create == nil {
		return 0, false
	}
	return r.relative(*r.Operator.Create, Wave.rate)
}

func cpuRatio(r Run) (float64, bool) {
	if r.Operator.Create == nil {
		return 0, false
	}
	return r.relative(*r.Operator.Create, allCPU)
}

func ofCreate(value func(Wave) float64) func(Run) (float64, bool) {
	return func(r Run) (float64, bool) {
		if r.Operator.Create == nil {
			return 0, false
		}
		return value(*r.Operator.Create), true
	}
}

func ofAlone(share float64) func(Run) (float64, bool) {
	return func(r Run) (float64, bool) {
		if len(r.Operator.Alone) == 0 {
			return 0, false
		}
		return Quantile(r.Operator.Alone, share) * milli, true
	}
}

func requestsWhenQuiet(r Run) (float64, bool) {
	if r.Operator.Steady == nil {
		return 0, false
	}
	return float64(r.Operator.Steady.Requests), true
}

func idleRepairs(o Operator) []Repair { return o.Repairs }

func busyRepairs(o Operator) []Repair {
	if o.Busy == nil {
		return nil
	}
	return o.Busy.Repairs
}

func ofRepairs(choose func(Operator) []Repair, share float64) func(Run) (float64, bool) {
	return func(r Run) (float64, bool) {
		repairs := choose(r.Operator)
		if len(repairs) == 0 {
			return 0, false
		}
		return Quantile(secondsOf(repairs), share) * milli, true
	}
}

func secondsOf(repairs []Repair) []float64 {
	seconds := make([]float64, 0, len(repairs))
	for _, repair := range repairs {
		seconds = append(seconds, repair.Seconds)
	}
	return seconds
}

func requestsOfRepair(r Run) (float64, bool) {
	if len(r.Operator.Repairs) == 0 {
		return 0, false
	}
	counts := make([]float64, 0, len(r.Operator.Repairs))
	for _, repair := range r.Operator.Repairs {
		counts = append(counts, float64(repair.Requests))
	}
	return Median(counts), true
}

func furtherMemory(r Run) (float64, bool) {
	busy := r.Operator.Busy
	if busy == nil {
		return 0, false
	}
	more := float64(busy.Wave.Resident) - float64(busy.Before.Resident)
	return more / mebibyte / float64(busy.Wave.Pools) * 1000, true
}

func ofRestart(value func(restart Restart, pools int) float64) func(Run) (float64, bool) {
	return func(r Run) (float64, bool) {
		if r.Operator.Restart == nil {
			return 0, false
		}
		return value(*r.Operator.Restart, r.Pools), true
	}
}
