package main

import (
	"fmt"
	"maps"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"
)

const (
	listenerType = resourcev3.ListenerType
	routeType    = resourcev3.RouteType
	clusterType  = resourcev3.ClusterType
	endpointType = resourcev3.EndpointType
	secretType   = resourcev3.SecretType
)

// store holds the configuration as the controller sent it, by type and name. What is in it is replaced, never changed.
type store struct {
	resources map[string]map[string]resource
}

type resource struct {
	version string
	message proto.Message
}

func newStore() *store {
	s := &store{resources: map[string]map[string]resource{}}
	for _, kind := range []string{listenerType, routeType, clusterType, endpointType, secretType} {
		s.resources[kind] = map[string]resource{}
	}
	return s
}

// apply takes over a change, or none of it if a part cannot be followed.
func (s *store) apply(response *discoveryv3.DeltaDiscoveryResponse) error {
	present, known := s.resources[response.GetTypeUrl()]
	if !known {
		return fmt.Errorf("resources of type %s were not asked for", response.GetTypeUrl())
	}
	changed := maps.Clone(present)
	for _, sent := range response.GetResources() {
		message, err := sent.GetResource().UnmarshalNew()
		if err != nil {
			return fmt.Errorf("decode %s: %w", sent.GetName(), err)
		}
		if err := check(message); err != nil {
			return fmt.Errorf("%s: %w", sent.GetName(), err)
		}
		changed[sent.GetName()] = resource{version: sent.GetVersion(), message: message}
	}
	for _, name := range response.GetRemovedResources() {
		delete(changed, name)
	}
	s.resources[response.GetTypeUrl()] = changed
	return nil
}

// snapshot returns a store that stays as it is.
func (s *store) snapshot() *store { return &store{resources: maps.Clone(s.resources)} }

// check fails for what this stand-in cannot follow: to ignore it would make tests pass that must not.
func check(message proto.Message) error {
	switch message := message.(type) {
	case *routev3.RouteConfiguration:
		return checkRoutes(message)
	case *listenerv3.Listener:
		for _, chain := range filterChains(message) {
			if _, err := manager(chain); err != nil {
				return err
			}
		}
	}
	return nil
}

// lookup returns a resource, or nil if the controller has not sent it.
func lookup[T proto.Message](s *store, kind, name string) T {
	message, _ := s.resources[kind][name].message.(T)
	return message
}

func (s *store) versions(kind string) map[string]string {
	versions := map[string]string{}
	for name, resource := range s.resources[kind] {
		versions[name] = resource.version
	}
	return versions
}

// references returns the names that listeners and clusters refer to, by type.
func (s *store) references() map[string]map[string]bool {
	routes, endpoints, secrets := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for name := range s.resources[listenerType] {
		for _, chain := range filterChains(lookup[*listenerv3.Listener](s, listenerType, name)) {
			if found, err := manager(chain); err == nil && found.GetRds() != nil {
				routes[found.GetRds().GetRouteConfigName()] = true
			}
			for _, secret := range secretNames(chain) {
				secrets[secret] = true
			}
		}
	}
	for name := range s.resources[clusterType] {
		if cluster := lookup[*clusterv3.Cluster](s, clusterType, name); cluster.GetEdsClusterConfig() != nil {
			endpoints[serviceName(cluster)] = true
		}
	}
	return map[string]map[string]bool{routeType: routes, endpointType: endpoints, secretType: secrets}
}

// routes returns what a connection manager routes by; nil while the controller has not sent it.
func (s *store) routes(from *hcmv3.HttpConnectionManager) *routev3.RouteConfiguration {
	if from.GetRds() != nil {
		return lookup[*routev3.RouteConfiguration](s, routeType, from.GetRds().GetRouteConfigName())
	}
	return from.GetRouteConfig()
}

// assignment returns the endpoints of a cluster; nil while the controller has not sent them.
func (s *store) assignment(name string) *endpointv3.ClusterLoadAssignment {
	cluster := lookup[*clusterv3.Cluster](s, clusterType, name)
	if cluster.GetEdsClusterConfig() != nil {
		return lookup[*endpointv3.ClusterLoadAssignment](s, endpointType, serviceName(cluster))
	}
	return cluster.GetLoadAssignment()
}

func serviceName(cluster *clusterv3.Cluster) string {
	if name := cluster.GetEdsClusterConfig().GetServiceName(); name != "" {
		return name
	}
	return cluster.GetName()
}

func filterChains(listener *listenerv3.Listener) []*listenerv3.FilterChain {
	chains := listener.GetFilterChains()
	if chain := listener.GetDefaultFilterChain(); chain != nil {
		chains = append(slices.Clip(chains), chain)
	}
	return chains
}

// manager returns the part of a filter chain that handles HTTP.
func manager(chain *listenerv3.FilterChain) (*hcmv3.HttpConnectionManager, error) {
	for _, filter := range chain.GetFilters() {
		found := &hcmv3.HttpConnectionManager{}
		if filter.GetTypedConfig().MessageIs(found) {
			return found, filter.GetTypedConfig().UnmarshalTo(found)
		}
	}
	return nil, fmt.Errorf("filter chain %q does not speak HTTP, which is all that this stand-in does", chain.GetName())
}

// secretNames returns the names of the certificates that a filter chain serves; none for plain HTTP.
func secretNames(chain *listenerv3.FilterChain) []string {
	var context tlsv3.DownstreamTlsContext
	if !chain.GetTransportSocket().GetTypedConfig().MessageIs(&context) {
		return nil
	}
	if err := chain.GetTransportSocket().GetTypedConfig().UnmarshalTo(&context); err != nil {
		return nil
	}
	var names []string
	for _, secret := range context.GetCommonTlsContext().GetTlsCertificateSdsSecretConfigs() {
		names = append(names, secret.GetName())
	}
	return names
}
