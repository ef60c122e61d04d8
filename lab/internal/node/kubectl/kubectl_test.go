package kubectl

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOutputTellsACommandsLastWords(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "/bin/cat")
	cmd.Stdin = strings.NewReader("in")
	output, err := Output(cmd)
	require.NoError(t, err)
	require.Equal(t, "in", output)
	_, err = Output(exec.CommandContext(t.Context(), "/bin/sh", "-c", "echo first >&2; echo last >&2; exit 3"))
	require.EqualError(t, err, "sh: exit status 3: last")
}

func TestClientChoosesTheClusterAndLeavesTheUsersSettingsAlone(t *testing.T) {
	program := filepath.Join(t.TempDir(), "kubectl")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho $KUBERC \"$@\"\n"), 0o755))
	client := Client{Program: program, Kubeconfig: "/lab/kubeconfig", Cache: "/lab/cache"}
	output, err := client.Run(t.Context(), nil, "get", "pods")
	require.NoError(t, err)
	require.Equal(t, "off --kubeconfig=/lab/kubeconfig --cache-dir=/lab/cache get pods\n", output)
}
