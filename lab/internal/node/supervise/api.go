package supervise

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/example-org/subrelay-operator/lab/internal/node/control"
	"github.com/example-org/subrelay-operator/lab/internal/node/controlplane"
)

const probeTimeout = 2 * time.Second

// api asks the API server a few simple questions as the administrator.
type api struct {
	endpoint string
	client   http.Client
}

func newAPI(plane controlplane.Config) (*api, error) {
	authority, err := os.ReadFile(plane.File("ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("read the cluster's authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, errors.New("the cluster's authority is no certificate")
	}
	admin, err := tls.LoadX509KeyPair(plane.File(controlplane.AdminFile+".crt"), plane.File(controlplane.AdminFile+".key"))
	if err != nil {
		return nil, fmt.Errorf("read the administrator's certificate: %w", err)
	}
	settings := &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{admin}, MinVersion: tls.VersionTLS12}
	return &api{
		endpoint: plane.Endpoint(),
		client:   http.Client{Transport: &http.Transport{TLSClientConfig: settings}, Timeout: probeTimeout},
	}, nil
}

// get returns what the API server has at path.
func (a *api) get(ctx context.Context, path string) ([]byte, error) {
	return get(ctx, &a.client, a.endpoint+path)
}

// probe returns a question that is answered well as soon as path exists.
func (a *api) probe(path string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := a.get(ctx, path)
		return err
	}
}

// node describes a node.
func (a *api) node(ctx context.Context, name string) *control.Node {
	answer, err := a.get(ctx, "/api/v1/nodes/"+name)
	if err != nil {
		return &control.Node{Name: name, Message: err.Error()}
	}
	node, err := parseNode(answer)
	if err != nil {
		return &control.Node{Name: name, Message: err.Error()}
	}
	return node
}

func parseNode(object []byte) (*control.Node, error) {
	var parsed struct {
		Metadata struct{ Name string }
		Status   struct {
			Conditions []struct{ Type, Status, Message string }
		}
	}
	if err := json.Unmarshal(object, &parsed); err != nil {
		return nil, fmt.Errorf("understand the node: %w", err)
	}
	for _, condition := range parsed.Status.Conditions {
		if condition.Type == "Ready" {
			return &control.Node{
				Name:    parsed.Metadata.Name,
				Ready:   condition.Status == "True",
				Message: condition.Message,
			}, nil
		}
	}
	return &control.Node{Name: parsed.Metadata.Name, Message: "the kubelet has not reported yet"}, nil
}

// httpProbe returns a question that is answered well as soon as url answers with success.
func httpProbe(url string) func(context.Context) error {
	client := &http.Client{Timeout: probeTimeout}
	return func(ctx context.Context) error {
		_, err := get(ctx, client, url)
		return err
	}
}

func get(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, response.Status)
	}
	return body, nil
}
