package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/internal/subpool"
)

// maxMessage is the API's limit for a condition's message, in bytes.
const maxMessage = 32768

// verdict is one condition before it is dated.
type verdict struct {
	status  metav1.ConditionStatus
	reason  string
	message string
}

func yes(reason string) verdict { return verdict{metav1.ConditionTrue, reason, ""} }

func no(reason, format string, args ...any) verdict {
	return verdict{metav1.ConditionFalse, reason, fmt.Sprintf(format, args...)}
}

func (v verdict) ok() bool { return v.status == metav1.ConditionTrue }

// assess turns what was seen and done into the pool's new status. It keeps the dates of conditions that
// did not change.
func assess(seen *observation, done outcome) v1alpha1.SubPoolStatus {
	pool := seen.pool
	status := *pool.Status.DeepCopy()
	status.ObservedGeneration = pool.Generation
	status.Namespace = subpool.NamespaceName(pool.Name)
	status.Images = runningImages(seen.pod)
	status.Hostname = ""
	if seen.config != nil {
		status.OperatorConfiguration = &v1alpha1.OperatorConfigurationReference{
			Name: seen.config.Name, Hash: seen.config.Hash,
		}
		if pool.Spec.Exposure.Mode == v1alpha1.ExposureGateway {
			status.Hostname = subpool.Hostname(pool.Name, seen.config.Config.BaseDomain)
		}
	}

	isolation, workload, proxy, exposure := assessIsolation(seen), assessWorkload(seen, done), assessProxy(seen), assessExposure(seen)
	problems := []verdict{blockedVerdict(done), suspendedVerdict(pool), workload, proxy, exposure}
	if keepsFromReady(isolation) {
		problems = slices.Insert(problems, 2, isolation)
	}
	ready := firstProblem(problems...)

	conditions := conditionSet{&status.Conditions, pool.Generation}
	conditions.set(v1alpha1.ConditionReady, ready)
	conditions.set(v1alpha1.ConditionIsolationEnforced, isolation)
	conditions.set(v1alpha1.ConditionWorkloadReady, workload)
	conditions.set(v1alpha1.ConditionProxyReady, proxy)
	conditions.set(v1alpha1.ConditionExposureReady, exposure)
	conditions.set(v1alpha1.ConditionSuspended, suspension(pool))
	stalled := done.blocked != nil && done.blocked.stalled
	conditions.setIf(stalled, v1alpha1.ConditionStalled, ready)
	conditions.setIf(false, v1alpha1.ConditionDeleting, ready) // one from a backup
	conditions.setIf(!ready.ok() && !stalled && !pool.Spec.Suspend, v1alpha1.ConditionReconciling, ready)
	return status
}

// firstProblem is Ready: the first verdict that is not satisfied, or that nothing blocks.
func firstProblem(verdicts ...verdict) verdict {
	for _, v := range verdicts {
		if !v.ok() {
			return v
		}
	}
	return yes(v1alpha1.ReasonPoolReady)
}

func blockedVerdict(done outcome) verdict {
	switch {
	case done.blocked != nil:
		return no(done.blocked.reason, "%s", done.blocked.message)
	case done.err != nil:
		return refusal(done.err)
	default:
		return yes(v1alpha1.ReasonPoolReady)
	}
}

func suspendedVerdict(pool *v1alpha1.SubPool) verdict {
	if !pool.Spec.Suspend {
		return yes(v1alpha1.ReasonRunning)
	}
	return no(v1alpha1.ReasonSuspended,
		"spec.suspend is true: no Pod runs; namespace, volume and credentials are kept. Set it to false to resume.")
}

func suspension(pool *v1alpha1.SubPool) verdict {
	if pool.Spec.Suspend {
		return yes(v1alpha1.ReasonSuspended)
	}
	return no(v1alpha1.ReasonRunning, "")
}

func assessProxy(seen *observation) verdict {
	switch {
	case seen.config == nil:
		return verdict{metav1.ConditionUnknown, v1alpha1.ReasonOperatorConfigurationInvalid,
			"the operator configuration, which names the proxy, is unusable"}
	case seen.proxyReady:
		return yes(v1alpha1.ReasonEndpointsReady)
	default:
		return no(v1alpha1.ReasonEndpointsUnavailable, "%s", seen.proxyProblem)
	}
}

func runningImages(pod *corev1.Pod) []v1alpha1.RunningImage {
	if pod == nil {
		return nil
	}
	var images []v1alpha1.RunningImage
	for _, container := range pod.Status.ContainerStatuses {
		if container.State.Running != nil && container.ImageID != "" {
			images = append(images, v1alpha1.RunningImage{Container: container.Name, ImageID: container.ImageID})
		}
	}
	slices.SortFunc(images, func(a, b v1alpha1.RunningImage) int { return strings.Compare(a.Container, b.Container) })
	return images
}

// conditionSet writes conditions of one generation into a list.
type conditionSet struct {
	list       *[]metav1.Condition
	generation int64
}

func (c conditionSet) set(kind string, v verdict) {
	meta.SetStatusCondition(c.list, metav1.Condition{
		Type: kind, Status: v.status, Reason: v.reason,
		Message:            v.message[:min(len(v.message), maxMessage)],
		ObservedGeneration: c.generation,
	})
}

// setIf keeps a condition that is only ever True, and absent otherwise, as kstatus wants it.
func (c conditionSet) setIf(applies bool, kind string, cause verdict) {
	if !applies {
		meta.RemoveStatusCondition(c.list, kind)
		return
	}
	c.set(kind, verdict{metav1.ConditionTrue, cause.reason, cause.message})
}

// report writes the status if it changed, then tells about transitions in Events. It returns whether it wrote.
func (r *SubPoolReconciler) report(ctx context.Context, pool *v1alpha1.SubPool, status v1alpha1.SubPoolStatus) (bool, error) {
	r.Outcomes.Add(meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady).Reason)
	if equality.Semantic.DeepEqual(pool.Status, status) {
		return false, nil
	}
	patch, err := replaceStatus(pool.UID, status)
	if err != nil {
		return false, err
	}
	answer := &metav1.PartialObjectMetadata{ObjectMeta: identity(pool)}
	answer.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("SubPool"))
	if err := r.Status().Patch(ctx, answer, patch, client.FieldOwner(statusOwner)); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	r.statuses.remember(answer.ObjectMeta, status)
	r.tell(ctx, pool, status)
	return true, nil
}

// reportRefusal says in Ready what the API server refused to a pass that ended before it could judge the pool, and returns
// the error. The rest of the status stays. Conflicts, and failures to reach the server at all, pass by themselves.
func (r *SubPoolReconciler) reportRefusal(ctx context.Context, pool *v1alpha1.SubPool, err error) error {
	if err == nil || apierrors.IsConflict(err) || apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
		return err
	}
	status := *pool.Status.DeepCopy()
	conditionSet{&status.Conditions, pool.Generation}.set(v1alpha1.ConditionReady, refusal(err))
	_, reportErr := r.report(ctx, pool, status)
	return errors.Join(err, reportErr)
}

// refusal keeps the message on one line: errors.Join puts each error on a line of its own.
func refusal(err error) verdict {
	return no(v1alpha1.ReasonApplyFailed, "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
}

// replaceStatus puts the whole status in the place of whatever is there: also of what others have written, such as a tool
// that restored a backup. The UID keeps it from a SubPool that was made again under the same name.
func replaceStatus(uid types.UID, status v1alpha1.SubPoolStatus) (client.Patch, error) {
	operations, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": uid},
		{"op": "add", "path": "/status", "value": status},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot encode the status: %w", err)
	}
	return client.RawPatch(types.JSONPatchType, operations), nil
}

// asked are reasons for which a user asked.
var asked = map[string]bool{v1alpha1.ReasonSuspended: true, v1alpha1.ReasonDeletionInProgress: true}

// tell logs and emits an Event when Ready changed its status or reason, and a warning when isolation is weakened while the
// pool may go on being Ready.
func (r *SubPoolReconciler) tell(ctx context.Context, pool *v1alpha1.SubPool, status v1alpha1.SubPoolStatus) {
	if isolation := changed(pool, status, v1alpha1.ConditionIsolationEnforced); isolation != nil &&
		isolation.Status == metav1.ConditionFalse && isolation.Reason == v1alpha1.ReasonForeignNetworkPolicy {
		r.Recorder.Eventf(pool, nil, corev1.EventTypeWarning, isolation.Reason, "Reconcile", "%s", isolation.Message)
	}
	ready := changed(pool, status, v1alpha1.ConditionReady)
	if ready == nil {
		return
	}
	log.FromContext(ctx).Info("Ready changed", "status", ready.Status, "reason", ready.Reason, "message", ready.Message)
	if len(pool.Status.Conditions) == 0 && ready.Reason == v1alpha1.ReasonWorkloadsNotReady {
		return // a pool begins: an Event will say how that went
	}
	kind, note := corev1.EventTypeNormal, "the pool is ready"
	if ready.Status != metav1.ConditionTrue {
		note = ready.Message
		wasReady := meta.IsStatusConditionTrue(pool.Status.Conditions, v1alpha1.ConditionReady)
		if meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionStalled) ||
			wasReady && !asked[ready.Reason] {
			kind = corev1.EventTypeWarning
		}
	}
	r.Recorder.Eventf(pool, nil, kind, ready.Reason, "Reconcile", "%s", note)
}

// changed returns a condition of the new status if it has another status or reason than before.
func changed(pool *v1alpha1.SubPool, status v1alpha1.SubPoolStatus, kind string) *metav1.Condition {
	before, after := meta.FindStatusCondition(pool.Status.Conditions, kind), meta.FindStatusCondition(status.Conditions, kind)
	if after != nil && before != nil && before.Status == after.Status && before.Reason == after.Reason {
		return nil
	}
	return after
}

// tellOutcome emits Events about what a pass did that no condition shows. The first credentials are part of making a pool
// and nothing to tell; when there were others before, clients and administrators must use the new ones.
func (r *SubPoolReconciler) tellOutcome(seen *observation, done outcome) {
	if done.credentialsMade && seen.workload != nil {
		r.Recorder.Eventf(seen.pool, nil, corev1.EventTypeWarning, v1alpha1.EventCredentialsMade, "Reconcile",
			"the pool's Secret %s/%s was gone: made a new one with new keys",
			subpool.NamespaceName(seen.pool.Name), subpool.CredentialsName)
	}
	if len(done.policiesRestored) > 0 {
		r.Recorder.Eventf(seen.pool, nil, corev1.EventTypeWarning, v1alpha1.EventPolicyRestored, "Reconcile",
			"NetworkPolicy %s had been removed or changed and is back: traffic may have passed", strings.Join(done.policiesRestored, ", "))
	}
	if done.podReplaced != "" {
		r.Recorder.Eventf(seen.pool, nil, corev1.EventTypeNormal, v1alpha1.EventPodReplaced, "Reconcile",
			"removed Pod %s: %s", seen.pod.Name, done.podReplaced)
	}
}
