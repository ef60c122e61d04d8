package gateway

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"github.com/example-org/subrelay-operator/lab/internal/node/kubectl"
)

//go:embed config
var templates embed.FS

const (
	// patience is how long one step in the cluster may take, on a slow and busy machine.
	patience = 2 * time.Minute
	// A lab lives for hours or days; nothing renews the controller's token.
	tokenValidity = 365 * 24 * time.Hour
	// certificatesSecret holds what the controller needs at CertificatesPath.
	certificatesSecret = "envoy-gateway"
)

// Controls says what to run, for which cluster, and how.
type Controls struct {
	Cluster kubectl.Client
	// Program is the controller's path on the host.
	Program string
	// Files is the folder of the controller's files, as the host sees it.
	Files  Folder
	Layout Layout
	// Authority is the certificate to check the API server against.
	Authority []byte
	// Address is where the data plane reaches the controller; empty when there is no node for a data plane.
	Address string
}

// Prepare brings what the controller needs to the cluster and writes its files. It reports whether the files were there
// already, for the same layout; otherwise the controller has to be started anew.
func (c Controls) Prepare(ctx context.Context) (already bool, err error) {
	objects, err := render("objects.yaml", map[string]string{"ControllerAddress": c.Address})
	if err != nil {
		return false, err
	}
	if err := apply(ctx, c.Cluster, objects); err != nil {
		return false, err
	}
	settings, err := c.settings()
	if err != nil {
		return false, err
	}
	present, err := os.ReadFile(c.Files.settings())
	if err == nil && bytes.Equal(present, settings) {
		return true, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("read the settings of Envoy Gateway: %w", err)
	}
	if err := c.writeCertificates(ctx); err != nil {
		return false, err
	}
	if err := c.writeAccount(ctx); err != nil {
		return false, err
	}
	// The settings are written last, so they tell that everything else is there.
	return false, writeFile(c.Files.settings(), settings)
}

func (c Controls) settings() ([]byte, error) {
	values := map[string]string{"DeployType": "ControllerNamespace", "Merge": "false", "DataPlaneImage": dataPlaneImage}
	switch c.Layout {
	case Merged:
		values["Merge"] = "true"
	case GatewayNamespace:
		values["DeployType"] = "GatewayNamespace"
	}
	return render("envoy-gateway.yaml", values)
}

// RemoveDataPlanes deletes all that a controller made for Gateways: one of another layout does not clear it away.
func (c Controls) RemoveDataPlanes(ctx context.Context) error {
	_, err := c.Cluster.Run(ctx, nil, "delete", "deployments,services,configmaps,serviceaccounts", "--all-namespaces",
		"--selector=app.kubernetes.io/managed-by=envoy-gateway,app.kubernetes.io/name=envoy", "--timeout="+patience.String())
	return err
}

// writeCertificates lets the controller's own program make its certificates and those of its data plane, as Secrets, and
// stores what the controller reads from files.
func (c Controls) writeCertificates(ctx context.Context) error {
	generate := exec.CommandContext(ctx, c.Program, "certgen", "--disable-topology-injector")
	generate.Env = append(os.Environ(), "KUBECONFIG="+c.Cluster.Kubeconfig, "ENVOY_GATEWAY_NAMESPACE="+Namespace)
	if _, err := kubectl.Output(generate); err != nil {
		return fmt.Errorf("make the certificates of Envoy Gateway: %w", err)
	}
	encoded, err := c.Cluster.Run(ctx, nil, "get", "secret", certificatesSecret, "--namespace="+Namespace, "--output=json")
	if err != nil {
		return err
	}
	var secret struct{ Data map[string][]byte }
	if err := json.Unmarshal([]byte(encoded), &secret); err != nil {
		return fmt.Errorf("understand the Secret %s/%s: %w", Namespace, certificatesSecret, err)
	}
	for name, content := range secret.Data {
		if err := writeFile(filepath.Join(c.Files.certificates(), filepath.Base(name)), content); err != nil {
			return err
		}
	}
	return nil
}

// writeAccount gives the controller its service account's token, as a Pod would get it.
func (c Controls) writeAccount(ctx context.Context) error {
	token, err := c.Cluster.Run(ctx, nil, "create", "token", "envoy-gateway", "--namespace="+Namespace,
		"--duration="+tokenValidity.String())
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"token": []byte(token), "ca.crt": c.Authority} {
		if err := writeFile(filepath.Join(c.Files.account(), name), content); err != nil {
			return err
		}
	}
	return nil
}

// writeFile stores a key, or settings, so that only the owner can read it.
func writeFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make the folder of Envoy Gateway: %w", err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return fmt.Errorf("write the files of Envoy Gateway: %w", err)
	}
	return nil
}

// AwaitWork returns when the controller has judged a GatewayClass.
func (c Controls) AwaitWork(ctx context.Context) error {
	probe, err := render("probe.yaml", nil)
	if err != nil {
		return err
	}
	name, err := c.Cluster.Run(ctx, bytes.NewReader(probe), "create", "--output=name", "--filename=-")
	if err != nil {
		return err
	}
	class := strings.TrimSpace(name)
	_, err = c.Cluster.Run(ctx, nil, "wait", "--for=condition=Accepted", "--timeout="+patience.String(), class)
	_, removal := c.Cluster.Run(context.WithoutCancel(ctx), nil, "delete", "--ignore-not-found", class)
	return errors.Join(err, removal)
}

// Remove deletes what Prepare made, and with the namespace every data plane in it.
func (c Controls) Remove(ctx context.Context) error {
	objects, err := render("objects.yaml", map[string]string{"ControllerAddress": c.Address})
	if err != nil {
		return err
	}
	_, err = c.Cluster.Run(ctx, bytes.NewReader(objects), "delete", "--ignore-not-found", "--timeout="+patience.String(), "--filename=-")
	if err != nil {
		return err
	}
	if err := os.RemoveAll(string(c.Files)); err != nil {
		return fmt.Errorf("remove the folder of Envoy Gateway: %w", err)
	}
	return nil
}

// render fills in one of the embedded texts. A value that is not given is an error.
func render(name string, values map[string]string) ([]byte, error) {
	parsed, err := template.New(name).Option("missingkey=error").ParseFS(templates, "config/"+name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, values); err != nil {
		return nil, fmt.Errorf("fill in %s: %w", name, err)
	}
	return out.Bytes(), nil
}
