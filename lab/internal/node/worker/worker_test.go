package worker

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/example-org/subrelay-operator/lab/internal/image"
)

func prepared(t *testing.T) Config {
	t.Helper()
	config := Config{
		Folder:      t.TempDir(),
		Credentials: func(name string) string { return "/credentials/" + name },
		Binary:      func(name string) string { return "/programs/" + name + "-v1/" + name },
		CgroupRoot:  "/subrelay-lab-test",
		Snapshotter: "native",
	}
	require.NoError(t, config.Prepare())
	return config
}

func read(t *testing.T, config Config, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(config.Folder, name))
	require.NoError(t, err)
	return string(data)
}

func TestKubeletSettings(t *testing.T) {
	var settings map[string]any
	require.NoError(t, yaml.UnmarshalStrict([]byte(read(t, prepared(t), "kubelet.yaml")), &settings))
	require.Equal(t, "/subrelay-lab-test", settings["cgroupRoot"])
	require.Equal(t, []any{DNSService}, settings["clusterDNS"])
	require.Equal(t, "unix://"+ContainerdSocket, settings["containerRuntimeEndpoint"])
	require.Equal(t, "NeverVerify", settings["imagePullCredentialsVerificationPolicy"])
	require.Equal(t, "/credentials/kubelet.key", settings["tlsPrivateKeyFile"])
}

func TestNetworkSettings(t *testing.T) {
	config := prepared(t)
	var network struct {
		Plugins []struct {
			Type string
			IPAM struct{ Ranges [][]struct{ Subnet string } }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(read(t, config, "cni/lab.conflist")), &network))
	require.Equal(t, "bridge", network.Plugins[0].Type)
	require.Equal(t, podSubnet, network.Plugins[0].IPAM.Ranges[0][0].Subnet)

	containerd := read(t, config, "containerd.toml")
	require.Contains(t, containerd, `conf_dir = "`+config.Folder+`/cni"`)
	require.Contains(t, containerd, `bin_dirs = ["/programs/bridge-v1"]`)
	require.Contains(t, containerd, `BinaryName = "/programs/runc-v1/runc"`)
	require.Contains(t, containerd, `snapshotter = "native"`)
	require.Contains(t, containerd, `sandbox = "`+image.Pause+`"`)
}

func TestVolumesAreMadeByALabImage(t *testing.T) {
	config := prepared(t)
	var pod struct {
		Spec struct{ Containers []struct{ Image string } }
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, config, "storage-pod.yaml")), &pod))
	require.Equal(t, image.Busybox, pod.Spec.Containers[0].Image)
	require.True(t, json.Valid([]byte(read(t, config, "storage.json"))))
}

func TestEveryProgramHasItsOwnAccess(t *testing.T) {
	config := prepared(t)
	for file := range Users().Others {
		found := false
		for _, arguments := range [][]string{config.Proxy().Args, config.PolicyAgent().Args, config.Provisioner().Args} {
			found = found || strings.Contains(strings.Join(arguments, " "), "--kubeconfig=/credentials/"+file+".kubeconfig")
		}
		require.True(t, found, file)
	}
	require.Contains(t, config.Kubelet().Args, "--kubeconfig=/credentials/kubelet.kubeconfig")
	require.Contains(t, config.Containerd().Env[0], "PATH=/programs/runc-v1:")
}

func TestSettingsWithoutAValueAreRefused(t *testing.T) {
	_, err := render("kubelet.yaml", map[string]string{})
	require.ErrorContains(t, err, "no entry for key")
}
