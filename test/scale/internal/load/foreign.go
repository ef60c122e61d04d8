package load

import (
	"bytes"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	netv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// LargeSize is the size in bytes of what a large Secret or ConfigMap holds.
const LargeSize = 100_000

// Foreign makes objects as other tenants of a cluster have them, all in one namespace.
type Foreign struct{ Namespace string }

// Secret returns a large one.
func (f Foreign) Secret(number int) client.Object {
	return &corev1.Secret{ObjectMeta: f.meta("secret", number), Data: map[string][]byte{"content": bytes.Repeat([]byte("s"), LargeSize)}}
}

// ConfigMap returns a large one.
func (f Foreign) ConfigMap(number int) client.Object {
	return &corev1.ConfigMap{ObjectMeta: f.meta("config", number), Data: map[string]string{"content": strings.Repeat("c", LargeSize)}}
}

// Pod returns one with a container, which no node runs.
func (f Foreign) Pod(number int) client.Object {
	return &corev1.Pod{
		ObjectMeta: f.meta("pod", number),
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: ptr.To(false),
			Containers: []corev1.Container{{
				Name:  "app",
				Image: "registry.example.invalid/foreign/app:v1",
				Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
				Env:   []corev1.EnvVar{{Name: "MODE", Value: "production"}, {Name: "REGION", Value: "west"}},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi"),
				}},
			}},
		},
	}
}

// NetworkPolicy returns one that lets in and out what an application usually needs.
func (f Foreign) NetworkPolicy(number int) client.Object {
	peer := netv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "peer"}}}
	return &netv1.NetworkPolicy{
		ObjectMeta: f.meta("policy", number),
		Spec: netv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprintf("app-%05d", number)}},
			PolicyTypes: []netv1.PolicyType{netv1.PolicyTypeIngress, netv1.PolicyTypeEgress},
			Ingress:     []netv1.NetworkPolicyIngressRule{{From: []netv1.NetworkPolicyPeer{peer, peer}}},
			Egress:      []netv1.NetworkPolicyEgressRule{{To: []netv1.NetworkPolicyPeer{peer, peer}}},
		},
	}
}

// HTTPRoute returns one for a host of its own, with two rules.
func (f Foreign) HTTPRoute(number int) client.Object {
	backend := gatewayv1.HTTPBackendRef{BackendRef: gatewayv1.BackendRef{BackendObjectReference: gatewayv1.BackendObjectReference{
		Name: "app", Port: ptr.To[gatewayv1.PortNumber](8080),
	}}}
	rule := func(prefix string) gatewayv1.HTTPRouteRule {
		return gatewayv1.HTTPRouteRule{
			Matches: []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{
				Type: ptr.To(gatewayv1.PathMatchPathPrefix), Value: ptr.To(prefix),
			}}},
			BackendRefs: []gatewayv1.HTTPBackendRef{backend},
		}
	}
	return &gatewayv1.HTTPRoute{
		ObjectMeta: f.meta("route", number),
		Spec: gatewayv1.HTTPRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: "others"}}},
			Hostnames:       []gatewayv1.Hostname{gatewayv1.Hostname(fmt.Sprintf("app-%05d.example.org", number))},
			Rules:           []gatewayv1.HTTPRouteRule{rule("/"), rule("/api")},
		},
	}
}

func (f Foreign) meta(word string, number int) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: f.Namespace,
		Name:      fmt.Sprintf("%s-%05d", word, number),
		Labels:    map[string]string{"app.kubernetes.io/name": "foreign", "app": fmt.Sprintf("app-%05d", number)},
	}
}
