// Package gateway runs a real Envoy Gateway controller beside a lab's cluster. The definitions, objects, certificates and
// settings that it needs are prepared on the host, through kubectl; the lab's supervisor runs the controller itself.
package gateway

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/example-org/subrelay-operator/lab/internal/node/process"
)

const (
	// Component is the name of the component that builds the controller, and of the controller among a lab's components.
	Component = "envoy-gateway"
	// Namespace is the controller's, and in most layouts that of the data plane.
	Namespace = "envoy-gateway-system"
	// dataPlaneImage stands in for Envoy, of which there is no build for the lab, and for the controller's image, which the
	// data plane's Pods use to shut Envoy down. `lab load` brings it to the node.
	dataPlaneImage = "registry.example.invalid/subrelay-standin/edge:dev"
)

// Layout says where the controller puts the data plane of a Gateway.
type Layout string

const (
	// ControllerNamespace is one data plane for each Gateway, in the controller's namespace: what Envoy Gateway does by default.
	ControllerNamespace Layout = "controller-namespace"
	// Merged is one data plane for all Gateways of a class, in the controller's namespace.
	Merged Layout = "merged"
	// GatewayNamespace is one data plane for each Gateway, in the Gateway's namespace.
	GatewayNamespace Layout = "gateway-namespace"
)

// Layouts returns all layouts.
func Layouts() []Layout { return []Layout{ControllerNamespace, Merged, GatewayNamespace} }

// ParseLayout understands what a person wrote.
func ParseLayout(text string) (Layout, error) {
	if layout := Layout(text); slices.Contains(Layouts(), layout) {
		return layout, nil
	}
	var known []string
	for _, layout := range Layouts() {
		known = append(known, string(layout))
	}
	return "", fmt.Errorf("no layout %q: there are %s", text, strings.Join(known, ", "))
}

// Folder is the folder that holds the controller's files.
type Folder string

func (f Folder) settings() string     { return filepath.Join(string(f), "envoy-gateway.yaml") }
func (f Folder) certificates() string { return filepath.Join(string(f), "certs") }
func (f Folder) account() string      { return filepath.Join(string(f), "serviceaccount") }

// Places maps the paths at which the controller looks for files, whatever its settings say, to where they are: the
// volumes of its Pod, if it had one.
func (f Folder) Places() map[string]string {
	return map[string]string{
		"/certs": f.certificates(),
		"/var/run/secrets/kubernetes.io/serviceaccount": f.account(),
	}
}

// Controller says how to run the controller, with the paths that the running controller sees, for an API server on a
// port of its loopback.
func Controller(program string, files Folder, apiPort int) process.Spec {
	return process.Spec{
		Name: Component,
		Path: program,
		Args: []string{"server", "--config-path=" + files.settings()},
		Env:  []string{"KUBERNETES_SERVICE_HOST=127.0.0.1", fmt.Sprintf("KUBERNETES_SERVICE_PORT=%d", apiPort)},
	}
}
