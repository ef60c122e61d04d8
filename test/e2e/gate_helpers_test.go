//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example-org/subrelay-operator/test/harness"
)

const operatorConfigFlag = "--operator-config="

var configVersion atomic.Int32

// useOperatorConfig has the operator work with a changed configuration until the test ends, as an administrator would: a
// ConfigMap of a new name, and the Deployment's flag. All pools of the cluster follow it.
func useOperatorConfig(t *testing.T, edit func(config map[string]any)) {
	t.Helper()
	shipped := read[corev1.ConfigMap](t, systemNamespace, harness.OperatorConfig)
	config := map[string]any{}
	require.NoError(t, yaml.Unmarshal([]byte(shipped.Data["config.yaml"]), &config))
	edit(config)
	document, err := yaml.Marshal(config)
	require.NoError(t, err)
	changed := &corev1.ConfigMap{
		ObjectMeta: inNamespace(systemNamespace, "subpool-operator-config-e2e-"+strconv.Itoa(int(configVersion.Add(1)))),
		Immutable:  ptr.To(true),
		Data:       map[string]string{"config.yaml": string(document)},
	}
	create(t, changed)
	t.Cleanup(func() { assert.NoError(t, pointOperatorTo(context.Background(), harness.OperatorConfig)) })
	require.NoError(t, pointOperatorTo(t.Context(), changed.Name))
}

// pointOperatorTo returns when no replica works with another configuration any more.
func pointOperatorTo(ctx context.Context, config string) error {
	deployment := &appsv1.Deployment{}
	if err := admin.Get(ctx, client.ObjectKey{Namespace: systemNamespace, Name: "subpool-operator"}, deployment); err != nil {
		return err
	}
	base := deployment.DeepCopy()
	deployment.Spec.Template.Spec.Containers[0].Args = []string{operatorConfigFlag + config}
	if err := admin.Patch(ctx, deployment, client.MergeFrom(base)); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, tick, readyBudget, true, func(ctx context.Context) (bool, error) {
		replicas := &corev1.PodList{}
		if err := admin.List(ctx, replicas, client.InNamespace(systemNamespace)); err != nil {
			return false, err
		}
		others := slices.ContainsFunc(replicas.Items, func(pod corev1.Pod) bool {
			return !podReady(&pod) || !slices.Contains(pod.Spec.Containers[0].Args, operatorConfigFlag+config)
		})
		return len(replicas.Items) == int(*deployment.Spec.Replicas) && !others, nil
	})
}

// stopPolicyAgent keeps the program that enforces NetworkPolicies from working until the returned function is called or
// the test ends. What it has enforced so far stays.
func stopPolicyAgent(t *testing.T) (resume func()) {
	t.Helper()
	agent, err := lab.Component("kube-router")
	require.NoError(t, err)
	resume = func() { assert.NoError(t, harness.Signal(agent, syscall.SIGCONT)) }
	t.Cleanup(resume)
	require.NoError(t, harness.Signal(agent, syscall.SIGSTOP))
	return resume
}

// watchful has cpa start only after it has tried targets from its first moment on. A configuration gets it as runtime.cpa.
func watchful(targets ...string) map[string]any {
	const script = `prober try -for=1s "$@"; exec ./CLIProxyAPI -config /cpa/config.yaml -local-model`
	return map[string]any{
		"command":             []string{"sh", "-c", script, "sh"},
		"args":                targets,
		"preStopSleepSeconds": 0,
	}
}

// watched is what the watchful start of a Pod's cpa has seen, once it has.
func watched(t require.TestingT, pod *corev1.Pod, targets []string) map[string]probe {
	require.NotEmpty(t, pod.Status.ContainerStatuses)
	require.NotNil(t, containerStatus(t, pod, cpaName).State.Running, "cpa of Pod %s/%s runs", pod.Namespace, pod.Name)
	var lines strings.Builder
	for line := range strings.Lines(logOf(t, pod.Namespace, pod.Name, cpaName)) {
		if json.Valid([]byte(line)) {
			lines.WriteString(line)
		}
	}
	probes := readProbes(t, lines.String())
	require.Len(t, probes, len(targets), "what Pod %s/%s saw", pod.Namespace, pod.Name)
	return probes
}
