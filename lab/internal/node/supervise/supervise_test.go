package supervise

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/example-org/subrelay-operator/lab/internal/node/control"
)

func TestStepsTellHowFarItGot(t *testing.T) {
	var s steps
	require.NoError(t, s.run("first", func() error {
		var during control.Status
		s.describe(&during)
		require.Equal(t, []control.Step{{Name: "first"}}, during.Steps)
		return nil
	}))
	err := s.run("second", func() error { return errors.New("broken") })
	require.EqualError(t, err, "second: broken")
	s.finish(err)

	var status control.Status
	s.describe(&status)
	require.False(t, status.Ready)
	require.Equal(t, "second: broken", status.Failure)
	require.True(t, status.Steps[0].Done)
	require.NotZero(t, status.Steps[0].Took)
	require.False(t, status.Steps[1].Done)
	require.NotZero(t, status.Steps[1].Took)

	var good steps
	good.finish(nil)
	good.describe(&status)
	require.True(t, status.Ready)
}

func TestParseNode(t *testing.T) {
	for object, want := range map[string]control.Node{
		`{"metadata":{"name":"n"},"status":{"conditions":[{"type":"DiskPressure","status":"True"},{"type":"Ready","status":"True","message":"fine"}]}}`: {
			Name: "n", Ready: true, Message: "fine"},
		`{"metadata":{"name":"n"},"status":{"conditions":[{"type":"Ready","status":"Unknown","message":"silent"}]}}`: {
			Name: "n", Message: "silent"},
		`{"metadata":{"name":"n"}}`: {Name: "n", Message: "the kubelet has not reported yet"},
	} {
		node, err := parseNode([]byte(object))
		require.NoError(t, err)
		require.Equal(t, want, *node)
	}
	_, err := parseNode([]byte("{"))
	require.Error(t, err)
}

func TestProbesTakeNothingButSuccess(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/good" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	require.NoError(t, httpProbe(server.URL+"/good")(t.Context()))
	require.ErrorContains(t, httpProbe(server.URL+"/bad")(t.Context()), "500")
}

func TestForwardPassesBothWaysAndEndsEachOnItsOwn(t *testing.T) {
	inside, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = inside.Close() }()
	go func() {
		connection, err := inside.Accept()
		if err != nil {
			return
		}
		// Answers only when the other side has said everything.
		said, _ := io.ReadAll(connection)
		_, _ = connection.Write(bytes.ToUpper(said))
		_ = connection.Close()
	}()
	outside, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		forward(ctx, outside, "tcp", inside.Addr().String())
		close(ended)
	}()

	connection, err := net.Dial("tcp", outside.Addr().String())
	require.NoError(t, err)
	_, err = io.Copy(connection, strings.NewReader("hello"))
	require.NoError(t, err)
	require.NoError(t, connection.(*net.TCPConn).CloseWrite())
	answer, err := io.ReadAll(connection)
	require.NoError(t, err)
	require.Equal(t, "HELLO", string(answer))
	cancel()
	<-ended
}

func TestForwardClosesWhenNobodyIsInside(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	outside, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go forward(ctx, outside, "tcp", closed.Addr().String())
	connection, err := net.Dial("tcp", outside.Addr().String())
	require.NoError(t, err)
	answer, _ := io.ReadAll(connection)
	require.Empty(t, answer)
}

func TestProgramsOfTheCacheAreSeenInside(t *testing.T) {
	inside, err := insidePath("/home/somebody/cache", "/home/somebody/cache/components/etcd/v3/etcd")
	require.NoError(t, err)
	require.Equal(t, "/lab/cache/components/etcd/v3/etcd", inside)
	_, err = insidePath("/home/somebody/cache", "/home/somebody/other/etcd")
	require.ErrorContains(t, err, "XDG_CACHE_HOME")
}

func TestForwardReachesUnixSockets(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "inside.sock")
	inside, err := net.Listen("unix", socket)
	require.NoError(t, err)
	defer func() { _ = inside.Close() }()
	go func() {
		if connection, err := inside.Accept(); err == nil {
			_, _ = connection.Write([]byte("hello"))
			_ = connection.Close()
		}
	}()
	outside, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go forward(ctx, outside, "unix", socket)
	connection, err := net.Dial("tcp", outside.Addr().String())
	require.NoError(t, err)
	answer, err := io.ReadAll(connection)
	require.NoError(t, err)
	require.Equal(t, "hello", string(answer))
}
