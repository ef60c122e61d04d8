package pki

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

// Kubeconfig is the access of one user to the lab's cluster.
type Kubeconfig struct {
	// Server is the URL of the API server.
	Server string
	// Authority is the certificate that the server is checked against.
	Authority []byte
	User      string
	Client    Pair
}

// Write stores the kubeconfig with everything in it, so that the file can be copied.
func (k Kubeconfig) Write(path string) error {
	const cluster = "subrelay-lab"
	type object = map[string]any
	data, err := yaml.Marshal(object{
		"apiVersion": "v1",
		"kind":       "Config",
		"clusters": []object{{"name": cluster, "cluster": object{
			"server":                     k.Server,
			"certificate-authority-data": k.Authority,
		}}},
		"users": []object{{"name": k.User, "user": object{
			"client-certificate-data": k.Client.Certificate,
			"client-key-data":         k.Client.Key,
		}}},
		"contexts":        []object{{"name": cluster, "context": object{"cluster": cluster, "user": k.User}}},
		"current-context": cluster,
	})
	if err != nil {
		return fmt.Errorf("encode the kubeconfig of %s: %w", k.User, err)
	}
	return WriteFile(path, data)
}
