//go:build integration

package integration

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// The shared Mihomo, as the shipped operator configuration names it. No Pod carries it here: its EndpointSlices
// are written by hand.
const (
	mihomoName = "mihomo-gateway"
	mihomoPort = 7890
	// mihomoPodPort differs from the Service's port, since policies must name this one.
	mihomoPodPort = 17890
)

func mihomoService() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: sharedNamespace, Name: mihomoName},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app.kubernetes.io/name": "mihomo"},
			Ports: []corev1.ServicePort{{
				Name: "http", Port: mihomoPort, TargetPort: intstr.FromInt32(mihomoPodPort),
			}},
		},
	}
}

func mihomoSlice(endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: sharedNamespace,
			Name:      mihomoName,
			Labels:    map[string]string{discoveryv1.LabelServiceName: mihomoName},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   endpoints,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To[int32](mihomoPodPort)}},
	}
}

func readyEndpoint() discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses:  []string{"10.244.0.250"},
		Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)},
	}
}
