package subpool

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/internal/operatorconfig"
)

// updateGolden rewrites the golden files: UPDATE_GOLDEN=1 go test ./internal/subpool
var updateGolden = os.Getenv("UPDATE_GOLDEN") != ""

// examplePool is the shipped example as the API server would hand it out.
func examplePool(t testing.TB) *v1alpha1.SubPool {
	t.Helper()
	document, err := os.ReadFile("../../examples/subpool-internal.yaml")
	require.NoError(t, err)
	pool := &v1alpha1.SubPool{}
	require.NoError(t, yaml.UnmarshalStrict(document, pool))
	pool.UID = "0d9c7b1e-0000-4000-8000-000000000001"
	return pool
}

// shippedConfig is the operator configuration that config/default installs.
func shippedConfig(t testing.TB) *operatorconfig.Config {
	t.Helper()
	document, err := os.ReadFile("../../config/default/operator-config.yaml")
	require.NoError(t, err)
	configMap := &corev1.ConfigMap{}
	require.NoError(t, yaml.UnmarshalStrict(document, configMap))
	config, err := operatorconfig.Parse([]byte(configMap.Data[operatorconfig.Key]))
	require.NoError(t, err)
	return config
}

func exampleInput(t testing.TB) Input {
	return Input{
		Pool:        examplePool(t),
		Config:      shippedConfig(t),
		Operator:    Identity{Namespace: "subpool-system", Name: "subpool-operator"},
		Credentials: "0d9c7b1e-0000-4000-8000-000000000002",
		Proxy:       &Proxy{PodLabels: map[string]string{"app.kubernetes.io/name": "mihomo-gateway"}, Port: 7890},
	}
}

// A golden file shows a reviewer what a change of the builders does to the cluster. The first case has every
// object, the others those that the case is about.
func TestGolden(t *testing.T) {
	workload := func(in Input) []any { return []any{Workload(in)} }
	policies := func(in Input) []any {
		var found []any
		for _, object := range Desired(in).Walls {
			if kind := kindOf(object); kind == "NetworkPolicy" {
				found = append(found, object)
			}
		}
		return found
	}
	for name, c := range map[string]struct {
		change func(*Input)
		show   func(Input) []any
	}{
		"internal":  {func(*Input) {}, everything},
		"suspended": {func(in *Input) { in.Pool.Spec.Suspend = true }, workload},
		"gateway": {
			func(in *Input) { in.Pool.Spec.Exposure.Mode = v1alpha1.ExposureGateway },
			func(in Input) []any { return append(policies(in), Route(in, false)) },
		},
		"gateway-layouts": {withAllLayouts, func(in Input) []any {
			return slices.DeleteFunc(policies(in), func(policy any) bool {
				return *policy.(interface{ GetName() *string }).GetName() != AllowGatewayName
			})
		}},
		"gate":         {withTunedGate, workload},
		"gate-off":     {func(in *Input) { in.Config.StartGate.Enabled = ptr.To(false) }, workload},
		"no-proxy":     {func(in *Input) { in.Proxy = nil }, policies},
		"dns-resolver": {withNodeLocalDNS, policies},
		"tuned":        {withTunedRuntime, workload},
	} {
		t.Run(name, func(t *testing.T) {
			in := exampleInput(t)
			c.change(&in)
			var documents []string
			for _, object := range c.show(in) {
				document, err := yaml.Marshal(object)
				require.NoError(t, err)
				documents = append(documents, string(document))
			}
			compareGolden(t, name+".yaml", strings.Join(documents, "---\n"))
		})
	}
}

func TestGoldenCredentials(t *testing.T) {
	secret, err := Credentials(examplePool(t), bytes.NewReader(bytes.Repeat([]byte{0xab}, 3*credentialBytes)))
	require.NoError(t, err)
	secret.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
	document, err := yaml.Marshal(secret)
	require.NoError(t, err)
	compareGolden(t, "credentials.yaml", string(document))
}

func everything(in Input) []any {
	s := Desired(in)
	all := []any{s.Namespace}
	for _, object := range slices.Concat(s.Walls, []runtime.ApplyConfiguration{s.Quota}, s.Furniture) {
		all = append(all, object)
	}
	return append(all, Workload(in))
}

func kindOf(object runtime.ApplyConfiguration) string {
	return *object.(interface{ GetKind() *string }).GetKind()
}

func withNodeLocalDNS(in *Input) {
	in.Config.DNS = append(in.Config.DNS,
		operatorconfig.DNSPeer{CIDR: "169.254.20.10/32", Port: 53}, operatorconfig.DNSPeer{CIDR: "fd00::10/128", Port: 5353})
}

// withAllLayouts selects the data plane's Pods in each of the ways in which Envoy Gateway lays them out; docs/exposure.md
// has the table.
func withAllLayouts(in *Input) {
	in.Pool.Spec.Exposure.Mode = v1alpha1.ExposureGateway
	perGateway := in.Config.Gateway.DataPlane[0]
	merged := operatorconfig.PodPeer{Namespace: perGateway.Namespace, PodLabels: map[string]string{
		"app.kubernetes.io/component":               "proxy",
		"gateway.envoyproxy.io/owning-gatewayclass": "subpool-envoy",
	}}
	besideGateway := operatorconfig.PodPeer{Namespace: in.Config.Gateway.Namespace, PodLabels: perGateway.PodLabels}
	in.Config.Gateway.DataPlane = []operatorconfig.PodPeer{perGateway, merged, besideGateway}
}

func withTunedGate(in *Input) {
	in.Config.StartGate.Forbidden = []string{"10.0.0.1:443", "[fd00::1]:443"}
	in.Config.StartGate.BudgetSeconds = 300
}

// withTunedRuntime: images by digest and by moving tag, and every setting of the operator configuration that
// changes how the applications start.
func withTunedRuntime(in *Input) {
	none := int64(0)
	in.Pool.Spec.CPA.Image = "registry.example.invalid:5000/subrelay/cpa:latest"
	in.Pool.Spec.CPAManager.Image = "registry.example.invalid/subrelay/cpa-manager@sha256:" +
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	in.Config.Storage.ClassName = "fast"
	in.Config.Runtime.CPA = operatorconfig.Application{
		Command: []string{"/bin/cpa"}, Args: []string{"-config", "/cpa/config.yaml"},
		Env: map[string]string{"GOMEMLIMIT": "3GiB"}, PreStopSleepSeconds: &none,
		Probes: operatorconfig.Probes{
			StartupSeconds: 901, ReadinessPeriodSeconds: 5, LivenessPeriodSeconds: 60, TimeoutSeconds: 3, FailureThreshold: 2,
		},
	}
}

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if updateGolden {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run UPDATE_GOLDEN=1 go test ./internal/subpool")
	require.Equal(t, string(want), got, "run UPDATE_GOLDEN=1 go test ./internal/subpool, then read the difference")
}
