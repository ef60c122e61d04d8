//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Both applications answer through kubectl port-forward, the only way to a pool of mode Internal, with the keys from
// the pool's Secret.
func TestPortForward(t *testing.T) {
	t.Parallel()
	id := createReady(t, newPool("forward"))
	clientKey, managementKey := key(t, id, "cpa_client_key"), key(t, id, "cpa_management_key")
	adminKey := key(t, id, "cpamp_admin_key")

	t.Run("cpa", func(t *testing.T) {
		cpa := forward(t, "http", namespaceOf(id), cpaName, cpaPort)
		assert.Equal(t, http.StatusOK, cpa.get(t, "/healthz", "").status)
		assert.Equal(t, http.StatusUnauthorized, cpa.get(t, "/v1/models", "").status, "without a key")
		assert.Equal(t, http.StatusUnauthorized, cpa.get(t, "/v1/models", managementKey).status, "with the wrong key")
		assert.Equal(t, http.StatusOK, cpa.get(t, "/v1/models", clientKey).status, "with the client key")
	})
	t.Run("cpa-manager", func(t *testing.T) {
		manager := forward(t, "http", namespaceOf(id), managerName, managerPort)
		assert.Equal(t, http.StatusOK, manager.get(t, "/health", "").status)
		assert.Contains(t, manager.get(t, "/usage-service/info", "").body, `"setupRequired":false`)

		assert.Equal(t, http.StatusUnauthorized, manager.get(t, "/status", "").status, "without a key")
		eventually(t, readyBudget, func(c *assert.CollectT) {
			status := manager.get(c, "/status", adminKey)
			assert.Equal(c, http.StatusOK, status.status)
			assert.Contains(c, status.body, `"collector":"running"`, "the manager has the right management key")
		})

		const settings = "/v0/management/config.yaml"
		assert.Equal(t, http.StatusUnauthorized, manager.get(t, settings, managementKey).status, "with cpa's own key")
		proxied := manager.get(t, settings, adminKey)
		assert.Equal(t, http.StatusOK, proxied.status, "cpa answers the manager")
		assert.Contains(t, proxied.body, "usage-statistics-enabled: true")
	})
}

// server is a Service that kubectl port-forward has brought to this machine.
type server struct {
	url    string
	client *http.Client
}

var forwarding = regexp.MustCompile(`^Forwarding from (127\.0\.0\.1:\d+) ->`)

// forward opens a port on this machine for as long as the test runs, and the Pod behind the Service.
func forward(t *testing.T, scheme, namespace, service string, port int) *server {
	t.Helper()
	cmd := lab.KubectlCommand(t.Context(), "port-forward", "--namespace="+namespace, "service/"+service, fmt.Sprintf(":%d", port))
	complaint := &strings.Builder{}
	cmd.Stderr = complaint
	output, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // the end of the test's context has killed it

	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		require.NoError(t, cmd.Wait(), "kubectl port-forward: %s", complaint)
	}
	found := forwarding.FindStringSubmatch(line)
	require.NotNil(t, found, "kubectl port-forward says %q", line)
	return &server{
		url: scheme + "://" + found[1],
		client: &http.Client{
			Timeout: 20 * time.Second,
			// The operator's metrics come with a certificate that it has made for itself.
			Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
		},
	}
}

type answer struct {
	status int
	body   string
}

func (s *server) get(t require.TestingT, path, bearer string) answer {
	return s.ask(t, http.MethodGet, path, bearer, "")
}

func (s *server) ask(t require.TestingT, method, path, bearer, body string) answer {
	request, err := http.NewRequestWithContext(context.Background(), method, s.url+path, strings.NewReader(body))
	require.NoError(t, err)
	if bearer != "" {
		request.Header.Set("Authorization", "Bearer "+bearer)
	}
	return s.send(t, request)
}

func (s *server) send(t require.TestingT, request *http.Request) answer {
	response, err := s.client.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return answer{response.StatusCode, string(content)}
}
