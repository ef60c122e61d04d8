package operatorconfig

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// shipped is the document that config/default installs.
func shipped(t *testing.T) string {
	t.Helper()
	manifest, err := os.ReadFile("../../config/default/operator-config.yaml")
	require.NoError(t, err)
	configMap := &corev1.ConfigMap{}
	require.NoError(t, yaml.UnmarshalStrict(manifest, configMap))
	return configMap.Data[Key]
}

func TestShippedConfigurationIsValid(t *testing.T) {
	config, err := Parse([]byte(shipped(t)))
	require.NoError(t, err)
	require.EqualValues(t, 53, config.DNS[0].Port, "the resolver's port has a default")
	require.Equal(t, []string{"-config", "/cpa/config.yaml", "-local-model"}, config.Runtime.CPA.Args)
	require.EqualValues(t, 10, *config.Runtime.CPA.PreStopSleepSeconds)
	require.EqualValues(t, 0, *config.Runtime.CPAManager.PreStopSleepSeconds)
	require.True(t, *config.StartGate.Enabled)
	require.EqualValues(t, 60, config.StartGate.BudgetSeconds)
	require.Contains(t, config.Gateway.Paths, "/v1")
	require.Equal(t, "http", config.Runtime.CPAManager.Env["USAGE_COLLECTOR_MODE"])
}

// Every rule refuses with the name of the field.
func TestParseRefuses(t *testing.T) {
	_, rest, _ := strings.Cut(shipped(t), "  dataPlane:")
	selectors, _, _ := strings.Cut(rest, "# The shared forward proxy.")
	dataPlane := "  dataPlane:" + selectors
	for name, c := range map[string]struct{ old, new, want string }{
		"not YAML":      {"kind:", "kind: [", "cannot read config.yaml"},
		"unknown field": {"baseDomain:", "baseDomian:", `unknown field "baseDomian"`},
		"other kind":    {"kind: OperatorConfiguration", "kind: Other", "apiVersion, kind: must be"},
		"no domain":     {"baseDomain: subrelay.example.com", "baseDomain: ''", "baseDomain: "},
		"domain too long": {
			"baseDomain: subrelay.example.com", "baseDomain: " + strings.Repeat("abcdefghi.", 20) + "com",
			"baseDomain: must have at most 197 characters, has 203",
		},
		"no gate image":          {"image: registry", "#image: registry", "startGate.image: name the operator's image"},
		"gate image has no tag":  {"operator:v0.1.0", "operator", "startGate.image: "},
		"bad domain":             {"baseDomain: subrelay.example.com", "baseDomain: a_b", "baseDomain: "},
		"gateway name":           {"name: subpool-edge", "name: Edge", "gateway.name: "},
		"gateway section":        {"sectionName: http", "sectionName: ''", "gateway.sectionName: "},
		"mihomo service":         {"service: mihomo-gateway", "service: ''", "mihomo.service: "},
		"mihomo port":            {"port: 7890", "port: 70000", "mihomo.port: must be a port"},
		"resolver without Pods":  {"      k8s-app: kube-dns", "      {}", "dns[0].podLabels: must not be empty"},
		"resolver label":         {"k8s-app: kube-dns", "k8s-app: 'a b'", "dns[0].podLabels: "},
		"no CPU":                 {`    cpu: "4"`, `    cpu: "0"`, "maxPerPool.requests.cpu: must be greater than 0"},
		"requests over limits":   {`    cpu: "4"`, `    cpu: "9"`, "maxPerPool.requests.cpu: must not exceed"},
		"memory over limits":     {"    memory: 8Gi", "    memory: 17Gi", "maxPerPool.requests.memory: must not exceed"},
		"no storage":             {"  storage: 100Gi", "  storage: '0'", "maxPerPool.storage: must be greater than 0"},
		"negative storage":       {"  storage: 100Gi", "  storage: -1Gi", "maxPerPool.storage: must be greater than 0"},
		"storage class":          {`className: ""`, `className: "A b"`, "storage.className: "},
		"quantity":               {"  storage: 100Gi", "  storage: many", "quantities must match"},
		"no data plane":          {dataPlane, "  dataPlane: []\n", "gateway.dataPlane: at least one selector"},
		"data plane selects all": {dataPlane, "  dataPlane: [{namespace: a, podLabels: {}}]\n", "gateway.dataPlane[0].podLabels: must not be empty"},
	} {
		t.Run(name, func(t *testing.T) {
			document := shipped(t)
			require.Contains(t, document, c.old)
			_, err := Parse([]byte(strings.Replace(document, c.old, c.new, 1)))
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestParseRefusesAdditions(t *testing.T) {
	for name, c := range map[string]struct{ addition, want string }{
		"reserved variable": {"runtime: {cpa: {env: {http_proxy: x}}}", "http_proxy is set by the operator"},
		"credential":        {"runtime: {cpaManager: {env: {CPA_MANAGEMENT_KEY: x}}}", "CPA_MANAGEMENT_KEY is set by the operator"},
		"variable name":     {"runtime: {cpa: {env: {'1=2': x}}}", `runtime.cpa.env: "1=2"`},
		"sleep too long":    {"runtime: {cpa: {preStopSleepSeconds: 25}}", "runtime.cpa.preStopSleepSeconds: must be between 0 and 20"},
		"budget":            {"runtime: {maxUnavailable: 2}", "runtime.maxUnavailable: must be 1"},
		"restarts":          {"runtime: {maxRestarting: -1}", "runtime.maxRestarting: must not be negative"},
		"negative period":   {"runtime: {cpa: {probes: {livenessPeriodSeconds: -1}}}", "runtime.cpa.probes.livenessPeriodSeconds: must be between 1 and 3600"},
		"endless start":     {"runtime: {cpa: {probes: {startupSeconds: 3601}}}", "runtime.cpa.probes.startupSeconds: must be between 1 and 3600"},
		"sleep negative":    {"runtime: {cpaManager: {preStopSleepSeconds: -1}}", "runtime.cpaManager.preStopSleepSeconds: must be"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(shipped(t) + c.addition + "\n"))
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestParseRefusesGateSettings(t *testing.T) {
	for setting, want := range map[string]string{
		"forbidden: [10.96.0.1]":           `startGate.forbidden[0]: "10.96.0.1" is not an address`,
		"forbidden: ['10.96.0.1:https']":   `startGate.forbidden[0]: "10.96.0.1:https" has no port number`,
		"forbidden: ['10.96.0.1:0']":       "startGate.forbidden[0]: must be a port",
		"forbidden: ['a:1,b:2']":           `startGate.forbidden[0]: "a:1,b:2" is not an address`,
		"budgetSeconds: -1":                "startGate.budgetSeconds: must be between 1 and 3600",
		"forbidden: ['[2001:db8::1]:443']": "",
		"enabled: false":                   "",
	} {
		t.Run(setting, func(t *testing.T) {
			_, err := Parse([]byte(strings.Replace(shipped(t), "startGate:\n", "startGate:\n  "+setting+"\n", 1)))
			if want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, want)
		})
	}
}

// A switched-off gate needs no image.
func TestGateOff(t *testing.T) {
	document := strings.Replace(shipped(t), "image: registry.example.invalid/example-org/subrelay-operator:v0.1.0", "enabled: false", 1)
	config, err := Parse([]byte(document))
	require.NoError(t, err)
	require.False(t, *config.StartGate.Enabled)
}

// TestPublishedPaths: whatever an administrator adds, management stays unpublished.
func TestPublishedPaths(t *testing.T) {
	for paths, want := range map[string]string{
		"[/v1, /v2]":               "",
		"[/v0/models]":             "",
		"[/v0/managements]":        "",
		"[]":                       "gateway.paths: must have between 1 and 64",
		"[v1]":                     `gateway.paths[0]: "v1" is not a plain absolute path`,
		"[/v1, /v1/]":              `gateway.paths[1]: "/v1/" is not a plain`,
		"['/v1/../v0']":            "is not a plain absolute path",
		"['/v0%2Fmanagement']":     "is not a plain absolute path",
		"['/v1?x=1']":              "is not a plain absolute path",
		"[/]":                      `"/" would publish /v0/management`,
		"[/v0]":                    `"/v0" would publish /v0/management`,
		"[/v0/management/usage]":   "would publish /v0/management",
		"[/v1, /management.html]":  "would publish /management.html",
		"[/v1, /management.htmls]": "",
	} {
		t.Run(paths, func(t *testing.T) {
			_, err := Parse([]byte(strings.Replace(shipped(t), "sectionName: http\n", "sectionName: http\n  paths: "+paths+"\n", 1)))
			if want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, want)
		})
	}
}

// TestNET03ResolverBlocks: resolvers can be given as address blocks of both families.
func TestNET03ResolverBlocks(t *testing.T) {
	for peer, want := range map[string]string{
		"{cidr: 169.254.20.10/32}":                                 "",
		"{cidr: 'fd00::10/128', port: 5353}":                       "",
		"{cidr: 169.254.20.10/24}":                                 "dns[0].cidr: \"169.254.20.10/24\" has address bits beyond its prefix length, write 169.254.20.0/24",
		"{cidr: 169.254.20.10}":                                    "dns[0].cidr: \"169.254.20.10\" is not an address block",
		"{cidr: 10.0.0.1/32, namespace: kube-system}":              "dns[0].cidr: give either cidr, or namespace and podLabels",
		"{cidr: 10.0.0.1/32, port: -1}":                            "dns[0].port: must be a port",
		"{namespace: kube-system, podLabels: {k8s-app: kube-dns}}": "",
	} {
		t.Run(peer, func(t *testing.T) {
			config := &Config{}
			require.NoError(t, yaml.UnmarshalStrict([]byte(shipped(t)), config))
			config.DNS = nil
			require.NoError(t, yaml.UnmarshalStrict([]byte("dns: ["+peer+"]"), config))
			document, err := yaml.Marshal(config)
			require.NoError(t, err)
			_, err = Parse(document)
			if want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, want)
			}
		})
	}
	_, err := Parse([]byte(strings.Replace(shipped(t), "dns:\n  - namespace: kube-system\n    podLabels:\n      k8s-app: kube-dns\n", "dns: []\n", 1)))
	require.ErrorContains(t, err, "dns: at least one resolver is needed")
}

// An environment given by the administrator is laid over the default one; command and arguments replace theirs.
func TestRuntimeOverrides(t *testing.T) {
	config, err := Parse([]byte(shipped(t) +
		"runtime: {cpa: {args: [-x], env: {TZ: Europe/Berlin, GOMEMLIMIT: 1GiB}}}\n"))
	require.NoError(t, err)
	require.Equal(t, []string{"./CLIProxyAPI"}, config.Runtime.CPA.Command)
	require.Equal(t, []string{"-x"}, config.Runtime.CPA.Args)
	require.Equal(t, map[string]string{"TZ": "Europe/Berlin", "GOMEMLIMIT": "1GiB"}, config.Runtime.CPA.Env)
}

func TestHashTellsContentsApart(t *testing.T) {
	require.NotEqual(t, Hash([]byte("a")), Hash([]byte("b")))
	require.Len(t, Hash(nil), hashLength)
}
