//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example-org/subrelay-operator/test/harness"
)

// edge is the way to a published pool that its clients have: the shared Gateway's data plane, asked for the pool's host.
type edge struct {
	*server
	host string
}

func throughGateway(t *testing.T, poolID string) *edge {
	t.Helper()
	way := forward(t, "http", dataPlaneNamespace, dataPlaneService(t).Name, 80)
	// A redirect is an answer like any other.
	way.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &edge{way, poolID + "." + harness.BaseDomain}
}

// request prepares a request to the pool's host.
func (e *edge) request(ctx context.Context, method, path, bearer, body string) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, method, e.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Host = e.host
	if bearer != "" {
		request.Header.Set("Authorization", "Bearer "+bearer)
	}
	return request, nil
}

// ask sends a request to the pool's host.
func (e *edge) ask(t require.TestingT, method, path, bearer, body string) answer {
	request, err := e.request(context.Background(), method, path, bearer, body)
	require.NoError(t, err)
	return e.send(t, request)
}

// status asks and returns the answer's status.
func (e *edge) status(t require.TestingT, path, bearer string) int {
	return e.ask(t, http.MethodGet, path, bearer, "").status
}

// statusOf sends a request exactly as it is written, which a client of Go would not, and follows redirects to other
// spellings of the path.
func (e *edge) statusOf(t *testing.T, path, host string, headers ...string) int {
	t.Helper()
	for range 5 {
		connection, err := (&net.Dialer{Timeout: tryBudget}).DialContext(t.Context(), "tcp", strings.TrimPrefix(e.url, "http://"))
		require.NoError(t, err)
		require.NoError(t, connection.SetDeadline(time.Now().Add(tryBudget)))
		lines := append([]string{"GET " + path + " HTTP/1.1", "Host: " + host, "Connection: close"}, headers...)
		_, err = fmt.Fprint(connection, strings.Join(lines, "\r\n"), "\r\n\r\n")
		require.NoError(t, err)
		response, err := http.ReadResponse(bufio.NewReader(connection), nil)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.NoError(t, connection.Close())
		if response.StatusCode != http.StatusTemporaryRedirect {
			return response.StatusCode
		}
		// As it was written: to read it as a URL would spell it in another way again.
		path = strings.TrimPrefix(response.Header.Get("Location"), "http://"+host)
	}
	require.Fail(t, "redirected in a circle", path)
	return 0
}

// tryBudget is how long a single answer may take.
const tryBudget = 20 * time.Second

// routeOf is the pool's route as its controller judges it.
func routeOf(t require.TestingT, poolID string) *gatewayv1.HTTPRoute {
	return read[gatewayv1.HTTPRoute](t, namespaceOf(poolID), cpaName)
}

// awaitServed waits until the pool answers through the Gateway.
func awaitServed(t *testing.T, e *edge) {
	t.Helper()
	eventually(t, readyBudget, func(c *assert.CollectT) {
		assert.Equal(c, http.StatusOK, e.status(c, "/healthz", ""))
	})
}
