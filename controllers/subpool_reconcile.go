package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/internal/apply"
	"github.com/example-org/subrelay-operator/internal/subpool"
)

const (
	// accessDelay is how soon the credentials are tried again after the operator gave itself access to
	// them: the API server honours a new RoleBinding within milliseconds, but not at once.
	accessDelay = 100 * time.Millisecond

	// blockedDelay is how soon a blocked pool is looked at again when nothing that is watched can change
	// (a namespace that is not ours, a Secret).
	blockedDelay = time.Minute

	// checkPeriod is how often a pool is looked at although no event came: for what is not watched.
	// The jitter keeps pools that were first seen together, at a restart, from coming back together.
	checkPeriod = 10 * time.Minute
	checkJitter = 0.2
)

// outcome is what building came to.
type outcome struct {
	// blocked is why nothing, or nothing further, may be built.
	blocked *blocker
	// err joins what the API server refused; the pass is tried again with back-off.
	err error
	// credentialsMade: this pass made the Secret.
	credentialsMade bool
	// workloadWritten: this pass changed the StatefulSet, so what was seen of it and its Pod is out of date.
	workloadWritten bool
	// servicesWritten are the Services that this pass made or changed: what was seen of them is out of date.
	servicesWritten []string
	// policiesRestored are NetworkPolicies that somebody had removed or changed.
	policiesRestored []string
	// restartPending: the StatefulSet is left as it is until it is the pool's turn.
	restartPending bool
	// podReplaced is why this pass removed the Pod; empty if it did not.
	podReplaced string
	// inTrouble: the Pod is not Ready, and what is watched may not say why; or the route is not accepted.
	inTrouble  bool
	retryAfter time.Duration
}

// build writes the pool's objects in stages. Each stage waits for what it must not run without:
//
//	namespace -> walls (access, quota, policies) -> credentials, furniture -> workload -> route
//
// The workload needs every stage before it; furniture is written even if a wall failed. A route that is not wanted goes
// before the workload changes, so that no request comes to a Pod that stops.
func (r *SubPoolReconciler) build(ctx context.Context, seen *observation) outcome {
	if blocked := judge(seen); blocked != nil {
		return outcome{blocked: blocked, err: r.suspendBlocked(ctx, seen), retryAfter: blockedDelay}
	}
	in := seen.input(r.Operator)
	desired := subpool.Desired(in)

	relabelled, blocked, err := r.buildNamespace(ctx, seen, desired.Namespace)
	if blocked != nil || err != nil {
		return outcome{blocked: blocked, err: err, retryAfter: blockedDelay}
	}
	walls, last := desired.Walls, []runtime.ApplyConfiguration{desired.Quota}
	if !lowersQuota(seen) {
		walls, last = slices.Concat(walls, last), nil
	}
	done := r.buildNeeds(ctx, seen, walls, desired.Furniture)
	if done.err != nil || seen.credentials == nil {
		return done
	}
	in.Credentials = seen.credentials.UID
	workload := subpool.Workload(in)
	unpublishErr := r.unpublish(ctx, seen)
	if r.mustWait(seen, in, workload) {
		done.restartPending, done.retryAfter = true, wait.Jitter(turnDelay, 1)
		done.err = errors.Join(unpublishErr, r.publish(ctx, seen, in, relabelled))
		return done
	}
	writes, err := r.engine.Apply(ctx, seen.live, workload)
	if err != nil {
		done.err = errors.Join(unpublishErr, err)
		return done
	}
	done.workloadWritten = len(writes) > 0
	if !done.workloadWritten && settled(seen.workload, seen.pod) {
		r.rollouts.finish(seen.pool.Name)
	}
	_, lastErr := r.engine.Apply(ctx, seen.live, last...)
	publishErr := r.publish(ctx, seen, in, relabelled)
	pruneErr := r.engine.Prune(ctx, seen.live, mayGo(seen), append(desired.All(), workload)...)
	done.podReplaced, err = r.replacePod(ctx, seen, done.workloadWritten)
	done.err = errors.Join(unpublishErr, lastErr, publishErr, pruneErr, err)
	done.inTrouble = !seen.pool.Spec.Suspend && (unexplained(seen, done) || refused(seen))
	return done
}

// unexplained: the workload is not ready, and the reason may be one that only Events or time tell.
func unexplained(seen *observation, done outcome) bool {
	return !waitsForNode(seen.pod) && !assessWorkload(seen, done).ok()
}

// buildNeeds writes what the workload must not run without. Credentials that cannot be had yet are no error: the API server
// may not honour the new access to them, or another process has just made them and the next pass looks at whose they are.
func (r *SubPoolReconciler) buildNeeds(ctx context.Context, seen *observation, walls, furniture []runtime.ApplyConfiguration) outcome {
	done := outcome{retryAfter: wait.Jitter(checkPeriod, checkJitter)}
	wallsWritten, wallsErr := r.engine.Apply(ctx, seen.live, walls...)
	done.policiesRestored = restoredPolicies(seen, wallsWritten)
	furnitureWritten, furnitureErr := r.engine.Apply(ctx, seen.live, furniture...)
	done.servicesWritten = services(furnitureWritten)
	made, credentialsErr := r.buildCredentials(ctx, seen)
	done.credentialsMade = made

	accessPending := wallsErr == nil && len(wallsWritten) > 0 && apierrors.IsForbidden(credentialsErr)
	madeByAnother := credentialsErr == nil && seen.credentials == nil
	if accessPending || madeByAnother {
		credentialsErr, done.retryAfter = nil, accessDelay
	}
	done.err = errors.Join(wallsErr, furnitureErr, credentialsErr)
	return done
}

// services are the names of the Services among what was written.
func services(writes []apply.Write) []string {
	var names []string
	for _, write := range writes {
		if write.Key.Kind == "Service" {
			names = append(names, write.Key.Name)
		}
	}
	return names
}

// lowersQuota tells whether the quota must come after the workload, see subpool.Stages.
func lowersQuota(seen *observation) bool {
	return seen.quota != nil && seen.workload != nil && subpool.LowersQuota(seen.quota, seen.config.Config.MaxPerPool)
}

// replacePod removes a Pod that cannot become Ready by itself, and tells why: one that is stuck on an older revision, for
// which the StatefulSet controller would wait for ever, or one whose containers keep ending since it was Ready. A Pod that
// became Ready or was replaced since it was seen is left alone, and the Pod gets its grace period.
func (r *SubPoolReconciler) replacePod(ctx context.Context, seen *observation, justChanged bool) (string, error) {
	var reason string
	switch {
	case justChanged || seen.pool.Spec.Suspend:
		return "", nil
	case stuck(seen.workload, seen.pod):
		reason = "it was not Ready and would have kept the current revision from starting"
	case crashing(seen.pod, seen.now):
		reason = "its containers keep ending, and init containers, which mend the volume's content, run in a new Pod only"
	default:
		return "", nil
	}
	uid, version := seen.pod.GetUID(), seen.pod.GetResourceVersion()
	err := r.Delete(ctx, seen.pod, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return "", nil // the change that came between is an event of its own
	}
	if err != nil {
		return "", fmt.Errorf("cannot remove Pod %s (%s): %w", seen.pod.Name, reason, err)
	}
	return reason, nil
}

// suspendBlocked stops the runtime of a pool that is to be suspended while something else forbids to build it: a stop
// must always be possible.
func (r *SubPoolReconciler) suspendBlocked(ctx context.Context, seen *observation) error {
	if !seen.pool.Spec.Suspend || seen.workload == nil || !seen.namespace.DeletionTimestamp.IsZero() {
		return nil
	}
	unpublishErr := r.unpublish(ctx, seen)
	_, err := r.stopWorkload(ctx, seen.workload.Namespace)
	return errors.Join(unpublishErr, err)
}

// unpublish removes a route that is not wanted (any more).
func (r *SubPoolReconciler) unpublish(ctx context.Context, seen *observation) error {
	if seen.wantsRoute() {
		return nil
	}
	return r.engine.Prune(ctx, seen.live, func(key apply.Key) bool {
		return key.Kind == "HTTPRoute" && ownedBy(seen.live[key], seen.pool)
	})
}

// publish writes the route. One that a controller has judged while the namespace lacked its label is changed for a moment,
// so that it is judged again; and so is one that stays refused, since its controller may have failed to write its last verdict.
func (r *SubPoolReconciler) publish(ctx context.Context, seen *observation, in subpool.Input, relabelled bool) error {
	if !seen.wantsRoute() {
		return nil
	}
	rejudge := seen.exposure.route != nil && (relabelled || refused(seen) && r.patience.over(seen.pool.Name, seen.now))
	_, err := r.engine.Apply(ctx, seen.live, subpool.Route(in, rejudge))
	return err
}

// buildNamespace makes the namespace, or finds out whose the existing one is: it may be ours, made by a pass whose status
// was never written. One that lost the label that routes depend on gets it back: then relabelled is true.
func (r *SubPoolReconciler) buildNamespace(
	ctx context.Context, seen *observation, intent runtime.ApplyConfiguration,
) (relabelled bool, blocked *blocker, err error) {
	if seen.namespace == nil {
		created, err := r.engine.Create(ctx, intent)
		if created || err != nil {
			return false, nil, err
		}
		namespace := &corev1.Namespace{}
		name := subpool.NamespaceName(seen.pool.Name)
		if err := r.Live.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
			return false, nil, err
		}
		seen.namespace = namespace
		if err := seen.live.Add(r.Scheme(), namespace); err != nil {
			return false, nil, err
		}
		if blocked := judge(seen); blocked != nil {
			return false, blocked, nil
		}
	}
	relabelled = seen.namespace.Labels[v1alpha1.LabelManaged] != v1alpha1.LabelManagedValue
	_, err = r.engine.Apply(ctx, seen.live, intent)
	return relabelled, nil, err
}

// buildCredentials makes the Secret once. A Secret that exists is never written to.
func (r *SubPoolReconciler) buildCredentials(ctx context.Context, seen *observation) (bool, error) {
	if seen.credentials != nil {
		return false, nil
	}
	secret, err := subpool.Credentials(seen.pool, r.Random)
	if err != nil {
		return false, err
	}
	err = r.Create(ctx, secret, client.FieldOwner(objectsOwner))
	if err != nil {
		if apierrors.IsAlreadyExists(err) && seen.credentialsHidden != nil {
			err = fmt.Errorf("cannot read Secret %s/%s: %w", secret.Namespace, secret.Name, seen.credentialsHidden)
		} else if apierrors.IsAlreadyExists(err) {
			log.FromContext(ctx).Info("another process made the pool's credentials at the same moment: " +
				"is the operator installed twice, or without leader election?")
			err = nil // the next pass looks at whose it is
		}
		return false, err
	}
	seen.credentials = credentialsOf(secret)
	r.credentials.remember(seen.pool.Name, seen.credentials)
	return true, nil
}

// mayGo tells which objects without an intent are removed: policies and scripts of the pool that are not wanted any more.
// The way to the proxy is never unwanted, only unknown while the proxy's Service does not say where it is: then it stays
// as it was. A script stays while a Pod may still start from it.
func mayGo(seen *observation) func(apply.Key) bool {
	return func(key apply.Key) bool {
		switch key.Kind {
		case "NetworkPolicy":
			return key.Name != subpool.AllowMihomoName && ownedBy(seen.live[key], seen.pool)
		case "ConfigMap":
			return ownedBy(seen.live[key], seen.pool) && rolledOut(seen.workload)
		default:
			return false
		}
	}
}
