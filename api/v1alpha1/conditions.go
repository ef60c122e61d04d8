package v1alpha1

// Condition types of a SubPool. A condition that does not apply to a pool is absent.
const (
	// ConditionReady sums the others up. True means exactly: a Ready replica of the current revision
	// runs, both Services exist, the shared Mihomo has a ready endpoint, the exposure mode's prerequisites
	// hold, and all that for the current spec. It promises nothing about accounts, OAuth or upstream nodes.
	// False carries the reason and message of the first thing that blocks.
	ConditionReady = "Ready"

	// ConditionWorkloadReady is about the runtime StatefulSet, its Pod and the two Services.
	ConditionWorkloadReady = "WorkloadReady"

	// ConditionProxyReady is about the shared Mihomo proxy, the pool's only way out.
	ConditionProxyReady = "ProxyReady"

	// ConditionExposureReady is about the way in that spec.exposure.mode asks for.
	ConditionExposureReady = "ExposureReady"

	// ConditionSuspended is True while spec.suspend holds the pool stopped.
	ConditionSuspended = "Suspended"

	// ConditionDeleting is True from the moment a deletion is seen; its message says what is still there.
	ConditionDeleting = "Deleting"

	// ConditionReconciling is True while the operator still works towards the spec (kstatus).
	ConditionReconciling = "Reconciling"

	// ConditionStalled is True when only a person can help: waiting alone will not end the block (kstatus).
	ConditionStalled = "Stalled"
)

// Reasons of a False condition: what blocks the pool.
const (
	// ReasonOperatorConfigurationInvalid: the operator configuration is missing, unparsable or
	// inconsistent. Nothing is changed in any pool until it is mended; deletion still works.
	ReasonOperatorConfigurationInvalid = "OperatorConfigurationInvalid"

	// ReasonResourcesExceedBaseline: the pool asks for more than the operator configuration's maxPerPool.
	// The message says of what and by how much.
	ReasonResourcesExceedBaseline = "ResourcesExceedBaseline"

	// ReasonInvalidPoolResources: a request is above its limit, or an amount is not above 0. The API refuses that; a SubPool
	// stored before it did may still have it.
	ReasonInvalidPoolResources = "InvalidPoolResources"

	// ReasonNamespaceConflict: the namespace subpool-<pool id> exists and is not provably this pool's.
	// Nothing in it is touched, not even when the SubPool is deleted.
	ReasonNamespaceConflict = "NamespaceConflict"

	// ReasonNamespaceTerminating: the pool's namespace is being deleted. Nothing is written into it; the
	// pool is built anew, with new credentials and an empty volume, once it is gone.
	ReasonNamespaceTerminating = "NamespaceTerminating"

	// ReasonCredentialConflict: the Secret subpool-credentials exists and is not this pool's.
	ReasonCredentialConflict = "CredentialConflict"

	// ReasonCredentialInvalid: the Secret subpool-credentials lacks a required key, or the key is empty.
	ReasonCredentialInvalid = "CredentialInvalid"

	// ReasonApplyFailed: the API server refused an object of the pool; the message is the server's.
	ReasonApplyFailed = "ApplyFailed"

	// ReasonWorkloadMissing: the runtime StatefulSet does not exist (yet).
	ReasonWorkloadMissing = "WorkloadMissing"

	// ReasonWorkloadsNotReady: the runtime Pod is on its way: starting, stopping, or being replaced. Nothing is known to
	// be wrong.
	ReasonWorkloadsNotReady = "WorkloadsNotReady"

	// ReasonQuotaExceeded: a ResourceQuota in the pool's namespace refuses the Pod. The pool's own quota never does, so
	// look for another one.
	ReasonQuotaExceeded = "QuotaExceeded"

	// ReasonPodSecurityViolation: the namespace's Pod Security level refuses the Pod.
	ReasonPodSecurityViolation = "PodSecurityViolation"

	// ReasonPodRefused: something else, such as an admission policy, refuses the Pod; the message is the server's.
	ReasonPodRefused = "PodRefused"

	// ReasonVolumePending: the volume claim has no volume. The StorageClass may not exist or cannot provision.
	ReasonVolumePending = "VolumePending"

	// ReasonVolumeNotMounted: the node cannot attach or mount a volume of the Pod.
	ReasonVolumeNotMounted = "VolumeNotMounted"

	// ReasonUnschedulable: no node takes the Pod.
	ReasonUnschedulable = "Unschedulable"

	// ReasonImagePullFailed: the node cannot get an image.
	ReasonImagePullFailed = "ImagePullFailed"

	// ReasonInitializationFailed: an init container ended with an error; its log says what to do.
	ReasonInitializationFailed = "InitializationFailed"

	// ReasonContainerStartFailed: the node cannot start a container, for example because its command is not in the image.
	ReasonContainerStartFailed = "ContainerStartFailed"

	// ReasonContainerCrashing: a container ended and is started again, or was out of memory. CPA ends with exit code 0
	// when its configuration is bad, so the code alone says little.
	ReasonContainerCrashing = "ContainerCrashing"

	// ReasonProbeFailing: a container runs, and does not become ready.
	ReasonProbeFailing = "ProbeFailing"

	// ReasonServiceMissing: one of the Services cpa and cpa-manager does not exist (yet).
	ReasonServiceMissing = "ServiceMissing"

	// ReasonEndpointsUnavailable: the shared Mihomo Service has no ready endpoint.
	ReasonEndpointsUnavailable = "EndpointsUnavailable"

	// ReasonRouteMissing: the pool asks for Gateway exposure and no HTTPRoute exists for it.
	ReasonRouteMissing = "RouteMissing"

	// ReasonSuspended: spec.suspend is true.
	ReasonSuspended = "Suspended"

	// ReasonDeletionInProgress: the pool is being taken down and nothing holds it up yet.
	ReasonDeletionInProgress = "DeletionInProgress"

	// ReasonDeletionBlocked: the namespace cannot go; the message says what remains and what holds it.
	ReasonDeletionBlocked = "DeletionBlocked"
)

// Reasons of a satisfied condition.
const (
	// ReasonPoolReady: everything that Ready promises holds.
	ReasonPoolReady = "PoolReady"

	// ReasonReplicaReady: the runtime Pod is Ready on the current revision and both Services exist.
	ReasonReplicaReady = "ReplicaReady"

	// ReasonEndpointsReady: the shared Mihomo Service has at least one ready endpoint.
	ReasonEndpointsReady = "EndpointsReady"

	// ReasonClusterInternal: Internal exposure needs nothing beyond the pool's Services.
	ReasonClusterInternal = "ClusterInternal"

	// ReasonRunning: spec.suspend is false.
	ReasonRunning = "Running"
)

// EventCredentialsMade is the reason of the Event that tells of a new Secret subpool-credentials. Other Events
// carry the reason of the condition whose change they tell of.
const EventCredentialsMade = "CredentialsMade"

// EventPodReplaced is the reason of the Event that tells of the removal of a Pod that was stuck on an older revision.
const EventPodReplaced = "PodReplaced"
