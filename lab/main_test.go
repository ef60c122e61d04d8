package main

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/example-org/subrelay-operator/lab/internal/node/control"
	"github.com/example-org/subrelay-operator/lab/internal/node/process"
	"github.com/example-org/subrelay-operator/lab/internal/node/state"
)

func TestStatusIsWellOnlyWhenEverythingIs(t *testing.T) {
	good := func() control.Status {
		return control.Status{
			Ready:      true,
			Node:       &control.Node{Name: "lab-node", Ready: true},
			Components: []process.Status{{Name: "etcd", State: process.Running, PID: 17, Since: time.Now()}},
		}
	}
	for name, test := range map[string]struct {
		change func(*control.Status)
		well   bool
		shows  string
	}{
		"good":           {func(*control.Status) {}, true, "lab-node: Ready"},
		"no node":        {func(s *control.Status) { s.Node = nil }, true, "ready"},
		"starting":       {func(s *control.Status) { s.Ready = false }, false, "starting"},
		"failed":         {func(s *control.Status) { s.Ready, s.Failure = false, "node: broken" }, false, "node: broken"},
		"node not ready": {func(s *control.Status) { s.Node = &control.Node{Name: "n", Message: "silent"} }, false, "not Ready: silent"},
		"component down": {func(s *control.Status) { s.Components[0].State = process.Waiting }, false, "waiting to restart"},
	} {
		t.Run(name, func(t *testing.T) {
			status := good()
			test.change(&status)
			var out bytes.Buffer
			well, err := printStatus(&out, state.At("one", "/state/one"), state.Record{Mode: state.FullNode, Port: 1234}, status)
			require.NoError(t, err)
			require.Equal(t, test.well, well)
			require.Contains(t, out.String(), test.shows)
			require.Contains(t, out.String(), "https://127.0.0.1:1234")
		})
	}
}

func TestLogsAreFoundByComponent(t *testing.T) {
	folder := state.At("one", t.TempDir())
	_, err := findLog(folder, "etcd")
	require.ErrorContains(t, err, "lab up --name one")
	require.NoError(t, os.Mkdir(folder.Logs(), 0o700))
	require.NoError(t, os.WriteFile(folder.Log("etcd"), nil, 0o600))
	path, err := findLog(folder, "etcd")
	require.NoError(t, err)
	require.Equal(t, folder.Log("etcd"), path)
	_, err = findLog(folder, "../etcd")
	require.ErrorContains(t, err, "these have: etcd")
}

func TestBadNamesAreRefusedByEveryCommand(t *testing.T) {
	for _, verb := range []string{"up", "down", "status", "kubeconfig", "kubectl", "logs", "load", "restart"} {
		command := newRootCommand()
		command.SetArgs([]string{verb, "--name", "../x", "argument"})
		if verb == "up" || verb == "down" || verb == "status" || verb == "kubeconfig" {
			command.SetArgs([]string{verb, "--name", "../x"})
		}
		require.ErrorContains(t, command.Execute(), "is not usable", verb)
	}
}

func TestLayoutsAreCheckedFirst(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	command := newRootCommand()
	command.SetArgs([]string{"gateway", "up", "--layout", "elsewhere"})
	require.ErrorContains(t, command.Execute(), "there are controller-namespace")
	command = newRootCommand()
	command.SetArgs([]string{"gateway", "up"})
	require.ErrorContains(t, command.Execute(), "lab up --name default")
}
