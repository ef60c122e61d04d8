package control

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/example-org/subrelay-operator/lab/internal/node/process"
)

type fakeSupervisor struct {
	status    Status
	restarted string
	loaded    string
	gateway   string
}

func (f *fakeSupervisor) Status(context.Context) Status { return f.status }

func (f *fakeSupervisor) Restart(component string) error {
	if component == "unknown" {
		return errors.New("the lab runs no component unknown")
	}
	f.restarted = component
	return nil
}

func (f *fakeSupervisor) LoadImages(_ context.Context, archive io.Reader) error {
	data, err := io.ReadAll(archive)
	f.loaded = string(data)
	if f.loaded == "broken" {
		return errors.New("no archive")
	}
	return err
}

func (f *fakeSupervisor) StartGateway(_ context.Context, program string) error {
	if program == "/elsewhere" {
		return errors.New("no program of the lab")
	}
	f.gateway = program
	return nil
}

func (f *fakeSupervisor) StopGateway(context.Context) { f.gateway = "" }

// serve returns a client of a supervisor that answers until the test ends, in a folder whose path
// is longer than the address of a Unix socket may be.
func serve(t *testing.T, supervisor Supervisor) *Client {
	t.Helper()
	folder := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	require.NoError(t, os.Mkdir(folder, 0o700))
	socket := filepath.Join(folder, "control.sock")
	// A dead supervisor's socket is in the way.
	require.NoError(t, os.WriteFile(socket, nil, 0o600))

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, socket, supervisor) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	client := NewClient(socket)
	require.Eventually(t, func() bool {
		_, err := client.Status(context.Background())
		return err == nil
	}, 10*time.Second, 5*time.Millisecond)
	return client
}

func TestRoundTrip(t *testing.T) {
	supervisor := &fakeSupervisor{status: Status{
		Steps:      []Step{{Name: "control plane", Took: time.Second, Done: true}},
		Ready:      true,
		Components: []process.Status{{Name: "etcd", State: process.Running, PID: 7, Since: time.Unix(1, 0).UTC()}},
		Node:       &Node{Name: "lab-node", Ready: true},
	}}
	client := serve(t, supervisor)
	status, err := client.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, supervisor.status, status)

	require.NoError(t, client.Restart(t.Context(), "etcd"))
	require.Equal(t, "etcd", supervisor.restarted)
	require.EqualError(t, client.Restart(t.Context(), "unknown"), "the lab runs no component unknown")
	require.NoError(t, client.Restart(t.Context(), "../status"))
	require.Equal(t, "../status", supervisor.restarted, "a name is never a path")

	require.NoError(t, client.LoadImages(t.Context(), strings.NewReader("archive")))
	require.Equal(t, "archive", supervisor.loaded)
	require.EqualError(t, client.LoadImages(t.Context(), strings.NewReader("broken")), "no archive")
}

func TestNobodyAnswers(t *testing.T) {
	_, err := NewClient(filepath.Join(t.TempDir(), "control.sock")).Status(t.Context())
	require.ErrorContains(t, err, "ask the supervisor")
}

func TestGatewayIsStartedAndStopped(t *testing.T) {
	supervisor := &fakeSupervisor{}
	client := serve(t, supervisor)
	require.NoError(t, client.StartGateway(t.Context(), "/cache/envoy gateway"))
	require.Equal(t, "/cache/envoy gateway", supervisor.gateway)
	require.ErrorContains(t, client.StartGateway(t.Context(), "/elsewhere"), "no program of the lab")
	require.NoError(t, client.StopGateway(t.Context()))
	require.Empty(t, supervisor.gateway)
}
