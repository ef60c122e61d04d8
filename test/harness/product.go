package harness

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// How the shipped manifests install the product. Tests know these names by themselves, as users do.
const (
	SystemNamespace = "subpool-system"
	SharedNamespace = "subpool-gateway"

	// OperatorAccount is the operator's ServiceAccount, OperatorUser who it is to the API server.
	OperatorAccount = "subpool-operator"
	OperatorUser    = "system:serviceaccount:" + SystemNamespace + ":" + OperatorAccount

	// SubPoolCRD is the definition of SubPools.
	SubPoolCRD = "subpools.subrelay.example.com"

	// OperatorConfig is the ConfigMap with the operator configuration.
	OperatorConfig = "subpool-operator-config-v1"
)

// NamespaceOf returns the name of a pool's namespace.
func NamespaceOf(poolID string) string { return "subpool-" + poolID }

// Resources returns what a container asks for and what it may use, as Kubernetes spells quantities.
func Resources(requestedCPU, requestedMemory, cpuLimit, memoryLimit string) v1alpha1.ContainerResources {
	return v1alpha1.ContainerResources{
		Requests: v1alpha1.ComputeResources{CPU: resource.MustParse(requestedCPU), Memory: resource.MustParse(requestedMemory)},
		Limits:   v1alpha1.ComputeResources{CPU: resource.MustParse(cpuLimit), Memory: resource.MustParse(memoryLimit)},
	}
}

// NewPool returns a pool with a small volume whose id begins with the given word and is not in use. Both containers get
// the same resources.
func NewPool(word string, cpaImage, managerImage v1alpha1.ImageReference, resources v1alpha1.ContainerResources) *v1alpha1.SubPool {
	return &v1alpha1.SubPool{
		ObjectMeta: metav1.ObjectMeta{Name: word + "-" + rand.String(5)},
		Spec: v1alpha1.SubPoolSpec{
			Storage:    v1alpha1.StorageSpec{Size: resource.MustParse("1Gi")},
			CPA:        v1alpha1.ContainerSpec{Image: cpaImage, Resources: resources},
			CPAManager: v1alpha1.ContainerSpec{Image: managerImage, Resources: resources},
		},
	}
}
