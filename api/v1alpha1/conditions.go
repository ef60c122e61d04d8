package v1alpha1

// Condition types of a SubPool. A condition that does not apply to a pool is absent.
const (
	// ConditionReady sums the others up. True means exactly: a Ready replica of the current revision
	// runs, both Services exist, the shared Mihomo has a ready endpoint, the exposure mode's prerequisites
	// hold, and all that for the current spec. It promises nothing about accounts, OAuth or upstream nodes.
	// False carries the reason and message of the first thing that blocks.
	ConditionReady = "Ready"

	// ConditionIsolationEnforced is True with the evidence of the running Pod: its start gate was refused where an
	// isolated Pod must be refused. It is Unknown while no Pod has passed the gate, or when the gate is switched off.
	ConditionIsolationEnforced = "IsolationEnforced"

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

	// ReasonRouteMissing: the pool asks for Gateway exposure and its HTTPRoute does not exist (yet).
	ReasonRouteMissing = "RouteMissing"

	// ReasonGatewayAPIMissing: the cluster does not serve a kind of the Gateway API (gateway.networking.k8s.io/v1) that
	// Gateway exposure needs. Install its definitions: they are noticed.
	ReasonGatewayAPIMissing = "GatewayAPIMissing"

	// ReasonHostConflict: an HTTPRoute that is not the pool's has the pool's host on the shared Gateway and was there
	// first. The pool gets no route until that one is gone.
	ReasonHostConflict = "HostConflict"

	// ReasonRouteNotAccepted: the shared Gateway's controller has not accepted the pool's HTTPRoute as it is now, or
	// cannot resolve what it refers to; the message is the controller's.
	ReasonRouteNotAccepted = "RouteNotAccepted"

	// ReasonGatewayMissing: the shared Gateway or its GatewayClass does not exist.
	ReasonGatewayMissing = "GatewayMissing"

	// ReasonGatewayNotProgrammed: the shared Gateway does not work (yet); the message is its controller's.
	ReasonGatewayNotProgrammed = "GatewayNotProgrammed"

	// ReasonGatewayAddressMissing: the shared Gateway works but for an address. The operator configuration can tolerate
	// that (gateway.tolerateMissingAddress).
	ReasonGatewayAddressMissing = "GatewayAddressMissing"

	// ReasonIsolationNotEnforced: the Pod's start gate still reaches what an isolated Pod must not reach, or cannot find
	// the proxy. The applications are not started.
	ReasonIsolationNotEnforced = "IsolationNotEnforced"

	// ReasonForeignNetworkPolicy: NetworkPolicies that are not the operator's are in the pool's namespace. Policies add up,
	// so they can only open the pool's walls. They are left alone, and Ready does not depend on them.
	ReasonForeignNetworkPolicy = "ForeignNetworkPolicy"

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

	// ReasonRestartPending: the runtime Pod is Ready, but of an older template. A new operator configuration or version
	// changes it, and the pool waits for its turn to be restarted (runtime.maxRestarting).
	ReasonRestartPending = "RestartPending"

	// ReasonEndpointsReady: the shared Mihomo Service has at least one ready endpoint.
	ReasonEndpointsReady = "EndpointsReady"

	// ReasonClusterInternal: Internal exposure needs nothing beyond the pool's Services.
	ReasonClusterInternal = "ClusterInternal"

	// ReasonRouteProgrammed: the shared Gateway's controller has accepted the pool's HTTPRoute as it is now, and the
	// Gateway is programmed.
	ReasonRouteProgrammed = "RouteProgrammed"

	// ReasonGatePassed: the start gate of the running Pod was refused where it must be; the message is the gate's.
	ReasonGatePassed = "GatePassed"

	// ReasonRunning: spec.suspend is false.
	ReasonRunning = "Running"
)

// Reasons of a condition that is Unknown.
const (
	// ReasonGatePending: no Pod of the pool has passed the start gate yet.
	ReasonGatePending = "GatePending"

	// ReasonGateDisabled: the operator configuration switches the start gate off, so nothing is known about isolation.
	ReasonGateDisabled = "GateDisabled"
)

// EventCredentialsMade is the reason of the Event that tells of a new Secret subpool-credentials in the place of one that is
// gone. Other Events carry the reason of the condition whose change they tell of.
const EventCredentialsMade = "CredentialsMade"

// EventPolicyRestored is the reason of the Event that tells that somebody had removed or changed a NetworkPolicy of a running
// pool. It is back; traffic may have passed in between.
const EventPolicyRestored = "PolicyRestored"

// EventPodReplaced is the reason of the Event that tells of the removal of a Pod that could not become Ready: it was stuck on
// an older revision, or its containers kept ending although it had been Ready.
const EventPodReplaced = "PodReplaced"
