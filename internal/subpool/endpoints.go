package subpool

import (
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// Endpoints is what a Service's EndpointSlices say.
type Endpoints struct {
	// Ports are the Pods' port numbers by the name of the Service's port.
	Ports map[string]int32
	// ReadyOn has every Pod port with at least one ready endpoint.
	ReadyOn map[int32]bool
}

// ReadEndpoints sums up the slices of one Service. An endpoint whose readiness is not stated counts as
// ready, a terminating one never does.
func ReadEndpoints(slices []discoveryv1.EndpointSlice) Endpoints {
	endpoints := Endpoints{Ports: map[string]int32{}, ReadyOn: map[int32]bool{}}
	for _, slice := range slices {
		ready := hasReady(slice.Endpoints)
		for _, port := range slice.Ports {
			if port.Port == nil {
				continue
			}
			endpoints.Ports[ptr.Deref(port.Name, "")] = *port.Port
			if ready {
				endpoints.ReadyOn[*port.Port] = true
			}
		}
	}
	return endpoints
}

func hasReady(endpoints []discoveryv1.Endpoint) bool {
	for _, endpoint := range endpoints {
		if len(endpoint.Addresses) > 0 &&
			ptr.Deref(endpoint.Conditions.Ready, true) && !ptr.Deref(endpoint.Conditions.Terminating, false) {
			return true
		}
	}
	return false
}
