package controlplane

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

func config(t *testing.T, nodes bool) Config {
	t.Helper()
	folder := t.TempDir()
	return Config{
		Folder: filepath.Join(folder, "control-plane"), Data: "/data", AuditLog: "/audit.log",
		Binary:      func(name string) string { return "/programs/" + name },
		BindAddress: "0.0.0.0", AdvertiseAddress: "172.30.0.2", Port: 6443, EtcdPort: 2379,
		HostKubeconfig: filepath.Join(folder, "kubeconfig"), HostPort: 12345, Nodes: nodes,
	}
}

func leaf(t *testing.T, c Config, name string) *x509.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(c.File(name+".crt"), c.File(name+".key"))
	require.NoError(t, err)
	return pair.Leaf
}

func server(t *testing.T, kubeconfig string) string {
	t.Helper()
	data, err := os.ReadFile(kubeconfig)
	require.NoError(t, err)
	var read struct {
		Clusters []struct{ Cluster struct{ Server string } }
	}
	require.NoError(t, yaml.Unmarshal(data, &read))
	return read.Clusters[0].Cluster.Server
}

func TestPrepareWritesEveryFileThatIsNamed(t *testing.T) {
	for _, nodes := range []bool{true, false} {
		c := config(t, nodes)
		require.NoError(t, c.Prepare(nil))
		specs := [][]string{c.Etcd().Args, c.APIServer().Args, c.ControllerManager().Args}
		if nodes {
			specs = append(specs, c.Scheduler().Args)
		}
		named := 0
		for _, arguments := range specs {
			for _, argument := range arguments {
				if _, path, _ := strings.Cut(argument, "="); strings.HasPrefix(path, c.Folder) {
					require.FileExists(t, path, argument)
					named++
				}
			}
		}
		require.Greater(t, named, 15)
	}
}

func TestCertificatesNameTheUsersThatKubernetesKnows(t *testing.T) {
	c := config(t, true)
	require.NoError(t, c.Prepare(&NodeUsers{Name: "n", Address: "172.30.0.2", Others: map[string]string{"kube-proxy": "system:kube-proxy"}}))
	for file, user := range map[string]string{
		"kubelet": "system:node:n", "kube-proxy": "system:kube-proxy", "kube-scheduler": "system:kube-scheduler",
		"kube-controller-manager": "system:kube-controller-manager",
	} {
		require.Equal(t, user, leaf(t, c, file).Subject.CommonName)
		require.Equal(t, "https://127.0.0.1:6443", server(t, c.File(file+".kubeconfig")))
	}
	require.Equal(t, []string{"system:nodes"}, leaf(t, c, "kubelet").Subject.Organization)
	require.Equal(t, []string{"system:masters"}, leaf(t, c, AdminFile).Subject.Organization)
	require.Equal(t, "https://127.0.0.1:12345", server(t, c.HostKubeconfig))
	for _, address := range []string{"127.0.0.1", "10.96.0.1", "172.30.0.2", "kubernetes.default.svc"} {
		require.NoError(t, leaf(t, c, "apiserver").VerifyHostname(address))
	}
}

func TestUsersOfTheClusterAreNoUsersOfEtcd(t *testing.T) {
	c := config(t, true)
	require.NoError(t, c.Prepare(nil))
	authority, err := os.ReadFile(c.File("etcd-ca.crt"))
	require.NoError(t, err)
	etcd := x509.NewCertPool()
	require.True(t, etcd.AppendCertsFromPEM(authority))
	options := x509.VerifyOptions{Roots: etcd, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	_, err = leaf(t, c, "etcd-client").Verify(options)
	require.NoError(t, err)
	_, err = leaf(t, c, AdminFile).Verify(options)
	require.Error(t, err)
}

func TestWithoutNodesNothingJudgesThem(t *testing.T) {
	with, without := config(t, true), config(t, false)
	require.Contains(t, with.ControllerManager().Args, "--controllers=*")
	require.Contains(t, without.ControllerManager().Args,
		"--controllers=*,-node-lifecycle-controller,-taint-eviction-controller,-node-ipam-controller")
	require.NotContains(t, strings.Join(without.APIServer().Args, " "), "--kubelet")
}

func TestFreePortIsFreeAndOutOfTheWay(t *testing.T) {
	port, err := FreePort()
	require.NoError(t, err)
	require.GreaterOrEqual(t, port, firstPort)
	require.Less(t, port, firstPort+ports)
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	require.NoError(t, err)
	require.NoError(t, listener.Close())
}
