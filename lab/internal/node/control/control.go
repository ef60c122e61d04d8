// Package control is how commands on the host talk to a lab's supervisor: HTTP over a Unix socket
// in the state folder.
package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/example-org/subrelay-operator/lab/internal/node/process"
)

// Step is one stage of bringing a lab up.
type Step struct {
	Name string `json:"name"`
	// Took is the time that the step needed; zero while it lasts.
	Took time.Duration `json:"took"`
	Done bool          `json:"done"`
}

// Node is the Kubernetes node of a lab as the API server knows it.
type Node struct {
	Name  string `json:"name"`
	Ready bool   `json:"ready"`
	// Message says why it is not ready.
	Message string `json:"message,omitempty"`
}

// Status describes a running lab.
type Status struct {
	Steps []Step `json:"steps"`
	// Ready says that all steps succeeded.
	Ready bool `json:"ready"`
	// Failure says which step failed and how.
	Failure    string           `json:"failure,omitempty"`
	Components []process.Status `json:"components"`
	// Node is nil in a lab without a node, and before the API server answers.
	Node *Node `json:"node,omitempty"`
}

// Supervisor is what the socket offers.
type Supervisor interface {
	Status(ctx context.Context) Status
	Restart(component string) error
	// LoadImages imports an image archive.
	LoadImages(ctx context.Context, archive io.Reader) error
	// StartGateway runs the Envoy Gateway controller whose program is at a path on the host, instead of one that runs.
	StartGateway(ctx context.Context, program string) error
	// StopGateway ends that controller, if it runs.
	StopGateway(ctx context.Context)
}

// Serve answers requests on the socket until ctx ends.
func Serve(ctx context.Context, socket string, supervisor Supervisor) error {
	listener, err := Listen(socket)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: newHandler(supervisor), ReadHeaderTimeout: time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the control socket: %w", err)
	}
	return nil
}

// Listen opens a Unix socket in place of one that a dead process left.
func Listen(socket string) (net.Listener, error) {
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove the old socket: %w", err)
	}
	address, release, err := shortAddress(socket)
	if err != nil {
		return nil, err
	}
	defer release()
	listener, err := net.Listen("unix", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", socket, err)
	}
	return listener, nil
}

func newHandler(supervisor Supervisor) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		// The client's side of a broken connection reports it.
		_ = json.NewEncoder(w).Encode(supervisor.Status(r.Context()))
	})
	mux.HandleFunc("POST /components/{name}/restart", func(w http.ResponseWriter, r *http.Request) {
		if err := supervisor.Restart(r.PathValue("name")); err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
		}
	})
	mux.HandleFunc("POST /images", func(w http.ResponseWriter, r *http.Request) {
		if err := supervisor.LoadImages(r.Context(), r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		}
	})
	mux.HandleFunc("PUT /gateway", func(w http.ResponseWriter, r *http.Request) {
		if err := supervisor.StartGateway(r.Context(), r.URL.Query().Get("program")); err != nil {
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		}
	})
	mux.HandleFunc("DELETE /gateway", func(_ http.ResponseWriter, r *http.Request) { supervisor.StopGateway(r.Context()) })
	return mux
}

// Client talks to the supervisor of one lab.
type Client struct{ http http.Client }

// NewClient returns a client for the socket.
func NewClient(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		address, release, err := shortAddress(socket)
		if err != nil {
			return nil, err
		}
		defer release()
		var dialer net.Dialer
		return dialer.DialContext(ctx, "unix", address)
	}
	return &Client{http: http.Client{Transport: &http.Transport{DialContext: dial}}}
}

// Status asks how the lab is doing.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var status Status
	answer, err := c.do(ctx, http.MethodGet, "/status", nil)
	if err != nil {
		return status, err
	}
	if err := json.Unmarshal(answer, &status); err != nil {
		return status, fmt.Errorf("understand the supervisor: %w", err)
	}
	return status, nil
}

// Restart asks to end a component and start it again.
func (c *Client) Restart(ctx context.Context, component string) error {
	_, err := c.do(ctx, http.MethodPost, "/components/"+url.PathEscape(component)+"/restart", nil)
	return err
}

// LoadImages imports an image archive into the node.
func (c *Client) LoadImages(ctx context.Context, archive io.Reader) error {
	_, err := c.do(ctx, http.MethodPost, "/images", archive)
	return err
}

// StartGateway asks to run the Envoy Gateway controller whose program is at a path on the host.
func (c *Client) StartGateway(ctx context.Context, program string) error {
	_, err := c.do(ctx, http.MethodPut, "/gateway?program="+url.QueryEscape(program), nil)
	return err
}

// StopGateway asks to end the Envoy Gateway controller.
func (c *Client) StopGateway(ctx context.Context) error {
	_, err := c.do(ctx, http.MethodDelete, "/gateway", nil)
	return err
}

func (c *Client) do(ctx context.Context, method, path string, body io.Reader) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://supervisor"+path, body)
	if err != nil {
		return nil, fmt.Errorf("ask the supervisor: %w", err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the supervisor: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("ask the supervisor: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(strings.TrimSpace(string(answer)))
	}
	return answer, nil
}

// shortAddress names a socket through a descriptor of its folder: the kernel takes at most 107
// characters, which a state folder deep in a home or temporary folder exceeds.
func shortAddress(socket string) (address string, release func(), err error) {
	folder, err := os.Open(filepath.Dir(socket))
	if err != nil {
		return "", nil, fmt.Errorf("open the folder of the control socket: %w", err)
	}
	address = fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), filepath.Base(socket))
	return address, func() { _ = folder.Close() }, nil
}
