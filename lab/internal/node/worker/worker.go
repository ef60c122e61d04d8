// Package worker says how to run what makes a machine a Kubernetes node: the container runtime,
// the kubelet, the Service proxy, the agent that enforces network policies and the provisioner of
// volumes. It runs inside the lab's sandbox, whose paths it knows.
package worker

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"text/template"

	"github.com/example-org/subrelay-operator/lab/internal/image"
	"github.com/example-org/subrelay-operator/lab/internal/node/controlplane"
	"github.com/example-org/subrelay-operator/lab/internal/node/process"
	"github.com/example-org/subrelay-operator/lab/internal/node/sandbox"
)

const (
	// NodeName is the name of the lab's only node.
	NodeName = "lab-node"
	// DNSService is the cluster address of the DNS Service.
	DNSService = "10.96.0.10"
	// ContainerdSocket is where containerd answers.
	ContainerdSocket = "/run/containerd/containerd.sock"
	// StorageProvisioner is the provisioner that the StorageClass names.
	StorageProvisioner = "subrelay.example.com/lab-local"

	// The node's share of PodCIDR: the first that the controller manager hands out.
	podSubnet = "10.244.0.0/24"
	// Where kube-router and the kubelet answer health checks, on loopback.
	routerHealthPort = 20244
)

// Kubeconfigs and the users they are for, besides the kubelet's own.
const (
	proxyFile   = "kube-proxy"
	routerFile  = "kube-router"
	storageFile = "local-path-provisioner"
)

// Users are the names under which the node's programs talk to the API server.
func Users() *controlplane.NodeUsers {
	return &controlplane.NodeUsers{
		Name:    NodeName,
		Address: sandbox.NodeIP,
		Others: map[string]string{
			proxyFile:   "system:kube-proxy",
			routerFile:  "subrelay-lab:kube-router",
			storageFile: "subrelay-lab:local-path-provisioner",
		},
	}
}

//go:embed config
var templates embed.FS

// Config describes one node.
type Config struct {
	// Folder is where Prepare puts the node's settings.
	Folder string
	// Credentials returns the path of one of the control plane's files.
	Credentials func(name string) string
	// Binary returns the path of a program.
	Binary func(name string) string
	// CgroupRoot is the lab's cgroup, below the root of each hierarchy.
	CgroupRoot string
	// Snapshotter is how containerd stacks image layers.
	Snapshotter string
}

func (c Config) file(name string) string { return filepath.Join(c.Folder, name) }

// Prepare writes the settings of all the node's programs.
func (c Config) Prepare() error {
	values := map[string]string{
		"ContainerdSocket":   ContainerdSocket,
		"Snapshotter":        c.Snapshotter,
		"PauseImage":         image.Pause,
		"HelperImage":        image.Busybox,
		"Shim":               c.Binary("containerd-shim-runc-v2"),
		"Runc":               c.Binary("runc"),
		"CNIBinaries":        filepath.Dir(c.Binary("bridge")),
		"CNIConfig":          c.file("cni"),
		"PodSubnet":          podSubnet,
		"ClientCA":           c.Credentials("ca.crt"),
		"ServingCertificate": c.Credentials("kubelet.crt"),
		"ServingKey":         c.Credentials("kubelet.key"),
		"DNSService":         DNSService,
		"CgroupRoot":         c.CgroupRoot,
	}
	targets := map[string]string{
		"containerd.toml":  "containerd.toml",
		"cni.conflist":     "cni/lab.conflist",
		"kubelet.yaml":     "kubelet.yaml",
		"storage.json":     "storage.json",
		"storage-pod.yaml": "storage-pod.yaml",
	}
	for name, target := range targets {
		content, err := render(name, values)
		if err != nil {
			return fmt.Errorf("prepare the node's %s: %w", name, err)
		}
		path := c.file(target)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("prepare the node's settings: %w", err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return fmt.Errorf("prepare the node's settings: %w", err)
		}
	}
	return nil
}

// render fills in one of the embedded settings. A value that is not given is an error.
func render(name string, values map[string]string) ([]byte, error) {
	parsed, err := template.New(name).Option("missingkey=error").ParseFS(templates, "config/"+name)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = parsed.Execute(&out, values)
	return out.Bytes(), err
}

// Containerd runs containers.
func (c Config) Containerd() process.Spec {
	return process.Spec{
		Name: "containerd",
		Path: c.Binary("containerd"),
		Args: []string{"--config=" + c.file("containerd.toml"), "--log-level=warn"},
		// The shim looks for runc when it is asked what it can do.
		Env: []string{"PATH=" + filepath.Dir(c.Binary("runc")) + ":" + process.SystemPath},
	}
}

// Kubelet makes the machine a node.
func (c Config) Kubelet() process.Spec {
	return process.Spec{
		Name: "kubelet",
		Path: c.Binary("kubelet"),
		Args: []string{
			"--config=" + c.file("kubelet.yaml"),
			"--kubeconfig=" + c.Credentials("kubelet.kubeconfig"),
			"--root-dir=/var/lib/kubelet",
			"--hostname-override=" + NodeName,
			"--node-ip=" + sandbox.NodeIP,
		},
	}
}

// Proxy makes Service addresses reach their Pods.
func (c Config) Proxy() process.Spec {
	return process.Spec{
		Name: "kube-proxy",
		Path: c.Binary("kube-proxy"),
		Args: []string{
			"--kubeconfig=" + c.Credentials(proxyFile+".kubeconfig"),
			"--hostname-override=" + NodeName,
			"--proxy-mode=nftables",
			"--cluster-cidr=" + controlplane.PodCIDR,
			// The size of the connection table is the host's to choose.
			"--conntrack-max-per-core=0",
		},
	}
}

// PolicyAgent enforces network policies. It ends when the node is not registered yet.
func (c Config) PolicyAgent() process.Spec {
	return process.Spec{
		Name: "kube-router",
		Path: c.Binary("kube-router"),
		Args: []string{
			"--kubeconfig=" + c.Credentials(routerFile+".kubeconfig"),
			"--hostname-override=" + NodeName,
			"--run-firewall=true",
			"--run-router=false",
			"--run-service-proxy=false",
			"--run-loadbalancer=false",
			"--service-cluster-ip-range=" + controlplane.ServiceCIDR,
			fmt.Sprintf("--health-port=%d", routerHealthPort),
		},
	}
}

// PolicyAgentHealth is the URL at which the policy agent says that it works.
func PolicyAgentHealth() string { return fmt.Sprintf("http://127.0.0.1:%d/healthz", routerHealthPort) }

// Provisioner makes a folder for each claim of the lab's StorageClass.
func (c Config) Provisioner() process.Spec {
	return process.Spec{
		Name: "local-path-provisioner",
		Path: c.Binary("local-path-provisioner"),
		Args: []string{
			"start",
			"--kubeconfig=" + c.Credentials(storageFile+".kubeconfig"),
			"--config=" + c.file("storage.json"),
			"--helper-pod-file=" + c.file("storage-pod.yaml"),
			"--helper-image=" + image.Busybox,
			"--provisioner-name=" + StorageProvisioner,
			"--namespace=kube-system",
			"--service-account-name=default",
		},
	}
}
