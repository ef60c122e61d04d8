package peers

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func TestProcess(t *testing.T) {
	p, err := startProcess("sleep", filepath.Join(t.TempDir(), "log"), "infinity")
	require.NoError(t, err)
	require.NoError(t, p.ended())
	require.NoError(t, p.stop())
	require.ErrorContains(t, p.ended(), "sleep has ended")
	require.NoError(t, p.stop(), "a second time")
}

func TestProcessThatFails(t *testing.T) {
	p, err := startProcess("sh", filepath.Join(t.TempDir(), "log"), "-c", "echo no such cluster >&2; exit 3")
	require.NoError(t, err)
	<-p.exited
	require.ErrorContains(t, p.ended(), "exit status 3")
	assert.Contains(t, p.logTail(), "no such cluster")
	require.NoError(t, p.stop())
}

func TestFolder(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	want := &rest.Config{Host: "https://127.0.0.1:1", TLSClientConfig: rest.TLSClientConfig{
		CAData: []byte("authority"), CertData: []byte("certificate"), KeyData: []byte("key"),
	}}
	made, err := makeFolder(want)
	require.NoError(t, err)
	file, err := os.Stat(made.kubeconfig())
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), file.Mode(), "who may read the administrator's key")
	got, err := clientcmd.BuildConfigFromFlags("", made.kubeconfig())
	require.NoError(t, err)
	assert.Equal(t, want.Host, got.Host)
	assert.Equal(t, want.TLSClientConfig, got.TLSClientConfig)
	require.NoError(t, made.remove())
	assert.NoDirExists(t, string(made))
	require.NoError(t, folder("").remove(), "nothing was made")
}

// What has not been started can be stopped, and says what the benchmark asks of it.
func TestStopBeforeStart(t *testing.T) {
	names := map[string]bool{}
	for _, peer := range All() {
		names[peer.Name()] = true
		assert.Empty(t, peer.Processes())
		assert.NotEmpty(t, peer.UserAgents())
		require.NoError(t, peer.Stop())
	}
	assert.Len(t, names, 3)
}
