// Package operatorconfig is the operator's own configuration: what one administrator decides for all
// pools. It comes from an immutable, versioned ConfigMap and is parsed strictly, so that a typo is an
// error and never a silent default.
package operatorconfig

import (
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// APIVersion heads every configuration document.
	APIVersion = "config.subrelay.example.com/v1alpha1"
	// Kind heads every configuration document.
	Kind = "OperatorConfiguration"

	// Key is the entry of the ConfigMap that holds the document.
	Key = "config.yaml"
)

// Config is a parsed and validated configuration. It is never changed after Parse returned it.
type Config struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	// BaseDomain is the DNS domain of published pools: the pool's host is <pool id>.<baseDomain>.
	BaseDomain string `json:"baseDomain"`

	// Gateway is the shared Envoy Gateway, the only way in.
	Gateway Gateway `json:"gateway"`

	// Mihomo is the shared forward proxy, the only way out.
	Mihomo Mihomo `json:"mihomo"`

	// StartGate keeps a Pod from starting its applications before the NetworkPolicies are enforced for it.
	StartGate StartGate `json:"startGate"`

	// DNS lists the resolvers that pools may ask. At least one.
	DNS []DNSPeer `json:"dns"`

	// Storage is the volume policy.
	Storage Storage `json:"storage"`

	// MaxPerPool is the envelope: the most that one pool may ask for. It is also the quota of the
	// pool's namespace.
	MaxPerPool Envelope `json:"maxPerPool"`

	// Runtime changes how the two applications are started. Everything in it has a default.
	Runtime Runtime `json:"runtime"`
}

// Gateway names the shared Gateway and the Pods that carry its traffic.
type Gateway struct {
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
	SectionName string `json:"sectionName"`

	// DataPlane selects the Pods that forward requests; only they reach CPA, in Gateway mode only.
	DataPlane []PodPeer `json:"dataPlane"`

	// Paths are the prefixes, whole path elements, that a published pool serves; nothing else of CPA is published.
	// CPA's management and its panel cannot be. Default: the APIs for clients, the health path and the log-in callbacks.
	Paths []string `json:"paths,omitempty"`

	// TolerateMissingAddress takes a Gateway for programmed although no address is assigned to it, as on clusters without
	// load balancers, as long as the listener itself is programmed.
	TolerateMissingAddress bool `json:"tolerateMissingAddress,omitempty"`
}

// PodPeer selects Pods by labels inside one namespace.
type PodPeer struct {
	Namespace string            `json:"namespace"`
	PodLabels map[string]string `json:"podLabels"`
}

// StartGate is the first init container of every Pod. It ends when addresses that an isolated Pod must not reach refuse it.
type StartGate struct {
	// Enabled is true unless switched off, for a cluster whose network does not enforce NetworkPolicies. Then nothing
	// isolates the pools.
	Enabled *bool `json:"enabled,omitempty"`

	// Image holds the program /wait-for-isolation: the operator's own image. It is not taken from the operator's Deployment,
	// because a change restarts every pool, and an upgrade of the operator must not.
	Image string `json:"image,omitempty"`

	// Forbidden are addresses, host:port, that answer connections, but not to an isolated Pod. Default: the API server.
	Forbidden []string `json:"forbidden,omitempty"`

	// BudgetSeconds is how long the gate waits before it fails and is started again. Default 60.
	BudgetSeconds int32 `json:"budgetSeconds,omitempty"`
}

// Mihomo names the shared proxy's Service.
type Mihomo struct {
	Namespace string `json:"namespace"`
	Service   string `json:"service"`

	// Port is the Service's port, not the Pod's.
	Port int32 `json:"port"`
}

// DNSPeer is one resolver: Pods (namespace and podLabels) or an address block (cidr), for
// example that of a node-local cache.
type DNSPeer struct {
	Namespace string            `json:"namespace,omitempty"`
	PodLabels map[string]string `json:"podLabels,omitempty"`
	CIDR      string            `json:"cidr,omitempty"`

	// Port is where the resolver itself listens; policies see it after Service translation. Default 53.
	Port int32 `json:"port,omitempty"`
}

// Storage is the volume policy.
type Storage struct {
	// ClassName is the StorageClass of new volumes; empty means the cluster's default class.
	ClassName string `json:"className,omitempty"`
}

// Envelope is an upper bound per pool.
type Envelope struct {
	Requests Compute           `json:"requests"`
	Limits   Compute           `json:"limits"`
	Storage  resource.Quantity `json:"storage"`
}

// Compute is an amount of CPU (cores) and memory (bytes).
type Compute struct {
	CPU    resource.Quantity `json:"cpu"`
	Memory resource.Quantity `json:"memory"`
}

// Runtime says how the two applications are started.
type Runtime struct {
	CPA        Application `json:"cpa"`
	CPAManager Application `json:"cpaManager"`

	// MaxUnavailable of the pool's disruption budget: 1 lets a node be drained, 0 holds the drain up until the pool is
	// suspended. Default 1.
	MaxUnavailable *int32 `json:"maxUnavailable,omitempty"`

	// MaxRestarting is how many Ready pools are restarted at a time when a new operator configuration or version changes
	// their Pods. 0 holds all of them back until their own spec changes. Default 10.
	MaxRestarting *int32 `json:"maxRestarting,omitempty"`
}

// Application changes the start of one application.
type Application struct {
	// Command and Args replace the default as a whole when they are given.
	Command []string `json:"command,omitempty"`
	Args    []string `json:"args,omitempty"`

	// Env is laid over the default environment, name by name. Names that the operator derives from
	// the pool (proxy and credential variables) are refused.
	Env map[string]string `json:"env,omitempty"`

	// PreStopSleepSeconds delays SIGTERM so that requests in flight can end. The Pod's grace period is
	// 30 s and includes it.
	PreStopSleepSeconds *int64 `json:"preStopSleepSeconds,omitempty"`

	// Probes says how patient the node is with the application.
	Probes Probes `json:"probes"`
}

// Probes are times in seconds and a count. All have defaults.
type Probes struct {
	// StartupSeconds is how long the application may take to answer for the first time.
	StartupSeconds int32 `json:"startupSeconds,omitempty"`
	// ReadinessPeriodSeconds and LivenessPeriodSeconds are how often it is asked afterwards.
	ReadinessPeriodSeconds int32 `json:"readinessPeriodSeconds,omitempty"`
	LivenessPeriodSeconds  int32 `json:"livenessPeriodSeconds,omitempty"`
	// TimeoutSeconds is how long one answer may take.
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
	// FailureThreshold is how many answers in a row must fail before the Pod is taken out of service, or restarted.
	FailureThreshold int32 `json:"failureThreshold,omitempty"`
}
