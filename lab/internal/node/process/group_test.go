package process

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func newGroup(t *testing.T) (*Group, string) {
	t.Helper()
	logs := t.TempDir()
	group := NewGroup(logs, []string{"PATH=" + SystemPath, "COLOUR=red"})
	t.Cleanup(func() { stop(group, 0) })
	return group, logs
}

func stop(group *Group, patience time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	group.Stop(ctx)
}

func shell(name, script string) Spec {
	return Spec{Name: name, Path: "/bin/sh", Args: []string{"-c", script}}
}

// await waits until the group's only component has a status that satisfies.
func await(t *testing.T, group *Group, satisfies func(Status) bool) Status {
	t.Helper()
	var status Status
	require.Eventually(t, func() bool {
		status = group.Status()[0]
		return satisfies(status)
	}, 10*time.Second, 5*time.Millisecond)
	return status
}

func running(s Status) bool { return s.State == Running }

func TestComponentsThatEndAreStartedAgain(t *testing.T) {
	group, logs := newGroup(t)
	group.Start(shell("short", "echo $COLOUR; exit 7"))
	status := await(t, group, func(s Status) bool { return s.Restarts >= 2 })
	require.Equal(t, "exit status 7", status.LastExit)
	log, err := os.ReadFile(filepath.Join(logs, "short.log"))
	require.NoError(t, err)
	require.Contains(t, string(log), "red\nlab: short ended: exit status 7\nred\n")
}

func TestAMissingProgramIsToldAndTriedAgain(t *testing.T) {
	group, _ := newGroup(t)
	group.Start(Spec{Name: "missing", Path: "/no/such/program"})
	status := await(t, group, func(s Status) bool { return s.Restarts >= 2 })
	require.Contains(t, status.LastExit, "no such file")
	require.Zero(t, status.PID)
}

func TestRestartStartsAtOnce(t *testing.T) {
	group, _ := newGroup(t)
	group.Start(shell("long", "exec sleep 600"))
	first := await(t, group, running)
	require.NoError(t, group.Restart("long"))
	second := await(t, group, func(s Status) bool { return running(s) && s.PID != first.PID })
	require.Equal(t, 1, second.Restarts)
	require.Equal(t, "signal: terminated", second.LastExit)
	require.ErrorContains(t, group.Restart("other"), "long")
}

func TestStopAsksAndThenKills(t *testing.T) {
	group, logs := newGroup(t)
	group.Start(shell("stubborn", "trap 'echo asked' TERM; echo ready; while :; do sleep 0.01; done"))
	require.Eventually(t, func() bool {
		log, err := os.ReadFile(filepath.Join(logs, "stubborn.log"))
		return err == nil && string(log) == "ready\n"
	}, 10*time.Second, 5*time.Millisecond)
	began := time.Now()
	stop(group, 300*time.Millisecond)
	require.GreaterOrEqual(t, time.Since(began), 300*time.Millisecond)
	status := group.Status()[0]
	require.Equal(t, Stopped, status.State)
	require.Zero(t, status.PID)
	log, err := os.ReadFile(filepath.Join(logs, "stubborn.log"))
	require.NoError(t, err)
	require.Equal(t, "ready\nasked\n", string(log))
}

func TestStopEndsWaitingComponentsToo(t *testing.T) {
	group, _ := newGroup(t)
	group.Start(shell("short", "exit 1"))
	await(t, group, func(s Status) bool { return s.State == Waiting && s.Restarts > 0 })
	stop(group, 10*time.Second)
	require.Equal(t, Stopped, group.Status()[0].State)
}

func TestInheritedFilesStayOpen(t *testing.T) {
	logs := t.TempDir()
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = reader.Close() }()
	group := NewGroup(logs, nil, writer)
	group.Start(shell("heir", "echo inherited >&3; exec sleep 600"))
	defer stop(group, 10*time.Second)
	require.NoError(t, reader.SetReadDeadline(time.Now().Add(10*time.Second)))
	line := make([]byte, len("inherited\n"))
	_, err = reader.Read(line)
	require.NoError(t, err)
	require.Equal(t, "inherited\n", string(line))
	require.NoError(t, writer.Close())
}

func TestARemovedComponentEndsAndIsForgotten(t *testing.T) {
	group, logs := newGroup(t)
	group.Start(shell("steady", "sleep 600"))
	group.Start(shell("stubborn", "trap '' TERM; echo deaf; sleep 600 & while :; do wait; done"))
	require.Eventually(t, func() bool {
		log, err := os.ReadFile(filepath.Join(logs, "stubborn.log"))
		return err == nil && len(log) > 0
	}, 10*time.Second, 5*time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	group.Remove(ctx, "stubborn")
	group.Remove(ctx, "never started")
	require.Len(t, group.Status(), 1)
	require.Equal(t, "steady", group.Status()[0].Name)
}
