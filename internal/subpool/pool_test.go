package subpool

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/internal/operatorconfig"
)

// TestROL02SameInputSameObjects: an operator that is restarted, or upgraded without a change of the builders,
// must not find anything to change.
func TestROL02SameInputSameObjects(t *testing.T) {
	first, err := yaml.Marshal(everything(exampleInput(t)))
	require.NoError(t, err)
	for range 20 {
		again, err := yaml.Marshal(everything(exampleInput(t)))
		require.NoError(t, err)
		require.Equal(t, string(first), string(again))
	}
}

// TestCFG02CredentialsAreRandom: every key of every pool differs and has at least 128 bits.
func TestCFG02CredentialsAreRandom(t *testing.T) {
	seen := map[string]bool{}
	for range 50 {
		secret, err := Credentials(examplePool(t), rand.Reader)
		require.NoError(t, err)
		require.Len(t, secret.Data, len(CredentialKeys))
		for _, key := range CredentialKeys {
			value := string(secret.Data[key])
			require.Len(t, value, 2*credentialBytes)
			require.LessOrEqual(t, len(value), 72, "CPA cannot hash a longer management key")
			require.False(t, seen[value], "a key came twice")
			seen[value] = true
		}
	}
	_, err := Credentials(examplePool(t), iotest.ErrReader(errors.New("no entropy")))
	require.ErrorContains(t, err, "no entropy")
}

// TestRES01EveryContainerIsAccountedFor: the quota rejects a Pod of which one container lacks a request or limit.
func TestRES01EveryContainerIsAccountedFor(t *testing.T) {
	spec := Workload(exampleInput(t)).Spec.Template.Spec
	for _, container := range append(spec.InitContainers, spec.Containers...) {
		for _, resource := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			require.Contains(t, *container.Resources.Requests, resource, *container.Name)
			require.Contains(t, *container.Resources.Limits, resource, *container.Name)
		}
	}
}

// TestOperatorVariablesAreReserved: a variable that the operator sets cannot be set a second time by the operator
// configuration, which would make the Pod template invalid.
func TestOperatorVariablesAreReserved(t *testing.T) {
	in := exampleInput(t)
	derived := append(proxyEnv(in.Config.Mihomo), managerEnv()...)
	require.NotEmpty(t, derived)
	for _, variable := range derived {
		document := `{apiVersion: config.subrelay.example.com/v1alpha1, kind: OperatorConfiguration,
			runtime: {cpa: {env: {` + *variable.Name + `: x}}}}`
		_, err := operatorconfig.Parse([]byte(document))
		require.ErrorContains(t, err, *variable.Name+" is set by the operator")
	}
}

func TestPullPolicy(t *testing.T) {
	for image, want := range map[v1alpha1.ImageReference]corev1.PullPolicy{
		"registry.example.invalid/cpa:latest":                                          corev1.PullAlways,
		"registry.example.invalid/cpa:v1":                                              corev1.PullIfNotPresent,
		"registry.example.invalid:5000/latest:v1":                                      corev1.PullIfNotPresent,
		"registry.example.invalid/cpa@sha256:" + v1alpha1.ImageReference(hex64):        corev1.PullIfNotPresent,
		"registry.example.invalid/cpa:latest@sha256:" + v1alpha1.ImageReference(hex64): corev1.PullIfNotPresent,
	} {
		require.Equal(t, want, pullPolicy(image), image)
	}
}

var hex64 = strings.Repeat("0123456789abcdef", 4)

func TestPoolID(t *testing.T) {
	id, ok := PoolID(NamespaceName("demo"))
	require.True(t, ok)
	require.Equal(t, "demo", id)
	_, ok = PoolID("kube-system")
	require.False(t, ok)
}

// TestNET02ProxyPortIsThePodsPort: policies see the Pod's port, so the Service's port must be translated.
func TestNET02ProxyPortIsThePodsPort(t *testing.T) {
	service := func(port corev1.ServicePort) *corev1.Service {
		return &corev1.Service{Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "mihomo"}, Ports: []corev1.ServicePort{port},
		}}
	}
	for name, c := range map[string]struct {
		service *corev1.Service
		named   map[string]int32
		want    int32
		ok      bool
	}{
		"number":               {service(corev1.ServicePort{Port: 80, TargetPort: intstr.FromInt32(7890)}), nil, 7890, true},
		"same":                 {service(corev1.ServicePort{Port: 80}), nil, 80, true},
		"name, known":          {service(corev1.ServicePort{Name: "proxy", Port: 80, TargetPort: intstr.FromString("http")}), map[string]int32{"proxy": 7891}, 7891, true},
		"name, no endpoint":    {service(corev1.ServicePort{Name: "proxy", Port: 80, TargetPort: intstr.FromString("http")}), nil, 0, false},
		"no such port":         {service(corev1.ServicePort{Port: 81}), nil, 0, false},
		"no selector to allow": {&corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}, nil, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			proxy, ok := ProxyOf(c.service, 80, c.named)
			require.Equal(t, c.ok, ok)
			if ok {
				require.Equal(t, c.want, proxy.Port)
			}
		})
	}
}

// TestNET04EndpointReadiness: readiness that is not stated counts as ready, a terminating endpoint never does.
func TestNET04EndpointReadiness(t *testing.T) {
	slice := func(port *int32, endpoints ...discoveryv1.Endpoint) discoveryv1.EndpointSlice {
		return discoveryv1.EndpointSlice{
			Ports: []discoveryv1.EndpointPort{{Name: ptr.To("proxy"), Port: port}}, Endpoints: endpoints,
		}
	}
	endpoint := func(ready, terminating *bool) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{
			Addresses:  []string{"10.0.0.1"},
			Conditions: discoveryv1.EndpointConditions{Ready: ready, Terminating: terminating},
		}
	}
	port, yes, no := ptr.To[int32](7890), ptr.To(true), ptr.To(false)
	for name, c := range map[string]struct {
		slices []discoveryv1.EndpointSlice
		want   bool
	}{
		"no slice":              {nil, false},
		"empty slice":           {[]discoveryv1.EndpointSlice{slice(port)}, false},
		"ready":                 {[]discoveryv1.EndpointSlice{slice(port, endpoint(yes, nil))}, true},
		"unset":                 {[]discoveryv1.EndpointSlice{slice(port, endpoint(nil, nil))}, true},
		"not ready":             {[]discoveryv1.EndpointSlice{slice(port, endpoint(no, nil))}, false},
		"terminating":           {[]discoveryv1.EndpointSlice{slice(port, endpoint(nil, yes))}, false},
		"terminating and ready": {[]discoveryv1.EndpointSlice{slice(port, endpoint(yes, yes))}, false},
		"one of two":            {[]discoveryv1.EndpointSlice{slice(port, endpoint(no, nil)), slice(port, endpoint(yes, no))}, true},
		"other port":            {[]discoveryv1.EndpointSlice{slice(ptr.To[int32](9090), endpoint(yes, nil))}, false},
		"no port":               {[]discoveryv1.EndpointSlice{slice(nil, endpoint(yes, nil))}, false},
		"no address":            {[]discoveryv1.EndpointSlice{slice(port, discoveryv1.Endpoint{})}, false},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, ReadEndpoints(c.slices).ReadyOn[7890])
		})
	}
}

// TestRES06LowersQuota: a smaller quota has to come after the workload that fits it.
func TestRES06LowersQuota(t *testing.T) {
	in := exampleInput(t)
	inForce := &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: hardLimits(in.Config.MaxPerPool)}}
	require.False(t, LowersQuota(inForce, in.Config.MaxPerPool), "the same")
	envelope := in.Config.MaxPerPool
	envelope.Limits.CPU = resource.MustParse("9")
	require.False(t, LowersQuota(inForce, envelope), "more of something")
	envelope.Storage = resource.MustParse("99Gi")
	require.True(t, LowersQuota(inForce, envelope), "less of something")
	delete(inForce.Spec.Hard, corev1.ResourceLimitsCPU)
	require.True(t, LowersQuota(inForce, in.Config.MaxPerPool), "a limit more")
}

// TestCFG12GoMemoryLimit: the Go runtime is told a limit below the container's, which follows a change of the latter.
func TestCFG12GoMemoryLimit(t *testing.T) {
	require.Equal(t, "3865470480", goMemoryLimit(resource.MustParse("4Gi")))
	require.Equal(t, "483183810", goMemoryLimit(resource.MustParse("512Mi")))
}

// TestROL06StartupBudget: the manager may take ten minutes to migrate its database, and liveness is looser than readiness.
func TestROL06StartupBudget(t *testing.T) {
	spec := Workload(exampleInput(t)).Spec.Template.Spec
	for _, container := range spec.Containers {
		budget := *container.StartupProbe.PeriodSeconds * *container.StartupProbe.FailureThreshold
		if *container.Name == CPAManagerName {
			require.GreaterOrEqual(t, budget, int32(600))
		}
		require.GreaterOrEqual(t, budget, int32(180), *container.Name)
		require.Greater(t, *container.LivenessProbe.PeriodSeconds, *container.ReadinessProbe.PeriodSeconds, *container.Name)
	}
}

// TestSTO05LogLimit: logs never fill the volume, whatever its size.
func TestSTO05LogLimit(t *testing.T) {
	for size, want := range map[string]int64{"20Gi": 1000, "1Gi": 53, "100Mi": 5, "1Mi": 1, "500M": 25, "1Ti": 1000} {
		require.Equal(t, want, logLimit(resource.MustParse(size)), size)
	}
}
