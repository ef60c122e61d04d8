//go:build integration

package integration

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

// What the start gate says of the walls is in the status, and so is that nobody looks at them. Without a network the image
// of the gate decides what it says. The configuration is the same for all pools, so nothing runs in parallel.
func TestStartGateVerdicts(t *testing.T) {
	const image = "image: registry.example.invalid/example-org/subrelay-operator:v0.1.0"
	shipped := operatorConfigMap(t)
	t.Cleanup(func() { putConfig(t, shipped.Data) })
	with := func(gate string) {
		require.Contains(t, shipped.Data[configKey], image)
		putConfig(t, map[string]string{configKey: strings.Replace(shipped.Data[configKey], image, gate, 1)})
	}

	with("image: registry.example.invalid/example-org/subrelay-operator:" + harness.FailingInitTag)
	pool := newPool("gated")
	create(t, pool)
	awaitNotReady(t, pool, v1alpha1.ReasonIsolationNotEnforced)
	awaitCondition(t, pool, readyBudget, v1alpha1.ConditionIsolationEnforced, metav1.ConditionFalse,
		v1alpha1.ReasonIsolationNotEnforced)
	assert.Contains(t, message(t, pool, v1alpha1.ConditionReady), "the start gate of Pod runtime-0 failed")

	with("enabled: false")
	awaitCondition(t, pool, readyBudget, v1alpha1.ConditionIsolationEnforced, metav1.ConditionUnknown, v1alpha1.ReasonGateDisabled)
	awaitReady(t, pool)
	assert.Contains(t, message(t, pool, v1alpha1.ConditionIsolationEnforced), "startGate.enabled is false")

	putConfig(t, shipped.Data)
	awaitCondition(t, pool, readyBudget, v1alpha1.ConditionIsolationEnforced, metav1.ConditionTrue, v1alpha1.ReasonGatePassed)
	awaitReady(t, pool)
}
