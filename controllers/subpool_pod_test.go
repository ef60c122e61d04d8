package controllers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Pod is replaced when its containers keep ending although it has been Ready, and only after a while.
func TestCrashing(t *testing.T) {
	now := time.Now()
	ago := func(passed time.Duration) metav1.Time { return metav1.NewTime(now.Add(-passed)) }
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"crashing since it was ready": {func(*corev1.Pod) {}, true},
		"never ready": {func(pod *corev1.Pod) {
			podCondition(pod, corev1.PodReady).LastTransitionTime = ago(time.Hour)
		}, false},
		"ready": {func(pod *corev1.Pod) { podCondition(pod, corev1.PodReady).Status = corev1.ConditionTrue }, false},
		"for a moment": {func(pod *corev1.Pod) {
			podCondition(pod, corev1.PodReady).LastTransitionTime = ago(crashPatience / 2)
		}, false},
		"just being started": {func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses[1].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		}, false},
		"not initialized": {func(pod *corev1.Pod) { pod.Status.Conditions = pod.Status.Conditions[1:] }, false},
		"stopping":        {func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: now} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Status: corev1.PodStatus{
				Conditions: []corev1.PodCondition{
					{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: ago(time.Hour)},
					{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: ago(2 * crashPatience)},
				},
				ContainerStatuses: []corev1.ContainerStatus{
					runningContainer("cpa"),
					{Name: "cpa-manager", State: waiting("CrashLoopBackOff", "")},
				},
			}}
			c.change(pod)
			require.Equal(t, c.want, crashing(pod, now))
		})
	}
}

// What keeps a Pod from having a node is watched: looking again would tell nothing new.
func TestWaitForANodeNeedsNoLooks(t *testing.T) {
	unscheduled := &corev1.Pod{}
	onNode := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node"}}
	stopping := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: time.Now()}}}

	require.True(t, waitsForNode(unscheduled))
	require.False(t, waitsForNode(onNode))
	require.False(t, waitsForNode(stopping))
	require.False(t, waitsForNode(nil), "what keeps a Pod from being made is in Events only")
}
