package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Names that the operator puts on objects, or expects there.
const (
	// Finalizer holds a SubPool back until its namespace is confirmed gone. Only the operator removes it.
	Finalizer = "subrelay.example.com/finalizer"

	// LabelManaged marks every object that the operator keeps. The shared Gateway's listeners admit
	// routes from namespaces that carry it, so it is part of the namespace's create call.
	LabelManaged = "subrelay.example.com/managed"
	// LabelManagedValue is the only value of LabelManaged.
	LabelManagedValue = "true"

	// LabelPool carries the pool id (the name of the SubPool) on every managed object.
	LabelPool = "subrelay.example.com/pool"
)

// ExposureMode says how clients reach the pool's CPA.
// +kubebuilder:validation:Enum=Internal;Gateway
type ExposureMode string

const (
	// ExposureInternal makes ClusterIP Services only: clients inside the cluster's rules, or kubectl port-forward.
	ExposureInternal ExposureMode = "Internal"
	// ExposureGateway also publishes CPA (never cpa-manager) through the shared Envoy Gateway.
	ExposureGateway ExposureMode = "Gateway"
)

// ImageReference is a container image with a tag or a digest, for example
// registry.example.invalid/subrelay/cpa:v7.2.140. A digest is the better choice: a tag can move.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=512
// +kubebuilder:validation:XValidation:rule="self.matches('^(?:(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:[.][a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|[[][a-fA-F0-9:]+[]])(?::[0-9]+)?/)?[a-z0-9]+(?:(?:[.]|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[.]|_|__|-+)[a-z0-9]+)*)*(?::[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127})?(?:@[a-z0-9]+:[0-9a-f]{32,128})?$')",message="not an image reference: write [registry[:port]/]repository:tag or [registry[:port]/]repository@sha256:digest"
// +kubebuilder:validation:XValidation:rule="self.matches('(:[a-zA-Z0-9_][a-zA-Z0-9_.-]*|@[^@/]+)$')",message="the image needs a tag or a digest: without one the newest build would be run, whatever it is"
type ImageReference string

// SubPoolSpec is what the user asks for.
type SubPoolSpec struct {
	// exposure says how clients reach the pool. Without it the pool is Internal.
	// +optional
	// +default={"mode":"Internal"}
	Exposure ExposureSpec `json:"exposure,omitempty,omitzero"`

	// storage is the volume that holds the configuration, accounts, logs and usage data of the pool.
	// +required
	Storage StorageSpec `json:"storage,omitempty,omitzero"`

	// cpa is the API proxy that clients talk to (port 8317).
	// +required
	CPA ContainerSpec `json:"cpa,omitempty,omitzero"`

	// cpaManager is the administrator's panel (port 18317); it is never published.
	// +required
	CPAManager ContainerSpec `json:"cpaManager,omitempty,omitzero"`

	// suspend stops the pool: no Pod runs and no route exists, while namespace, volume and credentials
	// are kept. Setting it back to false starts the pool again on the same volume.
	// +optional
	// +default=false
	Suspend bool `json:"suspend,omitempty"`
}

// ExposureSpec says how clients reach the pool.
type ExposureSpec struct {
	// mode is Internal (ClusterIP Services only) or Gateway (also an HTTPRoute on the shared Gateway).
	// +optional
	// +default="Internal"
	Mode ExposureMode `json:"mode,omitempty"`
}

// StorageSpec describes the pool's volume.
type StorageSpec struct {
	// size is the capacity of the volume, for example 20Gi. It cannot be changed: volumes of a
	// StatefulSet are not resized by this operator.
	// +required
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="storage.size must be greater than 0"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity(string(oldSelf))) == 0",message="storage.size is immutable: create a pool with the size you need, move the data there, then delete this one"
	Size resource.Quantity `json:"size,omitempty,omitzero"`
}

// ContainerSpec describes one of the two applications of the pool.
type ContainerSpec struct {
	// image is what the container runs. A ":latest" tag is pulled at every start, anything else only
	// when the node lacks it.
	// +required
	Image ImageReference `json:"image,omitempty"`

	// resources are the container's requests and limits. The sum over both containers must fit the
	// operator configuration's maxPerPool.
	// +required
	Resources ContainerResources `json:"resources,omitempty,omitzero"`
}

// ContainerResources are the requests and limits of one container. All four values are required, so
// that the namespace's quota can always account for the Pod.
// +kubebuilder:validation:XValidation:rule="quantity(string(self.requests.cpu)).compareTo(quantity(string(self.limits.cpu))) <= 0",message="requests.cpu must not exceed limits.cpu"
// +kubebuilder:validation:XValidation:rule="quantity(string(self.requests.memory)).compareTo(quantity(string(self.limits.memory))) <= 0",message="requests.memory must not exceed limits.memory"
type ContainerResources struct {
	// requests is what the scheduler reserves for the container.
	// +required
	Requests ComputeResources `json:"requests,omitempty,omitzero"`

	// limits is the most the container can use.
	// +required
	Limits ComputeResources `json:"limits,omitempty,omitzero"`
}

// ComputeResources is an amount of CPU and memory.
type ComputeResources struct {
	// cpu in cores, for example 500m.
	// +required
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="cpu must be greater than 0"
	CPU resource.Quantity `json:"cpu,omitempty,omitzero"`

	// memory in bytes, for example 512Mi.
	// +required
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="memory must be greater than 0"
	Memory resource.Quantity `json:"memory,omitempty,omitzero"`
}

// SubPoolStatus is what the operator found and did. Only the operator writes it.
type SubPoolStatus struct {
	// conditions say how far the pool got and what blocks it; their types and reasons are documented
	// beside the constants of this package.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the newest generation of the spec that the operator has judged. The verdict,
	// good or bad, is in the conditions.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// namespace is where the pool's objects live.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// hostname is the host that the shared Gateway serves for this pool; Gateway mode only.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Hostname string `json:"hostname,omitempty"`

	// images are the images that the runtime Pod runs right now, as the node resolved them.
	// +optional
	// +listType=map
	// +listMapKey=container
	// +kubebuilder:validation:MaxItems=8
	Images []RunningImage `json:"images,omitempty"`

	// operatorConfiguration is the operator configuration that this status was computed with.
	// +optional
	//nolint:kubeapilinter // wants a value here, and of a value with required fields that it be required
	OperatorConfiguration *OperatorConfigurationReference `json:"operatorConfiguration,omitempty"`
}

// RunningImage is the image of one running container.
type RunningImage struct {
	// container is the name of the container.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Container string `json:"container,omitempty"`

	// imageID is the image as the node's runtime resolved it, usually with its digest.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	ImageID string `json:"imageID,omitempty"`
}

// OperatorConfigurationReference names one version of the operator configuration.
type OperatorConfigurationReference struct {
	// name of the ConfigMap in the operator's namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// hash of the configuration's content: two replicas, or two pools, that show the same hash act on
	// the same content.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Hash string `json:"hash,omitempty"`
}

// SubPool is one isolated CPA runtime. Its name is the pool id; everything the operator makes for it
// lives in the namespace subpool-<pool id> and goes away with it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=sp,categories=subrelay
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.exposure.mode`
// +kubebuilder:printcolumn:name="Hostname",type=string,JSONPath=`.status.hostname`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.status.namespace`,priority=1
// +kubebuilder:printcolumn:name="CPA image",type=string,JSONPath=`.spec.cpa.image`,priority=1
// +kubebuilder:printcolumn:name="Manager image",type=string,JSONPath=`.spec.cpaManager.image`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 55",message="metadata.name must have at most 55 characters: the pool's namespace is subpool-<name>, and namespaces end at 63"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be a DNS label (lower-case letters, digits and '-', starting and ending with a letter or digit; no dots): it becomes part of a namespace and of a host name"
// +kubebuilder:validation:XValidation:rule="!(self.metadata.name in ['system', 'gateway'])",message="metadata.name must not be 'system' or 'gateway': subpool-system and subpool-gateway are namespaces of SubRelay itself"
type SubPool struct {
	metav1.TypeMeta `json:",inline"`

	// metadata holds the pool id (name) and the usual bookkeeping.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is what the user asks for.
	// +required
	Spec SubPoolSpec `json:"spec,omitempty,omitzero"`

	// status is what the operator found and did.
	// +optional
	Status SubPoolStatus `json:"status,omitempty,omitzero"`
}

// SubPoolList is a list of SubPools.
//
// +kubebuilder:object:root=true
type SubPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the SubPools.
	Items []SubPool `json:"items"`
}
