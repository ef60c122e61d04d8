package subpool

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/internal/operatorconfig"
)

// Probes ask only for the applications' public health paths, never for one that wants a key: a missing
// key counts as a failed attempt there, and five of those lock the administrator out.
const (
	// cpaStartupBudget covers a slow node; CPA itself listens within seconds.
	cpaStartupBudget = 5 * time.Minute
	// managerStartupBudget covers the migration of a large database, which happens before the manager listens.
	managerStartupBudget = 10 * time.Minute

	startupPeriod   = 2 * time.Second
	readinessPeriod = 10 * time.Second
	livenessPeriod  = 20 * time.Second
	probeTimeout    = 5 * time.Second
	probeFailures   = 3
)

// application is what both containers have in common.
func application(name string, image v1alpha1.ImageReference, start operatorconfig.Application) *corev1ac.ContainerApplyConfiguration {
	container := corev1ac.Container().
		WithName(name).
		WithImage(string(image)).
		WithImagePullPolicy(pullPolicy(image)).
		WithCommand(start.Command...).
		WithArgs(start.Args...).
		WithSecurityContext(containerSecurity())
	for _, variable := range slices.Sorted(maps.Keys(start.Env)) {
		container.WithEnv(corev1ac.EnvVar().WithName(variable).WithValue(start.Env[variable]))
	}
	if sleep := *start.PreStopSleepSeconds; sleep > 0 {
		container.WithLifecycle(corev1ac.Lifecycle().WithPreStop(corev1ac.LifecycleHandler().
			WithSleep(corev1ac.SleepAction().WithSeconds(sleep))))
	}
	return container
}

func containerSecurity() *corev1ac.SecurityContextApplyConfiguration {
	return corev1ac.SecurityContext().
		WithAllowPrivilegeEscalation(false).
		WithReadOnlyRootFilesystem(true).
		WithRunAsNonRoot(true).
		WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))
}

func resources(r v1alpha1.ContainerResources) *corev1ac.ResourceRequirementsApplyConfiguration {
	return corev1ac.ResourceRequirements().
		WithRequests(resourceList(r.Requests)).
		WithLimits(resourceList(r.Limits))
}

func resourceList(c v1alpha1.ComputeResources) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: c.CPU, corev1.ResourceMemory: c.Memory}
}

// proxyEnv covers the calls of CPA that ignore its own proxy-url setting. Both spellings are set, since
// programs differ in which they read; loopback is excepted for both address families. Policies enforce
// what these variables only ask for.
func proxyEnv(mihomo operatorconfig.Mihomo) []*corev1ac.EnvVarApplyConfiguration {
	url, loopback := ProxyURL(mihomo), "127.0.0.1,localhost,::1"
	return env(
		"HTTP_PROXY", url, "http_proxy", url,
		"HTTPS_PROXY", url, "https_proxy", url,
		"NO_PROXY", loopback, "no_proxy", loopback)
}

// managerEnv makes the manager's first start complete, without a browser. Credentials come as files.
func managerEnv() []*corev1ac.EnvVarApplyConfiguration {
	return env(
		"HTTP_ADDR", "0.0.0.0:18317",
		"USAGE_DATA_DIR", "/data",
		"USAGE_DB_PATH", "/data/usage.sqlite",
		"CPA_MANAGER_DATA_KEY_PATH", "/data/data.key",
		"CPA_UPSTREAM_URL", "http://127.0.0.1:8317",
		"CPA_MANAGEMENT_KEY_FILE", secretsPath+"/"+KeyCPAManagement,
		"CPA_MANAGER_ADMIN_KEY_FILE", secretsPath+"/"+KeyCPAMPAdmin)
}

// env takes names and values in turn.
func env(pairs ...string) []*corev1ac.EnvVarApplyConfiguration {
	variables := make([]*corev1ac.EnvVarApplyConfiguration, 0, len(pairs)/2)
	for pair := range slices.Chunk(pairs, 2) {
		variables = append(variables, corev1ac.EnvVar().WithName(pair[0]).WithValue(pair[1]))
	}
	return variables
}

func probe(port, path string, period time.Duration, failures int32) *corev1ac.ProbeApplyConfiguration {
	return corev1ac.Probe().
		WithHTTPGet(corev1ac.HTTPGetAction().
			WithPath(path).WithPort(intstr.FromString(port)).WithScheme(corev1.URISchemeHTTP)).
		WithPeriodSeconds(int32(period.Seconds())).
		WithTimeoutSeconds(int32(probeTimeout.Seconds())).
		WithFailureThreshold(failures)
}

func startup(port, path string, failures int32) *corev1ac.ProbeApplyConfiguration {
	return probe(port, path, startupPeriod, failures)
}

func readiness(port, path string) *corev1ac.ProbeApplyConfiguration {
	return probe(port, path, readinessPeriod, probeFailures)
}

// liveness is looser than readiness: a Pod is taken out of service long before it is restarted.
func liveness(port, path string) *corev1ac.ProbeApplyConfiguration {
	return probe(port, path, livenessPeriod, probeFailures)
}
