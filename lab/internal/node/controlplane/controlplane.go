// Package controlplane says how to run etcd, the API server, the controller manager and the scheduler.
package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/example-org/subrelay-operator/lab/internal/node/process"
)

const (
	// ServiceCIDR holds the cluster addresses of Services.
	ServiceCIDR = "10.96.0.0/16"
	// PodCIDR holds the addresses of Pods.
	PodCIDR = "10.244.0.0/16"

	// NodePort is the API server's port in the network of a full lab.
	NodePort = 6443

	// The first address of ServiceCIDR is the API server's Service.
	serviceIP = "10.96.0.1"
	issuer    = "https://kubernetes.default.svc.cluster.local"
	// In megabytes; large, so that the log of a whole test run stays one file.
	auditLogSize = "8192"
)

// The audit log tells who changed what; what was asked and answered stays out of it.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: ["RequestReceived"]
rules:
  - level: Metadata
`

// Config describes one control plane.
type Config struct {
	// Folder holds the control plane's files as Prepare leaves them.
	Folder string
	// Data is etcd's folder.
	Data string
	// AuditLog is the file of the API server's audit log.
	AuditLog string
	// Binary returns the path of a program.
	Binary func(name string) string

	// BindAddress and Port are where the API server listens, AdvertiseAddress is what it tells Pods.
	BindAddress      string
	AdvertiseAddress string
	Port             int
	// EtcdPort is on loopback.
	EtcdPort int
	// HostKubeconfig is where the administrator on the host finds the cluster, at HostPort on loopback.
	HostKubeconfig string
	HostPort       int
	// Nodes says that the cluster has nodes with kubelets.
	Nodes bool
}

// Endpoint is the API server's address on loopback.
func (c Config) Endpoint() string { return loopbackURL(c.Port) }

// File returns the path of a file that Prepare wrote.
func (c Config) File(name string) string { return filepath.Join(c.Folder, name) }

// Etcd is the cluster's store. Everything it keeps is thrown away with the lab, so it does not
// wait for the disk.
func (c Config) Etcd() process.Spec {
	client := loopbackURL(c.EtcdPort)
	// The only member needs no address for others; etcd wants one nevertheless.
	peer := loopbackURL(0)
	return process.Spec{
		Name: "etcd",
		Path: c.Binary("etcd"),
		Args: []string{
			"--name=lab",
			"--data-dir=" + c.Data,
			"--unsafe-no-fsync",
			"--listen-client-urls=" + client,
			"--advertise-client-urls=" + client,
			"--listen-peer-urls=" + peer,
			"--initial-advertise-peer-urls=" + peer,
			"--initial-cluster=lab=" + peer,
			"--client-cert-auth",
			"--trusted-ca-file=" + c.File("etcd-ca.crt"),
			"--cert-file=" + c.File("etcd.crt"),
			"--key-file=" + c.File("etcd.key"),
			"--peer-client-cert-auth",
			"--peer-trusted-ca-file=" + c.File("etcd-ca.crt"),
			"--peer-cert-file=" + c.File("etcd.crt"),
			"--peer-key-file=" + c.File("etcd.key"),
			"--log-level=warn",
		},
	}
}

// APIServer is the Kubernetes API.
func (c Config) APIServer() process.Spec {
	args := []string{
		"--etcd-servers=" + loopbackURL(c.EtcdPort),
		"--etcd-cafile=" + c.File("etcd-ca.crt"),
		"--etcd-certfile=" + c.File("etcd-client.crt"),
		"--etcd-keyfile=" + c.File("etcd-client.key"),
		"--bind-address=" + c.BindAddress,
		"--advertise-address=" + c.AdvertiseAddress,
		fmt.Sprintf("--secure-port=%d", c.Port),
		"--tls-cert-file=" + c.File("apiserver.crt"),
		"--tls-private-key-file=" + c.File("apiserver.key"),
		"--client-ca-file=" + c.File("ca.crt"),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged",
		"--service-cluster-ip-range=" + ServiceCIDR,
		"--service-account-issuer=" + issuer,
		"--service-account-key-file=" + c.File("service-accounts.pub"),
		"--service-account-signing-key-file=" + c.File("service-accounts.key"),
		"--audit-log-path=" + c.AuditLog,
		"--audit-policy-file=" + c.File("audit-policy.yaml"),
		"--audit-log-maxsize=" + auditLogSize,
		"--profiling=false",
	}
	if c.Nodes {
		args = append(args,
			"--kubelet-client-certificate="+c.File("apiserver-kubelet.crt"),
			"--kubelet-client-key="+c.File("apiserver-kubelet.key"),
			"--kubelet-certificate-authority="+c.File("ca.crt"),
			// Node names do not resolve.
			"--kubelet-preferred-address-types=InternalIP",
		)
	} else {
		// Nobody reaches the API through its Service, and a loopback address may not stand in one.
		args = append(args, "--endpoint-reconciler-type=none")
	}
	return process.Spec{Name: "kube-apiserver", Path: c.Binary("kube-apiserver"), Args: args}
}

// ControllerManager runs Kubernetes' own controllers. Without nodes it leaves out those that judge
// nodes, so that nothing is evicted from Node objects that a test makes up.
func (c Config) ControllerManager() process.Spec {
	controllers := []string{"*"}
	args := []string{
		"--kubeconfig=" + c.File("kube-controller-manager.kubeconfig"),
		"--use-service-account-credentials",
		"--service-account-private-key-file=" + c.File("service-accounts.key"),
		"--root-ca-file=" + c.File("ca.crt"),
		"--cluster-signing-cert-file=" + c.File("ca.crt"),
		"--cluster-signing-key-file=" + c.File("ca.key"),
		"--leader-elect=false",
		// The usual 20 requests a second make the start alone last several seconds.
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		// Nobody asks for its metrics.
		"--secure-port=0",
		"--profiling=false",
	}
	if c.Nodes {
		args = append(args, "--allocate-node-cidrs", "--cluster-cidr="+PodCIDR, "--service-cluster-ip-range="+ServiceCIDR)
	} else {
		controllers = append(controllers, "-node-lifecycle-controller", "-taint-eviction-controller", "-node-ipam-controller")
	}
	return process.Spec{
		Name: "kube-controller-manager",
		Path: c.Binary("kube-controller-manager"),
		Args: append(args, "--controllers="+strings.Join(controllers, ",")),
	}
}

// Scheduler places Pods on nodes.
func (c Config) Scheduler() process.Spec {
	return process.Spec{
		Name: "kube-scheduler",
		Path: c.Binary("kube-scheduler"),
		Args: []string{
			"--kubeconfig=" + c.File("kube-scheduler.kubeconfig"),
			"--leader-elect=false",
			"--secure-port=0",
			"--profiling=false",
		},
	}
}

func (c Config) writeAuditPolicy() error {
	if err := os.WriteFile(c.File("audit-policy.yaml"), []byte(auditPolicy), 0o600); err != nil {
		return fmt.Errorf("write the audit policy: %w", err)
	}
	return nil
}

func loopbackURL(port int) string { return fmt.Sprintf("https://127.0.0.1:%d", port) }
