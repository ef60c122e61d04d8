package harness

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The shared Mihomo, as the shipped operator configuration names it. Where no Pod runs, its EndpointSlices are written
// by hand.
const (
	MihomoName = "mihomo-gateway"
	mihomoPort = 7890
	// MihomoPodPort differs from the Service's port, since policies must name this one.
	MihomoPodPort = 17890
)

// CreateShared makes what pools share: the Service of Mihomo with a ready endpoint.
func (c *Cluster) CreateShared(ctx context.Context) error {
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: SharedNamespace}},
		MihomoService(),
		MihomoSlice(ReadyEndpoint()),
	} {
		// A lab that runs already has them.
		if err := c.Admin.Create(ctx, object); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("create the shared %T: %w", object, err)
		}
	}
	return nil
}

// MihomoService returns the Service as an administrator would make it.
func MihomoService() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: SharedNamespace, Name: MihomoName},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app.kubernetes.io/name": "mihomo"},
			Ports: []corev1.ServicePort{{
				Name: "http", Port: mihomoPort, TargetPort: intstr.FromInt32(MihomoPodPort),
			}},
		},
	}
}

// MihomoSlice returns a slice of the Service with these endpoints.
func MihomoSlice(endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: SharedNamespace,
			Name:      MihomoName,
			Labels:    map[string]string{discoveryv1.LabelServiceName: MihomoName},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   endpoints,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To[int32](MihomoPodPort)}},
	}
}

// ReadyEndpoint returns an endpoint that takes connections.
func ReadyEndpoint() discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses:  []string{"10.244.0.250"},
		Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)},
	}
}
