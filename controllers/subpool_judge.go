package controllers

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// blocker is why nothing may be built.
type blocker struct {
	reason  string
	message string
	// stalled: waiting will not help, a person must act.
	stalled bool
}

// checks are asked in this order before anything is built; the first that objects decides.
var checks = []func(*observation) *blocker{
	configurationUsable,
	namespaceOurs,
	namespaceAlive,
	resourcesConsistent,
	withinEnvelope,
	credentialsUsable,
}

func judge(seen *observation) *blocker {
	for _, check := range checks {
		if found := check(seen); found != nil {
			return found
		}
	}
	return nil
}

func configurationUsable(seen *observation) *blocker {
	if seen.config != nil {
		return nil
	}
	return &blocker{v1alpha1.ReasonOperatorConfigurationInvalid, seen.configProblem, true}
}

func namespaceOurs(seen *observation) *blocker {
	if seen.namespace == nil || ownedBy(seen.namespace, seen.pool) {
		return nil
	}
	return &blocker{v1alpha1.ReasonNamespaceConflict, fmt.Sprintf(
		"Namespace %s exists and is not owned by this SubPool (UID %s): nothing in it is touched. "+
			"Remove the namespace, create the pool under another name, or hand the namespace over (docs/lifecycle.md).",
		seen.namespace.Name, seen.pool.UID), true}
}

func namespaceAlive(seen *observation) *blocker {
	if seen.namespace == nil || seen.namespace.DeletionTimestamp.IsZero() {
		return nil
	}
	return &blocker{v1alpha1.ReasonNamespaceTerminating, fmt.Sprintf(
		"Namespace %s is being deleted, and with it the pool's data and credentials. The pool is built anew, "+
			"empty and with new credentials, when it is gone.%s", seen.namespace.Name, remains(seen.namespace)), false}
}

// resourcesConsistent repeats the rules of the schema, for a SubPool that was stored before the schema had them: the
// API server would refuse its Pod with less helpful words.
func resourcesConsistent(seen *observation) *blocker {
	for _, container := range []struct {
		field     string
		resources *v1alpha1.ContainerResources
	}{
		{"spec.cpa.resources", &seen.pool.Spec.CPA.Resources},
		{"spec.cpaManager.resources", &seen.pool.Spec.CPAManager.Resources},
	} {
		requests, limits := &container.resources.Requests, &container.resources.Limits
		if requests.CPU.Sign() <= 0 || requests.Memory.Sign() <= 0 ||
			requests.CPU.Cmp(limits.CPU) > 0 || requests.Memory.Cmp(limits.Memory) > 0 {
			return &blocker{v1alpha1.ReasonInvalidPoolResources, fmt.Sprintf(
				"%s must have requests above 0 and not above its limits, for cpu and memory: correct the SubPool", container.field), true}
		}
	}
	return nil
}

// withinEnvelope compares what the pool asks for with the most that one pool may have.
func withinEnvelope(seen *observation) *blocker {
	spec, envelope := &seen.pool.Spec, &seen.config.Config.MaxPerPool
	cpa, manager := &spec.CPA.Resources, &spec.CPAManager.Resources
	var excess []string
	for _, ask := range []struct {
		what    string
		amounts []resource.Quantity
		most    resource.Quantity
	}{
		{"requests.cpu", []resource.Quantity{cpa.Requests.CPU, manager.Requests.CPU}, envelope.Requests.CPU},
		{"requests.memory", []resource.Quantity{cpa.Requests.Memory, manager.Requests.Memory}, envelope.Requests.Memory},
		{"limits.cpu", []resource.Quantity{cpa.Limits.CPU, manager.Limits.CPU}, envelope.Limits.CPU},
		{"limits.memory", []resource.Quantity{cpa.Limits.Memory, manager.Limits.Memory}, envelope.Limits.Memory},
		{"storage.size", []resource.Quantity{spec.Storage.Size}, envelope.Storage},
	} {
		sum := resource.Quantity{}
		for _, amount := range ask.amounts {
			sum.Add(amount)
		}
		if sum.Cmp(ask.most) > 0 {
			excess = append(excess, fmt.Sprintf("%s %s > %s", ask.what, sum.String(), ask.most.String()))
		}
	}
	if len(excess) == 0 {
		return nil
	}
	return &blocker{v1alpha1.ReasonResourcesExceedBaseline, fmt.Sprintf(
		"The pool asks for more than maxPerPool of operator configuration %s allows: %s. Lower the pool's resources, "+
			"or have the configuration raised.", seen.config.Name, strings.Join(excess, ", ")), true}
}

// credentialsUsable looks at the Secret's owner and keys.
func credentialsUsable(seen *observation) *blocker {
	secret := seen.credentials
	if secret == nil {
		return nil
	}
	if !ownedBy(secret, seen.pool) {
		return &blocker{v1alpha1.ReasonCredentialConflict, fmt.Sprintf(
			"Secret %s/%s exists and is not owned by this SubPool: it is left as it is. Delete it to have new credentials made.",
			secret.Namespace, secret.Name), true}
	}
	if len(secret.empty) > 0 {
		return &blocker{v1alpha1.ReasonCredentialInvalid, fmt.Sprintf(
			"Secret %s/%s has no value for %s: it is left as it is. Delete it to have new credentials made.",
			secret.Namespace, secret.Name, strings.Join(secret.empty, ", ")), true}
	}
	return nil
}
