package gateway

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/example-org/subrelay-operator/lab/internal/node/kubectl"
)

func TestLayoutsAreKnownByName(t *testing.T) {
	for _, layout := range Layouts() {
		parsed, err := ParseLayout(string(layout))
		require.NoError(t, err)
		require.Equal(t, layout, parsed)
	}
	_, err := ParseLayout("elsewhere")
	require.EqualError(t, err, `no layout "elsewhere": there are controller-namespace, merged, gateway-namespace`)
}

func TestSettingsFollowTheLayout(t *testing.T) {
	type settings struct {
		Provider struct {
			Kubernetes struct {
				Deploy          struct{ Type string }
				ShutdownManager struct{ Image string }
			}
		}
		EnvoyProxy struct{ MergeGateways bool }
	}
	for layout, want := range map[Layout]struct {
		deploy string
		merge  bool
	}{
		ControllerNamespace: {"ControllerNamespace", false},
		Merged:              {"ControllerNamespace", true},
		GatewayNamespace:    {"GatewayNamespace", false},
	} {
		text, err := Controls{Layout: layout}.settings()
		require.NoError(t, err)
		var read settings
		require.NoError(t, yaml.Unmarshal(text, &read))
		require.Equal(t, want.deploy, read.Provider.Kubernetes.Deploy.Type, layout)
		require.Equal(t, want.merge, read.EnvoyProxy.MergeGateways, layout)
		require.Equal(t, dataPlaneImage, read.Provider.Kubernetes.ShutdownManager.Image)
	}
}

// fakeCluster is a kubectl that notes what it is asked in a file and answers like a cluster where that matters.
func fakeCluster(t *testing.T) (client kubectl.Client, asked func() string) {
	t.Helper()
	folder := t.TempDir()
	program, log := filepath.Join(folder, "kubectl"), filepath.Join(folder, "asked")
	script := `#!/bin/sh
shift 2
echo "$@" >> ` + log + `
case "$1 $2" in
"get secret") echo '{"data":{"ca.crt":"Y2E=","tls.crt":"Y3J0","tls.key":"a2V5"}}' ;;
"create token") printf token ;;
"create --output=name") echo gatewayclass.gateway.networking.k8s.io/probe-1 ;;
"api-resources "*) echo gatewayclasses.gateway.networking.k8s.io ;;
"get gatewayclasses") printf 'gatewayclass/one\ngatewayclass/two\n' ;;
"wait --for=delete") [ -e ` + log + `.woken ] ;;
"get --ignore-not-found") echo customresourcedefinition/stuck ;;
"annotate --overwrite") touch ` + log + `.woken ;;
esac
`
	require.NoError(t, os.WriteFile(program, []byte(script), 0o755))
	asked = func() string {
		text, err := os.ReadFile(log)
		require.NoError(t, err)
		require.NoError(t, os.Remove(log))
		return string(text)
	}
	return kubectl.Client{Program: program}, asked
}

func TestPrepareWritesEverythingTheControllerReads(t *testing.T) {
	cluster, asked := fakeCluster(t)
	controls := Controls{
		Cluster: cluster, Program: "/bin/true", Files: Folder(filepath.Join(t.TempDir(), "gateway")),
		Layout: Merged, Authority: []byte("authority"),
	}
	already, err := controls.Prepare(t.Context())
	require.NoError(t, err)
	require.False(t, already)
	require.Contains(t, asked(), "create token")

	read := func(path string) string {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(content)
	}
	places := controls.Files.Places()
	require.Equal(t, "key", read(filepath.Join(places["/certs"], "tls.key")))
	account := places["/var/run/secrets/kubernetes.io/serviceaccount"]
	require.Equal(t, "token", read(filepath.Join(account, "token")))
	require.Equal(t, "authority", read(filepath.Join(account, "ca.crt")))
	controller := Controller("/program", controls.Files, 1234)
	_, settings, _ := strings.Cut(controller.Args[1], "=")
	require.Contains(t, read(settings), "mergeGateways: true")
	require.Contains(t, controller.Env, "KUBERNETES_SERVICE_PORT=1234")

	already, err = controls.Prepare(t.Context())
	require.NoError(t, err)
	require.True(t, already, "the same layout again")
	require.NotContains(t, asked(), "create token")
	controls.Layout = GatewayNamespace
	already, err = controls.Prepare(t.Context())
	require.NoError(t, err)
	require.False(t, already, "another layout")
}

func TestABrokenCertificateGeneratorIsTold(t *testing.T) {
	cluster, _ := fakeCluster(t)
	controls := Controls{Cluster: cluster, Program: "/bin/false", Files: Folder(t.TempDir())}
	_, err := controls.Prepare(t.Context())
	require.ErrorContains(t, err, "make the certificates of Envoy Gateway")
}

func TestTheProbeIsRemoved(t *testing.T) {
	cluster, asked := fakeCluster(t)
	require.NoError(t, Controls{Cluster: cluster}.AwaitWork(t.Context()))
	require.Equal(t, `create --output=name --filename=-
wait --for=condition=Accepted --timeout=2m0s gatewayclass.gateway.networking.k8s.io/probe-1
delete --ignore-not-found gatewayclass.gateway.networking.k8s.io/probe-1
`, asked())
}

func TestDefinitionsThatAreStuckAreTouched(t *testing.T) {
	cluster, asked := fakeCluster(t)
	require.NoError(t, RemoveDefinitions(t.Context(), cluster, []byte("definitions")))
	require.Contains(t, asked(), "annotate --overwrite customresourcedefinition/stuck subrelay.example.com/lab-woken=")
}

func TestClassesDoNotHoldUpTheRemovalOfTheirDefinition(t *testing.T) {
	cluster, asked := fakeCluster(t)
	require.NoError(t, RemoveDefinitions(t.Context(), cluster, []byte("definitions")))
	said := asked()
	require.Contains(t, said, "patch gatewayclass/one")
	require.Contains(t, said, "patch gatewayclass/two")
	require.Contains(t, said, "delete --ignore-not-found")
}

func TestTheControllerHasAnAddressOnlyWithANode(t *testing.T) {
	with, err := render("objects.yaml", map[string]string{"ControllerAddress": "172.30.0.2"})
	require.NoError(t, err)
	require.Contains(t, string(with), "172.30.0.2")
	without, err := render("objects.yaml", map[string]string{"ControllerAddress": ""})
	require.NoError(t, err)
	require.NotContains(t, string(without), "EndpointSlice")
	_, err = render("objects.yaml", nil)
	require.Error(t, err, "a forgotten value is told")
}
