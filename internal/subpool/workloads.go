package subpool

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/internal/operatorconfig"
)

const (
	// InitializeName is the init container that prepares the volume.
	InitializeName = "initialize-config"
	// InitializeManagerName is the init container that prepares the manager's database.
	InitializeManagerName = "initialize-manager"

	// nonRootID is user, group and volume group of every process of the pool: "nonroot" of the
	// distroless images.
	nonRootID = 65532

	// gracePeriodSeconds bounds a stop: CPA's preStop sleep plus its 2 s, and the manager's own worst case.
	gracePeriodSeconds = 30

	// secretFileMode lets the volume's group, and nobody else, read the credentials.
	secretFileMode = 0o440

	// scriptFileMode makes the script executable for the same group.
	scriptFileMode = 0o550

	// tempSize bounds each application's scratch space: the manager's database spills large sorts there, CPA uploads of
	// more than 32 MiB.
	tempSize = "256Mi"

	// logShare, in percent, of the volume is what CPA's logs may fill. CPA itself has no limit unless it is given one.
	logShare = 5

	credentialsVolume        = "credentials"
	managerCredentialsVolume = "manager-credentials"
	secretsPath              = "/run/secrets"
	revisionHistory          = 3
)

// annotationCredentials names the Secret, by UID, whose keys the Pod runs with.
const annotationCredentials = "subrelay.example.com/credentials"

// annotationTemplate, on the StatefulSet, identifies the Pod template: with another one the Pod is replaced.
const annotationTemplate = "subrelay.example.com/template"

// templateHashLength is how much of the template's SHA-256, in hex, identifies it.
const templateHashLength = 16

// Workload returns the runtime: the StatefulSet with its claim template.
func Workload(in Input) *appsv1ac.StatefulSetApplyConfiguration {
	replicas := int32(1)
	if in.Pool.Spec.Suspend {
		replicas = 0
	}
	template := podTemplate(in)
	return appsv1ac.StatefulSet(RuntimeName, NamespaceName(in.Pool.Name)).
		WithLabels(Labels(in.Pool)).
		WithAnnotations(map[string]string{annotationTemplate: templateHash(template)}).
		WithOwnerReferences(owner(in.Pool)).
		WithSpec(appsv1ac.StatefulSetSpec().
			WithReplicas(replicas).
			WithRevisionHistoryLimit(revisionHistory).
			WithSelector(runtimeSelector(in.Pool)).
			WithUpdateStrategy(appsv1ac.StatefulSetUpdateStrategy().
				WithType(appsv1.RollingUpdateStatefulSetStrategyType)).
			WithTemplate(template).
			WithVolumeClaimTemplates(claimTemplate(in)))
}

// Restarts tells whether the intent has another Pod template than the StatefulSet that exists. It does not know for one
// that was written before there was this mark, and says yes.
func Restarts(live *appsv1.StatefulSet, intent *appsv1ac.StatefulSetApplyConfiguration) bool {
	return live.Annotations[annotationTemplate] != intent.Annotations[annotationTemplate]
}

// RunsWith tells whether the StatefulSet's Pod runs with the keys of this Secret.
func RunsWith(live *appsv1.StatefulSet, credentials types.UID) bool {
	return live.Spec.Template.Annotations[annotationCredentials] == string(credentials)
}

func podTemplate(in Input) *corev1ac.PodTemplateSpecApplyConfiguration {
	return corev1ac.PodTemplateSpec().
		WithLabels(runtimeLabels(in.Pool)).
		WithAnnotations(map[string]string{
			"kubectl.kubernetes.io/default-container": CPAName,
			annotationCredentials:                     string(in.Credentials),
		}).
		WithSpec(podSpec(in))
}

func templateHash(template *corev1ac.PodTemplateSpecApplyConfiguration) string {
	content, err := json.Marshal(template)
	if err != nil {
		panic(fmt.Errorf("a Pod template cannot be encoded: %w", err)) // it is made of strings and numbers
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])[:templateHashLength]
}

// claimTemplate cannot change once the StatefulSet exists: the size by the API's own rule, the storage
// class because it is taken from the live object.
func claimTemplate(in Input) *corev1ac.PersistentVolumeClaimApplyConfiguration {
	spec := corev1ac.PersistentVolumeClaimSpec().
		WithAccessModes(corev1.ReadWriteOnce).
		WithVolumeMode(corev1.PersistentVolumeFilesystem).
		WithResources(corev1ac.VolumeResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceStorage: in.Pool.Spec.Storage.Size}))
	class := in.Config.Storage.ClassName
	if in.Claim != nil {
		class = in.Claim.StorageClass
	}
	if class != "" {
		spec.WithStorageClassName(class)
	}
	claim := corev1ac.PersistentVolumeClaim(DataVolumeName, "").
		WithLabels(Labels(in.Pool)).
		WithSpec(spec).
		// The server fills this in. The list of templates is compared as a whole, so without it the live
		// object would always look edited.
		WithStatus(corev1ac.PersistentVolumeClaimStatus().WithPhase(corev1.ClaimPending))
	// A template has no namespace, and live objects come without these two.
	claim.Namespace, claim.APIVersion, claim.Kind = nil, nil, nil
	return claim
}

func podSpec(in Input) *corev1ac.PodSpecApplyConfiguration {
	return corev1ac.PodSpec().
		WithServiceAccountName(RuntimeName).
		WithAutomountServiceAccountToken(false).
		// Service variables such as CPA_PORT would be read by cpa-manager as its own settings.
		WithEnableServiceLinks(false).
		WithTerminationGracePeriodSeconds(gracePeriodSeconds).
		WithSecurityContext(corev1ac.PodSecurityContext().
			WithRunAsNonRoot(true).
			WithRunAsUser(nonRootID).
			WithRunAsGroup(nonRootID).
			WithFSGroup(nonRootID).
			WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch).
			WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
		WithInitContainers(initContainers(in)...).
		WithContainers(cpaContainer(in), managerContainer(in)).
		WithVolumes(
			corev1ac.Volume().WithName(initializeVolume).WithConfigMap(corev1ac.ConfigMapVolumeSource().
				WithName(initializeName()).WithDefaultMode(scriptFileMode)),
			secretVolume(credentialsVolume, CredentialKeys...),
			secretVolume(managerCredentialsVolume, KeyCPAManagement, KeyCPAMPAdmin),
			tempVolume(cpaTempVolume),
			tempVolume(managerTempVolume),
		)
}

// initContainers run one after the other, in this order.
func initContainers(in Input) []*corev1ac.ContainerApplyConfiguration {
	containers := []*corev1ac.ContainerApplyConfiguration{initializeContainer(in), initializeManagerContainer(in)}
	if *in.Config.StartGate.Enabled {
		containers = slices.Insert(containers, 0, gateContainer(in))
	}
	return containers
}

// initializeContainer runs in CPA's image, which has a shell, so that the Pod needs no third image.
func initializeContainer(in Input) *corev1ac.ContainerApplyConfiguration {
	return script(InitializeName, initializeKey, in.Pool.Spec.CPA).
		WithEnv(env(
			"LOG_LIMIT_MB", strconv.FormatInt(logLimit(in.Pool.Spec.Storage.Size), 10),
			"MIHOMO_URL", ProxyURL(in.Config.Mihomo))...).
		WithVolumeMounts(
			mount(DataVolumeName, "/data"),
			mount(credentialsVolume, secretsPath).WithReadOnly(true))
}

// logLimit, in megabytes, is how much of the volume CPA's logs may fill: the manager's database is on the same volume.
func logLimit(size resource.Quantity) int64 {
	const megabyte, most, least = 1_000_000, 1000, 1
	return min(max(size.Value()/megabyte*logShare/100, least), most)
}

// initializeManagerContainer runs in the manager's image: only the manager itself can change its stored key.
func initializeManagerContainer(in Input) *corev1ac.ContainerApplyConfiguration {
	return script(InitializeManagerName, initializeManagerKey, in.Pool.Spec.CPAManager).
		WithVolumeMounts(
			mount(DataVolumeName, "/data").WithSubPath("cpa-manager"),
			mount(managerCredentialsVolume, secretsPath).WithReadOnly(true),
			mount(managerTempVolume, "/tmp"))
}

// script is an init container that runs one of the scripts in the image of an application.
func script(name, key string, spec v1alpha1.ContainerSpec) *corev1ac.ContainerApplyConfiguration {
	return corev1ac.Container().
		WithName(name).
		WithImage(string(spec.Image)).
		WithImagePullPolicy(pullPolicy(spec.Image)).
		WithCommand("/bin/sh", "/bootstrap/"+key).
		WithResources(resources(spec.Resources)).
		WithSecurityContext(containerSecurity()).
		WithVolumeMounts(mount(initializeVolume, "/bootstrap").WithReadOnly(true))
}

func cpaContainer(in Input) *corev1ac.ContainerApplyConfiguration {
	return application(CPAName, "/healthz", CPAPort, in.Pool.Spec.CPA, in.Config.Runtime.CPA).
		WithWorkingDir("/CLIProxyAPI").
		WithEnv(proxyEnv(in.Config.Mihomo)...).
		WithVolumeMounts(
			mount(DataVolumeName, "/CLIProxyAPI/config.yaml").WithSubPath("cpa/config.yaml"),
			mount(DataVolumeName, "/CLIProxyAPI/auths").WithSubPath("cpa/auths"),
			mount(DataVolumeName, "/CLIProxyAPI/logs").WithSubPath("cpa/logs"),
			mount(DataVolumeName, "/CLIProxyAPI/plugins").WithSubPath("cpa/plugins"),
			mount(DataVolumeName, "/cpa").WithSubPath("cpa"),
			mount(cpaTempVolume, "/tmp"))
}

func managerContainer(in Input) *corev1ac.ContainerApplyConfiguration {
	return application(CPAManagerName, "/health", CPAManagerPort, in.Pool.Spec.CPAManager, in.Config.Runtime.CPAManager).
		WithEnv(managerEnv()...).
		WithVolumeMounts(
			mount(DataVolumeName, "/data").WithSubPath("cpa-manager"),
			mount(managerCredentialsVolume, secretsPath).WithReadOnly(true),
			mount(managerTempVolume, "/tmp"))
}

// ProxyURL is where the pool's applications find the shared Mihomo. The name stays relative to the
// cluster's domain, which the resolver's search list knows.
func ProxyURL(mihomo operatorconfig.Mihomo) string {
	return "http://" + proxyAddress(mihomo)
}

func proxyAddress(mihomo operatorconfig.Mihomo) string {
	return fmt.Sprintf("%s.%s.svc:%d", mihomo.Service, mihomo.Namespace, mihomo.Port)
}

func secretVolume(name string, keys ...string) *corev1ac.VolumeApplyConfiguration {
	source := corev1ac.SecretVolumeSource().WithSecretName(CredentialsName).WithDefaultMode(secretFileMode)
	for _, key := range keys {
		source.WithItems(corev1ac.KeyToPath().WithKey(key).WithPath(key))
	}
	return corev1ac.Volume().WithName(name).WithSecret(source)
}

func tempVolume(name string) *corev1ac.VolumeApplyConfiguration {
	return corev1ac.Volume().WithName(name).
		WithEmptyDir(corev1ac.EmptyDirVolumeSource().WithSizeLimit(resource.MustParse(tempSize)))
}

func mount(volume, path string) *corev1ac.VolumeMountApplyConfiguration {
	return corev1ac.VolumeMount().WithName(volume).WithMountPath(path)
}
