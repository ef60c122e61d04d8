package subpool

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/internal/operatorconfig"
)

// startupPeriod, in seconds, is how often an application is asked whether it has started.
const startupPeriod = 2

// memoryLimitShare, in percent, is how much of a container's memory limit its Go runtime may fill before it collects
// garbage harder. The rest is for what that runtime does not count.
const memoryLimitShare = 90

// application is what both containers have in common.
func application(
	name, healthPath string, port int32, spec v1alpha1.ContainerSpec, start operatorconfig.Application,
) *corev1ac.ContainerApplyConfiguration {
	container := corev1ac.Container().
		WithName(name).
		WithImage(string(spec.Image)).
		WithImagePullPolicy(pullPolicy(spec.Image)).
		WithCommand(start.Command...).
		WithArgs(start.Args...).
		WithPorts(corev1ac.ContainerPort().WithName(name).WithContainerPort(port).WithProtocol(corev1.ProtocolTCP)).
		WithResources(resources(spec.Resources)).
		WithSecurityContext(containerSecurity())
	setProbes(container, healthPath, start.Probes)
	variables := map[string]string{"GOMEMLIMIT": goMemoryLimit(spec.Resources.Limits.Memory)}
	maps.Copy(variables, start.Env)
	for _, variable := range slices.Sorted(maps.Keys(variables)) {
		container.WithEnv(corev1ac.EnvVar().WithName(variable).WithValue(variables[variable]))
	}
	if sleep := *start.PreStopSleepSeconds; sleep > 0 {
		container.WithLifecycle(corev1ac.Lifecycle().WithPreStop(corev1ac.LifecycleHandler().
			WithSleep(corev1ac.SleepAction().WithSeconds(sleep))))
	}
	return container
}

// goMemoryLimit keeps a Go program below its container's limit: without it the heap may grow to twice of what is in use,
// and the kernel ends the process although it could have collected garbage.
func goMemoryLimit(limit resource.Quantity) string {
	return strconv.FormatInt(limit.Value()/100*memoryLimitShare, 10)
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

// setProbes asks only for an application's public health path, never for one that wants a key: a missing key counts as a
// failed attempt there, and five of those lock the administrator out.
func setProbes(container *corev1ac.ContainerApplyConfiguration, path string, probes operatorconfig.Probes) {
	probe := func(period, failures int32) *corev1ac.ProbeApplyConfiguration {
		return corev1ac.Probe().
			WithHTTPGet(corev1ac.HTTPGetAction().
				WithPath(path).WithPort(intstr.FromString(*container.Name)).WithScheme(corev1.URISchemeHTTP)).
			WithPeriodSeconds(period).
			WithTimeoutSeconds(probes.TimeoutSeconds).
			WithFailureThreshold(failures)
	}
	container.
		WithStartupProbe(probe(startupPeriod, (probes.StartupSeconds+startupPeriod-1)/startupPeriod)).
		WithReadinessProbe(probe(probes.ReadinessPeriodSeconds, probes.FailureThreshold)).
		WithLivenessProbe(probe(probes.LivenessPeriodSeconds, probes.FailureThreshold))
}
