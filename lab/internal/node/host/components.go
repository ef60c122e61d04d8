package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// nodeComponents are the components of a full lab: all that there are.
var nodeComponents = []string{
	"kubernetes", "containerd", "runc", "cni", "kube-router", "coredns", "local-path-provisioner", "pause",
}

// kubernetesComponent holds every program of a control plane.
var kubernetesComponent = []string{"kubernetes"}

// controlPlaneComponents returns what has to be built for a control plane alone, and the ready-made
// programs in the folder assets, which may be empty. Etcd and the API server have to be there;
// the controller manager and kubectl are built when they are not.
func controlPlaneComponents(assets string) (components []string, ready map[string]string, err error) {
	if assets == "" {
		return kubernetesComponent, nil, nil
	}
	ready = map[string]string{}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kubectl"} {
		path, err := filepath.Abs(filepath.Join(assets, name))
		if err != nil {
			return nil, nil, fmt.Errorf("KUBEBUILDER_ASSETS: %w", err)
		}
		switch _, err := os.Stat(path); {
		case err == nil:
			ready[name] = path
		case !errors.Is(err, fs.ErrNotExist):
			return nil, nil, fmt.Errorf("KUBEBUILDER_ASSETS: %w", err)
		case name == "etcd" || name == "kube-apiserver":
			return nil, nil, fmt.Errorf("KUBEBUILDER_ASSETS is %s, which has no %s: point it at a folder with etcd and "+
				"kube-apiserver, or unset it to use the lab's own", assets, name)
		default:
			components = kubernetesComponent
		}
	}
	return components, ready, nil
}
