package controllers

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/internal/subpool"
)

// assessWorkload says whether the runtime Pod is Ready on the current revision and reachable through both
// Services, or names the first thing in its way, in the order in which a Pod comes up.
func assessWorkload(seen *observation, done outcome) verdict {
	if seen.pool.Spec.Suspend {
		return suspendedWorkload(seen)
	}
	workload, pod := seen.workload, seen.pod
	switch {
	case workload == nil && !done.workloadWritten:
		return no(v1alpha1.ReasonWorkloadMissing, "StatefulSet %s does not exist yet", subpool.RuntimeName)
	case workload == nil:
		return starting()
	case done.workloadWritten:
		return notReady("StatefulSet %s was changed, its Pod has yet to follow", subpool.RuntimeName)
	case pod == nil:
		return missingPod(seen)
	}
	if problem := assessPod(seen); !problem.ok() {
		return problem
	}
	if !rolledOut(workload) || pod.Labels[appsv1.StatefulSetRevisionLabel] != workload.Status.UpdateRevision {
		return notReady("Pod %s runs an older revision and is being replaced", pod.Name)
	}
	if workload.Status.ReadyReplicas < 1 {
		return notReady("Pod %s became ready, the StatefulSet has not counted it yet", pod.Name)
	}
	for _, name := range []string{subpool.CPAName, subpool.CPAManagerName} {
		if !seen.hasService(name) && !slices.Contains(done.servicesWritten, name) {
			return no(v1alpha1.ReasonServiceMissing, "Service %s does not exist yet", name)
		}
	}
	if done.restartPending {
		return verdict{metav1.ConditionTrue, v1alpha1.ReasonRestartPending, "Pod " + pod.Name + " is Ready; " +
			"a new operator configuration or version changes it, and it is restarted when it is this pool's turn"}
	}
	return yes(v1alpha1.ReasonReplicaReady)
}

func suspendedWorkload(seen *observation) verdict {
	if seen.pod != nil {
		return no(v1alpha1.ReasonSuspended, "%s", stopping(seen.pod))
	}
	return no(v1alpha1.ReasonSuspended, "no Pod runs")
}

// missingPod repeats why the StatefulSet controller cannot make the Pod.
func missingPod(seen *observation) verdict {
	refusal := seen.warning
	switch {
	case refusal == nil && seen.now.Sub(seen.workload.CreationTimestamp.Time) < warningAge:
		return starting()
	case refusal == nil:
		return notReady("Pod %s does not exist yet; if it stays so, see: kubectl -n %s describe statefulset %s",
			subpool.PodName(), seen.workload.Namespace, subpool.RuntimeName)
	case strings.Contains(refusal.Message, "exceeded quota"):
		return no(v1alpha1.ReasonQuotaExceeded, "Pod %s is refused: %s", subpool.PodName(), refusal.Message)
	case strings.Contains(refusal.Message, "violates PodSecurity"):
		return no(v1alpha1.ReasonPodSecurityViolation, "Pod %s is refused: %s", subpool.PodName(), refusal.Message)
	default:
		return no(v1alpha1.ReasonPodRefused, "Pod %s is refused: %s", subpool.PodName(), refusal.Message)
	}
}

// starting says the same until there is something to say: each change of the words is a write.
func starting() verdict { return notReady("Pod %s is starting", subpool.PodName()) }

func notReady(format string, args ...any) verdict {
	return no(v1alpha1.ReasonWorkloadsNotReady, format, args...)
}

// rolledOut: the StatefulSet controller has seen the current template and nothing of an older one is left.
func rolledOut(workload *appsv1.StatefulSet) bool {
	return workload != nil &&
		workload.Status.ObservedGeneration >= workload.Generation &&
		workload.Status.CurrentRevision == workload.Status.UpdateRevision
}
