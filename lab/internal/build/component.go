// Package build makes the lab's programs from their Go modules and keeps them in a cache.
package build

import "strings"

// Component is one Go module below lab/components. Its go.mod and go.sum pin everything that goes into its programs.
type Component struct {
	// Name is the folder below lab/components.
	Name string
	// Version is the version of Module that the component's go.mod requires. Both are empty for a component that
	// consists of the lab's own code.
	Version, Module string
	// Programs are the executables that it builds.
	Programs []Program
	// Tags are Go build tags.
	Tags []string
	// VersionVariables are package variables that get Version at link time.
	VersionVariables []string
	// Variables are package variables that get another value at link time, as NAME=VALUE.
	Variables []string
	// Cgo says that the programs link C code.
	Cgo bool
	// HostPackages are the Debian packages that the build needs.
	HostPackages []string
}

// Program is one executable of a component.
type Program struct {
	Name string
	// Package is the import path of its main package.
	Package string
	// Links are further names of the executable, for one that acts by the name it is called with.
	Links []string
}

// Title names the component for people.
func (c Component) Title() string {
	return strings.TrimSpace(c.Name + " " + c.Version)
}

// Components returns what the lab consists of.
func Components() []Component {
	return []Component{
		{
			Name: "kubernetes", Version: "v1.37.2", Module: "k8s.io/kubernetes",
			Programs: []Program{{
				Name:    "kubernetes",
				Package: ".",
				Links: []string{
					"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl",
				},
			}},
			VersionVariables: []string{"k8s.io/component-base/version.gitVersion", "k8s.io/client-go/pkg/version.gitVersion"},
			Variables: []string{
				"k8s.io/component-base/version.gitMajor=1", "k8s.io/component-base/version.gitMinor=37",
				"k8s.io/client-go/pkg/version.gitMajor=1", "k8s.io/client-go/pkg/version.gitMinor=37",
			},
		},
		{
			Name: "containerd", Version: "v2.4.2", Module: "github.com/containerd/containerd/v2",
			Programs: []Program{
				{Name: "containerd", Package: "github.com/containerd/containerd/v2/cmd/containerd"},
				{Name: "containerd-shim-runc-v2", Package: "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"},
				{Name: "ctr", Package: "github.com/containerd/containerd/v2/cmd/ctr"},
			},
			// Snapshotters that the lab does not use; btrfs would need C headers.
			Tags:             []string{"no_btrfs", "no_devmapper", "no_zfs"},
			VersionVariables: []string{"github.com/containerd/containerd/v2/version.Version"},
		},
		{
			Name: "runc", Version: "v1.5.3", Module: "github.com/opencontainers/runc",
			Programs: []Program{{Name: "runc", Package: "github.com/opencontainers/runc"}},
			// Without seccomp, Pods that ask for the RuntimeDefault profile do not start.
			Tags:         []string{"seccomp"},
			Cgo:          true,
			HostPackages: []string{"gcc", "libc6-dev", "libseccomp-dev", "pkg-config"},
		},
		{
			Name: "cni", Version: "v1.10.0", Module: "github.com/containernetworking/plugins",
			Programs: []Program{
				{Name: "bridge", Package: "github.com/containernetworking/plugins/plugins/main/bridge"},
				{Name: "loopback", Package: "github.com/containernetworking/plugins/plugins/main/loopback"},
				{Name: "host-local", Package: "github.com/containernetworking/plugins/plugins/ipam/host-local"},
				{Name: "portmap", Package: "github.com/containernetworking/plugins/plugins/meta/portmap"},
			},
			VersionVariables: []string{"github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion"},
		},
		{
			Name: "kube-router", Version: "v2.1.0", Module: "github.com/cloudnativelabs/kube-router/v2",
			Programs:         []Program{{Name: "kube-router", Package: "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router"}},
			VersionVariables: []string{"github.com/cloudnativelabs/kube-router/v2/pkg/version.Version"},
		},
		{
			Name: "coredns", Version: "v1.14.6", Module: "github.com/coredns/coredns",
			Programs: []Program{{Name: "coredns", Package: "."}},
		},
		{
			Name: "local-path-provisioner", Version: "v0.0.30", Module: "github.com/rancher/local-path-provisioner",
			Programs:         []Program{{Name: "local-path-provisioner", Package: "github.com/rancher/local-path-provisioner"}},
			VersionVariables: []string{"main.VERSION"},
		},
		{
			Name: "envoy-gateway", Version: "v1.9.1", Module: "github.com/envoyproxy/gateway",
			Programs: []Program{
				{Name: "envoy-gateway", Package: "github.com/envoyproxy/gateway/cmd/envoy-gateway"},
				{Name: "egctl", Package: "github.com/envoyproxy/gateway/cmd/egctl"},
				{Name: "gateway-crds", Package: "."},
			},
			VersionVariables: []string{"github.com/envoyproxy/gateway/internal/cmd/version.envoyGatewayVersion"},
		},
		{
			Name:     "pause",
			Programs: []Program{{Name: "pause", Package: "."}},
		},
	}
}
