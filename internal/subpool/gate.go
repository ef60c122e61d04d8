package subpool

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// GateName is the init container that waits until the pool's policies are enforced: the first of all, so that nothing
// that holds keys runs before.
const GateName = "wait-for-isolation"

// gateContainer is given no volume, and so no key. It may use what CPA may, since both never run at once.
func gateContainer(in Input) *corev1ac.ContainerApplyConfiguration {
	gate := in.Config.StartGate
	args := []string{
		"--proxy=" + proxyAddress(in.Config.Mihomo),
		fmt.Sprintf("--budget=%ds", gate.BudgetSeconds),
	}
	if len(gate.Forbidden) > 0 {
		args = append(args, "--forbidden="+strings.Join(gate.Forbidden, ","))
	}
	return corev1ac.Container().
		WithName(GateName).
		WithImage(gate.Image).
		WithImagePullPolicy(pullPolicy(v1alpha1.ImageReference(gate.Image))).
		WithCommand("/wait-for-isolation").
		WithArgs(args...).
		// The condition IsolationEnforced repeats the gate's last words.
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError).
		WithResources(resources(in.Pool.Spec.CPA.Resources)).
		WithSecurityContext(containerSecurity())
}
