package controllers

import (
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestEqualPartsAreKeptOnce: the cache changes nothing of what an object says, and keeps what two say alike in one place.
func TestEqualPartsAreKeptOnce(t *testing.T) {
	workload := func(pool, image string) *appsv1.StatefulSet {
		labels := func() map[string]string { return map[string]string{"pool": pool} }
		return &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "subpool-" + pool, Name: "runtime", Labels: labels(), Annotations: map[string]string{"intent": pool},
				OwnerReferences: []metav1.OwnerReference{{Kind: "SubPool", Name: pool}},
			},
			Spec: appsv1.StatefulSetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels()},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels()},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "cpa", Image: image}}},
				},
			},
		}
	}
	cached := func(pool, image string) *appsv1.StatefulSet {
		kept, err := trim(workload(pool, image))
		require.NoError(t, err)
		require.Equal(t, workload(pool, image), kept)
		return kept.(*appsv1.StatefulSet)
	}
	one, other, newer := cached("one", "cpa:v1"), cached("other", "cpa:v1"), cached("newer", "cpa:v2")
	containers := func(workload *appsv1.StatefulSet) *corev1.Container {
		return &workload.Spec.Template.Spec.Containers[0]
	}
	require.Same(t, containers(one), containers(other))
	require.NotSame(t, containers(one), containers(newer))

	again := cached("one", "cpa:v1")
	require.Same(t, one.Spec.Selector, again.Spec.Selector)
	require.Same(t, &one.OwnerReferences[0], &again.OwnerReferences[0])
	one.Annotations["seen"] = "in both"
	require.Equal(t, one.Annotations, again.Annotations)
}

// TestEqualTextsAreKeptOnce: the init script is the same in every pool, also when garbage has been collected in between.
func TestEqualTextsAreKeptOnce(t *testing.T) {
	cached := func() *corev1.ConfigMap {
		kept, err := trim(&corev1.ConfigMap{Data: map[string]string{"init.sh": strings.Repeat("echo\n", 100)}})
		require.NoError(t, err)
		return kept.(*corev1.ConfigMap)
	}
	one := cached()
	runtime.GC()
	runtime.GC()
	other := cached()
	require.Same(t, unsafe.StringData(one.Data["init.sh"]), unsafe.StringData(other.Data["init.sh"]))
}

// What a container may use and mounts is in no condition.
func TestPodsAreTrimmed(t *testing.T) {
	status := corev1.ContainerStatus{Name: "cpa", Ready: true}
	full := status
	full.Resources, full.VolumeMounts = &corev1.ResourceRequirements{}, []corev1.VolumeMountStatus{{Name: "data"}}
	pod := &corev1.Pod{
		Spec:   corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "cpa"}}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{full}, InitContainerStatuses: []corev1.ContainerStatus{full}},
	}
	kept, err := trimPod(pod)
	require.NoError(t, err)
	require.Equal(t, &corev1.Pod{
		Spec:   corev1.PodSpec{NodeName: "n"},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{status}, InitContainerStatuses: []corev1.ContainerStatus{status}},
	}, kept)
}
