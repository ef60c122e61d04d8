package subpool

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/example-org/subrelay-operator/internal/operatorconfig"
)

// AnnotationDescription tells a person who finds the namespace what it is and what its deletion destroys.
const AnnotationDescription = "subrelay.example.com/description"

// podSecurityLevel is enforced from the namespace's first moment: the labels are in its create call.
const podSecurityLevel = "restricted"

// maxClaims: a pool has one volume, runtime-0's.
const maxClaims = "1"

func namespace(in Input) *corev1ac.NamespaceApplyConfiguration {
	return corev1ac.Namespace(NamespaceName(in.Pool.Name)).
		WithLabels(Labels(in.Pool)).
		WithLabels(map[string]string{
			"pod-security.kubernetes.io/enforce": podSecurityLevel,
			"pod-security.kubernetes.io/audit":   podSecurityLevel,
			"pod-security.kubernetes.io/warn":    podSecurityLevel,
		}).
		WithAnnotations(map[string]string{
			AnnotationDescription: "Runtime of SubPool " + in.Pool.Name + ", kept by the SubRelay operator. " +
				"It holds the pool's data and credentials: deleting this namespace destroys them. " +
				"Set spec.suspend on the SubPool to stop it and keep them.",
		}).
		WithOwnerReferences(owner(in.Pool))
}

// operatorAccess gives the operator its Secret rights, in this namespace only.
func operatorAccess(in Input) *rbacv1ac.RoleBindingApplyConfiguration {
	return rbacv1ac.RoleBinding(AccessName, NamespaceName(in.Pool.Name)).
		WithLabels(Labels(in.Pool)).
		WithOwnerReferences(owner(in.Pool)).
		WithRoleRef(rbacv1ac.RoleRef().
			WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(PoolRoleName)).
		WithSubjects(rbacv1ac.Subject().
			WithKind(rbacv1.ServiceAccountKind).WithNamespace(in.Operator.Namespace).WithName(in.Operator.Name))
}

// quota is the envelope. Node ports and load balancers are refused: the only ways in are the
// shared Gateway and port-forward.
func quota(in Input) *corev1ac.ResourceQuotaApplyConfiguration {
	return corev1ac.ResourceQuota(QuotaName, NamespaceName(in.Pool.Name)).
		WithLabels(Labels(in.Pool)).
		WithOwnerReferences(owner(in.Pool)).
		WithSpec(corev1ac.ResourceQuotaSpec().WithHard(hardLimits(in.Config.MaxPerPool)))
}

func hardLimits(envelope operatorconfig.Envelope) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceRequestsCPU:            envelope.Requests.CPU,
		corev1.ResourceRequestsMemory:         envelope.Requests.Memory,
		corev1.ResourceLimitsCPU:              envelope.Limits.CPU,
		corev1.ResourceLimitsMemory:           envelope.Limits.Memory,
		corev1.ResourceRequestsStorage:        envelope.Storage,
		corev1.ResourcePersistentVolumeClaims: resource.MustParse(maxClaims),
		corev1.ResourceServicesNodePorts:      resource.MustParse("0"),
		corev1.ResourceServicesLoadBalancers:  resource.MustParse("0"),
	}
}

// LowersQuota tells whether the envelope allows less of anything than the quota that is in force.
func LowersQuota(inForce *corev1.ResourceQuota, envelope operatorconfig.Envelope) bool {
	for name, amount := range hardLimits(envelope) {
		if before, limited := inForce.Spec.Hard[name]; !limited || amount.Cmp(before) < 0 {
			return true
		}
	}
	return false
}

// serviceAccount has no rights and its token is not mounted: the applications never talk to the API server.
func serviceAccount(in Input) *corev1ac.ServiceAccountApplyConfiguration {
	return corev1ac.ServiceAccount(RuntimeName, NamespaceName(in.Pool.Name)).
		WithLabels(Labels(in.Pool)).
		WithOwnerReferences(owner(in.Pool)).
		WithAutomountServiceAccountToken(false)
}

func service(in Input, name string, port int32) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service(name, NamespaceName(in.Pool.Name)).
		WithLabels(Labels(in.Pool)).
		WithOwnerReferences(owner(in.Pool)).
		WithSpec(corev1ac.ServiceSpec().
			WithType(corev1.ServiceTypeClusterIP).
			WithSelector(runtimeLabels(in.Pool)).
			WithPorts(corev1ac.ServicePort().
				WithName("http").
				WithProtocol(corev1.ProtocolTCP).
				WithPort(port).
				WithTargetPort(intstr.FromString(name))))
}

// disruptionBudget by default lets one Pod go, and a pool has one: a budget that kept it would block every node drain
// until a person suspends the pool. A Pod that is not Ready serves nobody and may always go: the budget's own arithmetic
// would keep it.
func disruptionBudget(in Input) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	return policyv1ac.PodDisruptionBudget(RuntimeName, NamespaceName(in.Pool.Name)).
		WithLabels(Labels(in.Pool)).
		WithOwnerReferences(owner(in.Pool)).
		WithSpec(policyv1ac.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(*in.Config.Runtime.MaxUnavailable)).
			WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow).
			WithSelector(runtimeSelector(in.Pool)))
}
