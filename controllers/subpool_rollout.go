package controllers

import (
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"

	"github.com/example-org/subrelay-operator/internal/subpool"
)

const (
	// turnDelay is how soon a pool that waits for its turn asks again; with jitter, up to twice that.
	turnDelay = 30 * time.Second

	// restartBudget is how long a restart counts against the limit: a pool that does not come back must not keep all
	// others waiting.
	restartBudget = 5 * time.Minute
)

// rollouts limit how many Ready pools are restarted at a time because a new operator configuration or version changes
// their Pods. What a pool's user changes is never held up. A new process starts counting anew. The zero value is ready to
// use.
type rollouts struct {
	mu    sync.Mutex
	since map[string]time.Time // by pool id; when its restart began
}

// admit tells whether it is the pool's turn, and if so counts its restart.
func (r *rollouts) admit(poolID string, most int32, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.since == nil {
		r.since = map[string]time.Time{}
	}
	for id, began := range r.since {
		if now.Sub(began) > restartBudget {
			delete(r.since, id)
		}
	}
	if _, counted := r.since[poolID]; counted {
		return true
	}
	if len(r.since) >= int(most) {
		return false
	}
	r.since[poolID] = now
	return true
}

// finish is for a pool that is back, or gone.
func (r *rollouts) finish(poolID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.since, poolID)
}

// mustWait tells whether the new workload would restart a pool whose turn has not come.
func (r *SubPoolReconciler) mustWait(seen *observation, in subpool.Input, workload *appsv1ac.StatefulSetApplyConfiguration) bool {
	if !restartsUnasked(seen, in, workload) {
		return false
	}
	return !r.rollouts.admit(seen.pool.Name, *in.Config.Runtime.MaxRestarting, seen.now)
}

// restartsUnasked: a Ready Pod would be replaced although neither the SubPool nor the Secret is another one than before.
func restartsUnasked(seen *observation, in subpool.Input, workload *appsv1ac.StatefulSetApplyConfiguration) bool {
	return seen.workload != nil && !seen.pool.Spec.Suspend && podReady(seen.pod) &&
		subpool.Restarts(seen.workload, workload) &&
		seen.pool.Generation == seen.pool.Status.ObservedGeneration &&
		subpool.RunsWith(seen.workload, in.Credentials)
}

// settled: the Pod that runs is of the newest template, and Ready.
func settled(workload *appsv1.StatefulSet, pod *corev1.Pod) bool {
	return rolledOut(workload) && podReady(pod)
}
