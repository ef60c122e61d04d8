package controllers

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	netv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/internal/apply"
	"github.com/example-org/subrelay-operator/internal/subpool"
)

// running adds to a healthy observation what the cluster has of a pool that runs.
func running(t testing.TB) *observation {
	t.Helper()
	seen := healthy(t)
	seen.workload = &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: subpool.RuntimeName, Namespace: "subpool-demo-pool", Generation: 2},
		Status: appsv1.StatefulSetStatus{
			ObservedGeneration: 2, ReadyReplicas: 1, CurrentRevision: "runtime-1", UpdateRevision: "runtime-1",
		},
	}
	seen.pod = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "runtime-0", Labels: map[string]string{appsv1.StatefulSetRevisionLabel: "runtime-1"}},
		Spec:       corev1.PodSpec{NodeName: "node"},
		Status: corev1.PodStatus{
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			InitContainerStatuses: []corev1.ContainerStatus{{
				Name: subpool.InitializeName, Ready: true,
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}},
			}},
			ContainerStatuses: []corev1.ContainerStatus{runningContainer("cpa-manager"), runningContainer("cpa")},
		},
	}
	for _, name := range []string{subpool.CPAName, subpool.CPAManagerName} {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "subpool-demo-pool"}}
		require.NoError(t, seen.live.Add(scheme.Scheme, service))
	}
	return seen
}

func runningContainer(name string) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: name, Ready: true, Started: ptr.To(true), ImageID: "sha256:" + name,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}
}

// startAgain makes a container one that was started again some time ago, after it had ended at once, and does not answer.
func startAgain(status *corev1.ContainerStatus, restarts int32, at time.Time) {
	status.Ready, status.Started, status.RestartCount = false, ptr.To(false), restarts
	status.State.Running.StartedAt = metav1.NewTime(at)
	status.LastTerminationState = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 1}}
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

// TestRES03WorkloadSaysWhy: whatever keeps the Pod from being Ready is named, with the words of who found it.
func TestRES03WorkloadSaysWhy(t *testing.T) {
	deleted := metav1.Now()
	cpa := func(o *observation) *corev1.ContainerStatus { return &o.pod.Status.ContainerStatuses[1] }
	for name, c := range map[string]struct {
		change func(*observation)
		reason string
		says   string
	}{
		"ready":          {func(*observation) {}, v1alpha1.ReasonReplicaReady, ""},
		"no StatefulSet": {func(o *observation) { o.workload = nil }, v1alpha1.ReasonWorkloadMissing, "StatefulSet runtime"},
		"no Pod":         {func(o *observation) { o.pod = nil }, v1alpha1.ReasonWorkloadsNotReady, "kubectl -n subpool-demo-pool describe statefulset runtime"},
		"stopping":       {func(o *observation) { o.pod.DeletionTimestamp = &deleted }, v1alpha1.ReasonWorkloadsNotReady, "runtime-0 is stopping"},
		"unschedulable": {func(o *observation) {
			o.pod.Spec.NodeName = ""
			o.pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes: Insufficient cpu"}}
		}, v1alpha1.ReasonUnschedulable, "0/1 nodes: Insufficient cpu"},
		"claim pending": {func(o *observation) {
			o.pod.Spec.NodeName = ""
			o.pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."}}
			o.claim = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-runtime-0"}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("none")}}
		}, v1alpha1.ReasonVolumePending, `data-runtime-0 is pending (storage class "none")`},
		"claim waits for a Pod that fits nowhere": {func(o *observation) {
			o.pod.Spec.NodeName = ""
			o.pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes are available: 1 Insufficient memory."}}
			o.claim = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-runtime-0"}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}}
		}, v1alpha1.ReasonUnschedulable, "1 Insufficient memory"},
		"image pull": {func(o *observation) {
			*cpa(o) = corev1.ContainerStatus{Name: "cpa", Image: "r/cpa:x", State: waiting("ImagePullBackOff", "no such image")}
		}, v1alpha1.ReasonImagePullFailed, "container cpa has no image r/cpa:x: ImagePullBackOff: no such image"},
		"init failed": {func(o *observation) {
			o.pod.Status.InitContainerStatuses[0] = corev1.ContainerStatus{Name: subpool.InitializeName, State: waiting("CrashLoopBackOff", ""),
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 1}}}
		}, v1alpha1.ReasonInitializationFailed, "init container initialize-config is started again after it ended with Error, exit code 1"},
		"init runs": {func(o *observation) {
			o.pod.Status.InitContainerStatuses[0] = corev1.ContainerStatus{Name: subpool.InitializeName, Started: ptr.To(true),
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
		}, v1alpha1.ReasonWorkloadsNotReady, "init container initialize-config is running"},
		"CFG-12 out of memory": {func(o *observation) {
			*cpa(o) = corev1.ContainerStatus{Name: "cpa", State: waiting("CrashLoopBackOff", "back-off"),
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137}}}
		}, v1alpha1.ReasonContainerCrashing, "OOMKilled, exit code 137"},
		"CFG-12 out of memory, running again": {func(o *observation) {
			*cpa(o) = runningContainer("cpa")
			cpa(o).Ready, cpa(o).Started = false, ptr.To(false)
			cpa(o).LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137}
		}, v1alpha1.ReasonContainerCrashing, "OOMKilled, exit code 137"},
		"no such command": {func(o *observation) {
			*cpa(o) = corev1.ContainerStatus{Name: "cpa", State: waiting("CreateContainerError", "no such file")}
		}, v1alpha1.ReasonContainerStartFailed, "CreateContainerError: no such file"},
		"volume not mounted": {func(o *observation) {
			o.pod.Status.InitContainerStatuses = nil
			o.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "cpa", State: waiting("ContainerCreating", "")}}
			o.warning = &corev1.Event{Reason: "FailedMount", Message: `secret "subpool-credentials" not found`}
		}, v1alpha1.ReasonVolumeNotMounted, `secret "subpool-credentials" not found`},
		"no sandbox": {func(o *observation) {
			o.pod.Status.InitContainerStatuses = nil
			o.pod.Status.ContainerStatuses = nil
			o.warning = &corev1.Event{Reason: "FailedCreatePodSandBox", Message: "no network"}
		}, v1alpha1.ReasonContainerStartFailed, "no network"},
		"quota refuses": {func(o *observation) {
			o.pod, o.warning = nil, &corev1.Event{Message: `pods "runtime-0" is forbidden: exceeded quota: extra`}
		}, v1alpha1.ReasonQuotaExceeded, "exceeded quota: extra"},
		"Pod Security refuses": {func(o *observation) {
			o.pod, o.warning = nil, &corev1.Event{Message: `violates PodSecurity "restricted:latest"`}
		}, v1alpha1.ReasonPodSecurityViolation, "restricted:latest"},
		"admission refuses": {func(o *observation) {
			o.pod, o.warning = nil, &corev1.Event{Message: `ValidatingAdmissionPolicy 'x' denied request`}
		}, v1alpha1.ReasonPodRefused, "denied request"},
		"exit 0 is a failure too": {func(o *observation) {
			*cpa(o) = corev1.ContainerStatus{Name: "cpa", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}}
		}, v1alpha1.ReasonContainerCrashing, "container cpa ended with Completed, exit code 0"},
		"started once more in a loop": {func(o *observation) { startAgain(cpa(o), 3, o.now) },
			v1alpha1.ReasonContainerCrashing, "container cpa is started again after it ended with Error, exit code 1"},
		"started again after one end": {func(o *observation) { startAgain(cpa(o), 1, o.now) }, v1alpha1.ReasonWorkloadsNotReady, "container cpa is starting"},
		"started again some time ago": {func(o *observation) { startAgain(cpa(o), 3, o.now.Add(-time.Hour)) }, v1alpha1.ReasonWorkloadsNotReady, "container cpa is starting"},
		"starting":                    {func(o *observation) { cpa(o).Ready, cpa(o).Started = false, ptr.To(false) }, v1alpha1.ReasonWorkloadsNotReady, "container cpa is starting"},
		"probe fails": {func(o *observation) {
			cpa(o).Ready, cpa(o).State.Running.StartedAt = false, metav1.NewTime(o.now.Add(-time.Minute))
		}, v1alpha1.ReasonProbeFailing, "its readiness probe does not succeed"},
		"probe has time": {func(o *observation) {
			cpa(o).Ready, cpa(o).State.Running.StartedAt = false, metav1.NewTime(o.now.Add(-time.Second))
		}, v1alpha1.ReasonWorkloadsNotReady, "container cpa is starting"},
		"Pod of an old revision": {func(o *observation) { o.workload.Status.UpdateRevision = "runtime-2" },
			v1alpha1.ReasonWorkloadsNotReady, "older revision"},
		"template not seen": {func(o *observation) { o.workload.Generation = 3 }, v1alpha1.ReasonWorkloadsNotReady, "older revision"},
		"not counted":       {func(o *observation) { o.workload.Status.ReadyReplicas = 0 }, v1alpha1.ReasonWorkloadsNotReady, "not counted"},
		"no Service":        {func(o *observation) { clear(o.live) }, v1alpha1.ReasonServiceMissing, "Service cpa "},
	} {
		t.Run(name, func(t *testing.T) {
			seen := running(t)
			c.change(seen)
			got := assessWorkload(seen, outcome{})
			require.Equal(t, c.reason, got.reason, got.message)
			require.Contains(t, got.message, c.says)
			require.Equal(t, c.reason == v1alpha1.ReasonReplicaReady, got.ok())
		})
	}
}

// Ready carries the first problem, and nothing but all of it makes it True.
func TestReadyIsTheFirstProblem(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*observation)
		done    outcome
		reason  string
		stalled bool
	}{
		"ready":         {func(*observation) {}, outcome{}, v1alpha1.ReasonPoolReady, false},
		"mended":        {func(o *observation) { clear(o.live) }, outcome{servicesWritten: []string{"cpa", "cpa-manager"}}, v1alpha1.ReasonPoolReady, false},
		"blocked":       {func(*observation) {}, outcome{blocked: &blocker{v1alpha1.ReasonNamespaceConflict, "m", true}}, v1alpha1.ReasonNamespaceConflict, true},
		"just changed":  {func(*observation) {}, outcome{workloadWritten: true}, v1alpha1.ReasonWorkloadsNotReady, false},
		"refused":       {func(o *observation) { o.pod = nil }, outcome{err: errors.New("forbidden")}, v1alpha1.ReasonApplyFailed, false},
		"suspended":     {func(o *observation) { o.pool.Spec.Suspend = true; o.pod = nil }, outcome{}, v1alpha1.ReasonSuspended, false},
		"workload":      {func(o *observation) { o.pod = nil; o.proxyReady = false }, outcome{}, v1alpha1.ReasonWorkloadsNotReady, false},
		"proxy":         {func(o *observation) { o.proxyReady = false }, outcome{}, v1alpha1.ReasonEndpointsUnavailable, false},
		"exposure":      {func(o *observation) { o.pool.Spec.Exposure.Mode = v1alpha1.ExposureGateway }, outcome{}, v1alpha1.ReasonGatewayMissing, false},
		"configuration": {func(o *observation) { o.config = nil }, outcome{blocked: &blocker{v1alpha1.ReasonOperatorConfigurationInvalid, "m", true}}, v1alpha1.ReasonOperatorConfigurationInvalid, true},
	} {
		t.Run(name, func(t *testing.T) {
			seen := running(t)
			c.change(seen)
			status := assess(seen, c.done)
			ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
			require.Equal(t, c.reason, ready.Reason, ready.Message)
			require.Equal(t, c.reason == v1alpha1.ReasonPoolReady, ready.Status == metav1.ConditionTrue)
			require.EqualValues(t, 3, status.ObservedGeneration)
			for _, condition := range status.Conditions {
				require.EqualValues(t, 3, condition.ObservedGeneration, condition.Type)
			}
			require.Equal(t, c.stalled, meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionStalled))
			working := !c.stalled && c.reason != v1alpha1.ReasonPoolReady && c.reason != v1alpha1.ReasonSuspended
			require.Equal(t, working, meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReconciling))
		})
	}
}

// TestSTA03StatusIsStable: assessing the same world again changes nothing, dates included.
func TestSTA03StatusIsStable(t *testing.T) {
	seen := running(t)
	seen.pool.Status = assess(seen, outcome{})
	for i := range seen.pool.Status.Conditions {
		seen.pool.Status.Conditions[i].LastTransitionTime = metav1.NewTime(time.Unix(1, 0))
	}
	require.Equal(t, seen.pool.Status, assess(seen, outcome{}))
	require.Equal(t, []v1alpha1.RunningImage{
		{Container: "cpa", ImageID: "sha256:cpa"}, {Container: "cpa-manager", ImageID: "sha256:cpa-manager"},
	}, seen.pool.Status.Images, "sorted, whatever the order in the Pod")
}

// A condition that is only ever True is removed when it does not hold any more, and comes back dated anew.
func TestConditionsThatVanish(t *testing.T) {
	seen := running(t)
	seen.pool.Status = assess(seen, outcome{blocked: &blocker{v1alpha1.ReasonNamespaceConflict, "m", true}})
	require.True(t, meta.IsStatusConditionTrue(seen.pool.Status.Conditions, v1alpha1.ConditionStalled))
	status := assess(seen, outcome{})
	require.Nil(t, meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionStalled))
}

// A server's answer may be longer than a condition's message can be.
func TestLongMessagesAreCut(t *testing.T) {
	status := assess(running(t), outcome{err: errors.New(strings.Repeat("x", maxMessage+1))})
	require.Len(t, meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady).Message, maxMessage)
}

func TestHostnameOnlyInGatewayMode(t *testing.T) {
	seen := running(t)
	require.Empty(t, assess(seen, outcome{}).Hostname)
	seen.pool.Spec.Exposure.Mode = v1alpha1.ExposureGateway
	require.Equal(t, "demo-pool.subrelay.example.com", assess(seen, outcome{}).Hostname)
}

// TestROL03StuckPod: only a Pod of an older revision that is not Ready may be removed, and only when the StatefulSet
// controller has seen the current template.
func TestROL03StuckPod(t *testing.T) {
	deleted := metav1.Now()
	broken := func(o *observation) {
		o.workload.Status.UpdateRevision = "runtime-2"
		o.pod.Status.Conditions[0].Status = corev1.ConditionFalse
	}
	for name, c := range map[string]struct {
		change func(*observation)
		want   bool
	}{
		"not ready, old revision":     {broken, true},
		"no readiness reported":       {func(o *observation) { broken(o); o.pod.Status.Conditions = nil }, true},
		"ready, old revision":         {func(o *observation) { o.workload.Status.UpdateRevision = "runtime-2" }, false},
		"not ready, current revision": {func(o *observation) { o.pod.Status.Conditions[0].Status = corev1.ConditionFalse }, false},
		"template not seen yet":       {func(o *observation) { broken(o); o.workload.Generation = 3 }, false},
		"stopping already":            {func(o *observation) { broken(o); o.pod.DeletionTimestamp = &deleted }, false},
		"no Pod":                      {func(o *observation) { o.pod = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			seen := running(t)
			c.change(seen)
			require.Equal(t, c.want, stuck(seen.workload, seen.pod))
		})
	}
}

// What is not wanted any more goes, but nothing of others, no way to a proxy that is only lost from sight, and no script
// from which a Pod may still start.
func TestMayGo(t *testing.T) {
	seen := running(t)
	add := func(object client.Object, owner types.UID) apply.Key {
		name := object.GetName()
		object.SetNamespace("subpool-demo-pool")
		object.SetOwnerReferences(owned(name, owner).OwnerReferences)
		require.NoError(t, seen.live.Add(scheme.Scheme, object))
		kind, err := apiutil.GVKForObject(object, scheme.Scheme)
		require.NoError(t, err)
		return apply.Key{GroupVersionKind: kind, ObjectKey: client.ObjectKeyFromObject(object)}
	}
	gateway := add(&netv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: subpool.AllowGatewayName}}, poolUID)
	mihomo := add(&netv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: subpool.AllowMihomoName}}, poolUID)
	foreign := add(&netv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}}, "another-uid")
	script := add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "initialize-old"}}, poolUID)
	service := add(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, poolUID)

	may := mayGo(seen)
	require.True(t, may(gateway))
	require.True(t, may(script))
	for _, key := range []apply.Key{mihomo, foreign, service} {
		require.False(t, may(key), key)
	}
	seen.workload.Status.UpdateRevision = "runtime-2"
	require.False(t, mayGo(seen)(script), "a Pod of the older revision may start from it")
}
