//go:build chaos

package chaos

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

// action is the kind of a step.
type action string

// What users do. Administrators meddle with the objects of a pool.
const (
	createPool   action = "create"
	changePool   action = "change"
	deletePool   action = "delete"
	recreatePool action = "delete and create at once"
	meddle       action = "meddle"
)

// What befalls the cluster.
const (
	killOperator action = "kill an operator"
	pauseServer  action = "pause the API server"
	cutWatches   action = "cut all connections of the operators"
)

// Of a hundred steps, so many befall the cluster. A dead leader's Lease takes 15 s to run out: with more kills there would
// hardly ever be an operator that acts.
const (
	killShare  = 1
	pauseShare = 2
	cutShare   = 5
)

const (
	// meanGap is the average time between two steps. A pool takes about a second to become ready, and 10 s to go: many
	// steps meet one that still deals with an earlier one.
	meanGap = 200 * time.Millisecond

	// The API server stands still for a time between these two. Operators give up leadership after 10 s.
	shortestPause, longestPause = 200 * time.Millisecond, 5 * time.Second
)

// images is how many tags of the CPA image there are. Tag 0 cannot be pulled.
const images = 5

// want is what the user asks of a pool.
type want struct {
	exists  bool
	suspend bool
	// image is the tag of the CPA image.
	image int
	// cpu is CPA's request in units of 100m.
	cpu int
}

// pool returns the SubPool that says so.
func (w want) pool(id string) *v1alpha1.SubPool {
	pool := harness.NewPool(id, w.cpaImage(), managerImage, harness.Resources("100m", "128Mi", "2", "256Mi"))
	pool.Name = id
	pool.Spec.Suspend = w.suspend
	pool.Spec.CPA.Resources = harness.Resources(w.cpuRequest(), "128Mi", "2", "256Mi")
	return pool
}

const managerImage = "registry.example.invalid/subrelay/cpa-manager:v1"

func (w want) cpaImage() v1alpha1.ImageReference {
	tag := fmt.Sprintf("v%d", w.image)
	if w.image == 0 {
		tag = harness.BrokenTag
	}
	return v1alpha1.ImageReference("registry.example.invalid/subrelay/cpa:" + tag)
}

func (w want) cpuRequest() string { return fmt.Sprintf("%d00m", w.cpu) }

func (w want) String() string {
	return fmt.Sprintf("%s, %s cpu, suspend=%t", w.cpaImage(), w.cpuRequest(), w.suspend)
}

// step is one thing that happens. It depends on nothing but the seed.
type step struct {
	action action
	// gap is the time to the next step.
	gap time.Duration

	// pool is the index of the pool, want what its user wants from now on.
	pool int
	want want
	// meddling is what is done to an object of the pool.
	meddling meddling

	// operator is the index of the process to kill.
	operator int
	// pause is how long the API server stands still.
	pause time.Duration
}

func (s step) String() string {
	switch s.action {
	case createPool, changePool, recreatePool:
		return fmt.Sprintf("%s: %s", s.action, s.want)
	case meddle:
		return s.meddling.String()
	case pauseServer:
		return fmt.Sprintf("%s for %s", s.action, s.pause)
	case killOperator:
		return fmt.Sprintf("%s: %d", s.action, s.operator)
	default:
		return string(s.action)
	}
}

// poolID names a pool of the plan.
func poolID(index int) string { return fmt.Sprintf("chaos-%02d", index) }

// planner makes steps that fit what users want already.
type planner struct {
	*rand.Rand
	wants []want
}

// newPlan returns the steps of a run, and what users want at its end. No pool is left with an image that cannot be pulled.
func newPlan(seed uint64, pools, steps int) ([]step, []want) {
	p := &planner{Rand: rand.New(rand.NewPCG(seed, 0)), wants: make([]want, pools)}
	var plan []step
	for range steps {
		plan = append(plan, p.next())
	}
	for i := range p.wants {
		if p.wants[i].exists && p.wants[i].image == 0 {
			p.wants[i].image = 1
			plan = append(plan, step{action: changePool, pool: i, want: p.wants[i]})
		}
	}
	return plan, p.wants
}

func (p *planner) next() step {
	s := step{gap: time.Duration(p.Int64N(int64(2 * meanGap)))}
	switch dice := p.IntN(100); {
	case dice < killShare:
		s.action, s.operator = killOperator, p.IntN(operators)
	case dice < killShare+pauseShare:
		s.action = pauseServer
		s.pause = shortestPause + time.Duration(p.Int64N(int64(longestPause-shortestPause)))
	case dice < killShare+pauseShare+cutShare:
		s.action = cutWatches
	default:
		s.pool = p.IntN(len(p.wants))
		p.poolStep(&s, &p.wants[s.pool])
	}
	return s
}

// poolStep chooses what happens to a pool and notes what its user wants then.
func (p *planner) poolStep(s *step, w *want) {
	fresh := want{exists: true, image: p.IntN(images), cpu: 1 + p.IntN(5)}
	switch dice := p.IntN(10); {
	case !w.exists:
		s.action, *w = createPool, fresh
	case dice == 0:
		s.action, *w = deletePool, want{}
	case dice == 1:
		s.action, *w = recreatePool, fresh
	case dice < 4:
		s.action, w.image = changePool, fresh.image
	case dice == 4:
		s.action, w.cpu = changePool, fresh.cpu
	case dice == 5:
		s.action, w.suspend = changePool, !w.suspend
	default:
		s.action, s.meddling = meddle, meddlings[p.IntN(len(meddlings))]
	}
	s.want = *w
}
