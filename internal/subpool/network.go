package subpool

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	netv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	netv1ac "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/internal/operatorconfig"
)

// networkPolicies are the pool's walls and its doors. Policies only ever add permissions to the
// default deny, so each door can be read on its own.
func networkPolicies(in Input) []runtime.ApplyConfiguration {
	policies := []runtime.ApplyConfiguration{
		policy(in, DefaultDenyName, netv1ac.NetworkPolicySpec().
			WithPodSelector(metav1ac.LabelSelector()).
			WithPolicyTypes(netv1.PolicyTypeIngress, netv1.PolicyTypeEgress)),
		policy(in, AllowDNSName, netv1ac.NetworkPolicySpec().
			WithPodSelector(metav1ac.LabelSelector()).
			WithPolicyTypes(netv1.PolicyTypeEgress).
			WithEgress(dnsRules(in.Config.DNS)...)),
	}
	if in.Proxy != nil {
		policies = append(policies, policy(in, AllowMihomoName, netv1ac.NetworkPolicySpec().
			WithPodSelector(runtimeSelector(in.Pool)).
			WithPolicyTypes(netv1.PolicyTypeEgress).
			WithEgress(netv1ac.NetworkPolicyEgressRule().
				WithTo(podPeer(in.Config.Mihomo.Namespace, in.Proxy.PodLabels)).
				WithPorts(policyPort(corev1.ProtocolTCP, in.Proxy.Port)))))
	}
	if in.Pool.Spec.Exposure.Mode == v1alpha1.ExposureGateway {
		policies = append(policies, policy(in, AllowGatewayName, netv1ac.NetworkPolicySpec().
			WithPodSelector(runtimeSelector(in.Pool)).
			WithPolicyTypes(netv1.PolicyTypeIngress).
			WithIngress(netv1ac.NetworkPolicyIngressRule().
				WithFrom(dataPlanePeers(in.Config.Gateway.DataPlane)...).
				WithPorts(policyPort(corev1.ProtocolTCP, CPAPort)))))
	}
	return policies
}

func policy(in Input, name string, spec *netv1ac.NetworkPolicySpecApplyConfiguration) *netv1ac.NetworkPolicyApplyConfiguration {
	return netv1ac.NetworkPolicy(name, NamespaceName(in.Pool.Name)).
		WithLabels(Labels(in.Pool)).
		WithOwnerReferences(owner(in.Pool)).
		WithSpec(spec)
}

// dnsRules has one rule for each resolver, since each may listen on a port of its own.
func dnsRules(resolvers []operatorconfig.DNSPeer) []*netv1ac.NetworkPolicyEgressRuleApplyConfiguration {
	rules := make([]*netv1ac.NetworkPolicyEgressRuleApplyConfiguration, 0, len(resolvers))
	for _, resolver := range resolvers {
		peer := podPeer(resolver.Namespace, resolver.PodLabels)
		if resolver.CIDR != "" {
			peer = netv1ac.NetworkPolicyPeer().WithIPBlock(netv1ac.IPBlock().WithCIDR(resolver.CIDR))
		}
		rules = append(rules, netv1ac.NetworkPolicyEgressRule().
			WithTo(peer).
			WithPorts(policyPort(corev1.ProtocolUDP, resolver.Port), policyPort(corev1.ProtocolTCP, resolver.Port)))
	}
	return rules
}

func dataPlanePeers(selectors []operatorconfig.PodPeer) []*netv1ac.NetworkPolicyPeerApplyConfiguration {
	peers := make([]*netv1ac.NetworkPolicyPeerApplyConfiguration, 0, len(selectors))
	for _, selector := range selectors {
		peers = append(peers, podPeer(selector.Namespace, selector.PodLabels))
	}
	return peers
}

// podPeer puts both selectors into one peer: as two peers they would mean "or".
func podPeer(namespace string, labels map[string]string) *netv1ac.NetworkPolicyPeerApplyConfiguration {
	return netv1ac.NetworkPolicyPeer().
		WithNamespaceSelector(metav1ac.LabelSelector().
			WithMatchLabels(map[string]string{corev1.LabelMetadataName: namespace})).
		WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(labels))
}

func policyPort(protocol corev1.Protocol, port int32) *netv1ac.NetworkPolicyPortApplyConfiguration {
	return netv1ac.NetworkPolicyPort().WithProtocol(protocol).WithPort(intstr.FromInt32(port))
}

// ProxyOf reads the shared Mihomo's Pods from its Service and the endpoints behind it; false while the
// Service cannot be translated into a policy: no selector, no such port, or a port named by the Pods and
// no endpoint yet to learn its number from.
func ProxyOf(service *corev1.Service, servicePort int32, namedPorts map[string]int32) (*Proxy, bool) {
	if len(service.Spec.Selector) == 0 {
		return nil, false
	}
	index := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == servicePort })
	if index < 0 {
		return nil, false
	}
	port := service.Spec.Ports[index]
	proxy := &Proxy{PodLabels: maps.Clone(service.Spec.Selector)}
	switch {
	case port.TargetPort.Type == intstr.String:
		number, known := namedPorts[port.Name]
		proxy.Port = number
		return proxy, known
	case port.TargetPort.IntVal != 0:
		proxy.Port = port.TargetPort.IntVal
	default:
		proxy.Port = servicePort
	}
	return proxy, true
}
