// Package subpool says what a pool is: every object that belongs to one SubPool, as the API server
// should have it. It is pure: same input, same objects, no client, no clock, no randomness.
package subpool

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/internal/operatorconfig"
)

// NamespacePrefix precedes the pool id in the name of the pool's namespace.
const NamespacePrefix = "subpool-"

// Names of the objects in a pool's namespace.
const (
	RuntimeName       = "runtime" // StatefulSet, PodDisruptionBudget, ServiceAccount and component label
	CPAName           = "cpa"
	CPAManagerName    = "cpa-manager"
	CredentialsName   = "subpool-credentials"
	QuotaName         = "pool"
	AccessName        = "subpool-operator" // the RoleBinding that lets the operator keep the Secret
	DataVolumeName    = "data"
	DefaultDenyName   = "default-deny"
	AllowDNSName      = "allow-dns"
	AllowMihomoName   = "allow-mihomo"
	AllowGatewayName  = "allow-gateway"
	initializeVolume  = "bootstrap"
	cpaTempVolume     = "cpa-tmp"
	managerTempVolume = "tmp"
)

// Ports that the two applications listen on.
const (
	CPAPort        = 8317
	CPAManagerPort = 18317
)

// PoolRoleName is the ClusterRole, shipped with the operator, whose rights the operator has in the
// namespaces of pools only.
const PoolRoleName = "subpool-operator-pool"

// labelComponent tells the runtime Pod from anything else in the namespace.
const labelComponent = "subrelay.example.com/component"

// Input is all that the objects of a pool are made from.
type Input struct {
	Pool   *v1alpha1.SubPool
	Config *operatorconfig.Config

	// Operator is the ServiceAccount that the operator runs as.
	Operator Identity

	// Proxy is the shared Mihomo as its Service describes it; nil while that Service does not exist. Then
	// the pool has no way out.
	Proxy *Proxy

	// Credentials is the UID of the pool's Secret. Another Secret is a change of the Pod template: the Pod is replaced
	// once, and the init containers bring the volume in line with the new keys. Only the workload needs it.
	Credentials types.UID

	// Claim is the claim template of the StatefulSet that exists already, which cannot be changed any
	// more; nil for a new pool.
	Claim *Claim
}

// Identity is a ServiceAccount.
type Identity struct {
	Namespace string
	Name      string
}

// Proxy is what a policy needs to know of the shared Mihomo.
type Proxy struct {
	PodLabels map[string]string
	// Port is where the Pods listen; policies see it after Service translation.
	Port int32
}

// Claim is the part of a claim template that was decided when the pool was made.
type Claim struct {
	// StorageClass is empty for the cluster's default class.
	StorageClass string
}

// NamespaceName is the name of the pool's namespace.
func NamespaceName(poolID string) string { return NamespacePrefix + poolID }

// PoolID is the reverse of NamespaceName; false for a namespace that no pool can have.
func PoolID(namespace string) (string, bool) { return strings.CutPrefix(namespace, NamespacePrefix) }

// PodName is the name of the pool's only Pod.
func PodName() string { return RuntimeName + "-0" }

// ClaimName is the name of the pool's volume claim.
func ClaimName() string { return DataVolumeName + "-" + PodName() }

// Hostname is the host of a published pool.
func Hostname(poolID, baseDomain string) string { return poolID + "." + baseDomain }

// Stages are the objects of a pool in the order they are written: those of one stage do not depend on
// each other, and the runtime comes when everything it must not run without is there.
type Stages struct {
	Namespace runtime.ApplyConfiguration

	// Walls bound what may run in the namespace, and what it may reach.
	Walls []runtime.ApplyConfiguration

	// Quota is a wall too. It comes after the workload when it becomes smaller, see LowersQuota: a Pod that
	// is replaced in between must fit.
	Quota runtime.ApplyConfiguration

	// Furniture is what the runtime uses.
	Furniture []runtime.ApplyConfiguration
}

// All are the objects of every stage.
func (s Stages) All() []runtime.ApplyConfiguration {
	return slices.Concat([]runtime.ApplyConfiguration{s.Namespace, s.Quota}, s.Walls, s.Furniture)
}

// Desired returns the objects that the runtime needs, but for the Secret, which is made once: see Credentials. The
// runtime itself, see Workload, comes after both.
func Desired(in Input) Stages {
	return Stages{
		Namespace: namespace(in),
		Walls:     append(networkPolicies(in), operatorAccess(in)),
		Quota:     quota(in),
		Furniture: []runtime.ApplyConfiguration{
			serviceAccount(in), initializeConfigMap(in),
			service(in, CPAName, CPAPort), service(in, CPAManagerName, CPAManagerPort),
			disruptionBudget(in),
		},
	}
}

// Labels are on every object of the pool.
func Labels(pool *v1alpha1.SubPool) map[string]string {
	return map[string]string{
		v1alpha1.LabelManaged: v1alpha1.LabelManagedValue,
		v1alpha1.LabelPool:    pool.Name,
	}
}

func runtimeLabels(pool *v1alpha1.SubPool) map[string]string {
	labels := Labels(pool)
	labels[labelComponent] = RuntimeName
	return labels
}

func runtimeSelector(pool *v1alpha1.SubPool) *metav1ac.LabelSelectorApplyConfiguration {
	return metav1ac.LabelSelector().WithMatchLabels(runtimeLabels(pool))
}

// owner makes the SubPool the controlling owner: proof of whose object it is. It does not block the
// owner's deletion, which the finalizer orders.
func owner(pool *v1alpha1.SubPool) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion(v1alpha1.SchemeGroupVersion.String()).
		WithKind("SubPool").
		WithName(pool.Name).
		WithUID(pool.UID).
		WithController(true)
}

// pullPolicy is always explicit, so that it never follows a change of the server's defaults: a moving
// tag is pulled at each start, anything else only when the node lacks it.
func pullPolicy(image v1alpha1.ImageReference) corev1.PullPolicy {
	if strings.HasSuffix(string(image), ":latest") {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}
