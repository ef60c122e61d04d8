package addons

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/example-org/subrelay-operator/lab/internal/image"
	"github.com/example-org/subrelay-operator/lab/internal/node/worker"
)

func TestManifestsAgreeWithTheNode(t *testing.T) {
	stream, err := Manifests()
	require.NoError(t, err)
	objects := map[string]map[string]any{}
	for document := range bytes.SplitSeq(stream, []byte("\n---\n")) {
		var object map[string]any
		require.NoError(t, yaml.UnmarshalStrict(document, &object))
		metadata := object["metadata"].(map[string]any)
		objects[object["kind"].(string)+"/"+metadata["name"].(string)] = object
	}

	class := objects["StorageClass/lab-local"]
	require.Equal(t, worker.StorageProvisioner, class["provisioner"])
	require.Equal(t, "WaitForFirstConsumer", class["volumeBindingMode"])
	require.Equal(t, worker.DNSService, objects["Service/kube-dns"]["spec"].(map[string]any)["clusterIP"])

	deployment, err := yaml.Marshal(objects["Deployment/coredns"])
	require.NoError(t, err)
	require.Contains(t, string(deployment), "image: "+image.CoreDNS)
	require.Contains(t, string(deployment), "k8s-app: kube-dns")

	// Every user that the node's programs appear as, and that Kubernetes does not know by itself, has permissions.
	bindings, err := yaml.Marshal([]any{objects["ClusterRoleBinding/subrelay-lab:kube-router"], objects["ClusterRoleBinding/subrelay-lab:local-path-provisioner"]})
	require.NoError(t, err)
	for _, user := range worker.Users().Others {
		if user != "system:kube-proxy" {
			require.Contains(t, string(bindings), "name: "+user)
		}
	}
}
