//go:build lab

// Package endtoend runs the lab command for real: as root, on this machine, with real Pods.
package endtoend

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/example-org/subrelay-operator/lab/internal/hostpkg"
	"github.com/example-org/subrelay-operator/lab/internal/progress"
)

const (
	// Enough for a cold build of everything, which the first test may cause.
	upPatience = 40 * time.Minute
	// Enough for anything inside a running lab, on a busy machine.
	patience = 2 * time.Minute
	interval = 200 * time.Millisecond
)

// binary is the lab command under test.
var binary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		if os.Geteuid() != 0 {
			fmt.Fprintln(os.Stderr, "these tests start containers: run them as root")
			return 1
		}
		// hostState calls some of them before the first lab would install them.
		if err := hostpkg.Ensure(context.Background(), hostpkg.Node(), progress.Discard); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		folder, err := os.MkdirTemp("", "lab-under-test-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(folder) }()
		// Another user has to reach it as well.
		if err := os.Chmod(folder, 0o755); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		binary = filepath.Join(folder, "lab")
		build := exec.Command("go", "build", "-o", binary, "github.com/example-org/subrelay-operator/lab")
		if output, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v\n%s", err, output)
			return 1
		}
		return m.Run()
	}())
}

// lab is one lab under test, with a state folder of its own.
type lab struct {
	t     *testing.T
	name  string
	state string
	env   []string
}

// newLab returns a lab that is not started, and takes it down when the test ends.
func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{
		t: t,
		// The name marks the lab's processes, mounts and cgroups as this test's.
		name:  "test-" + strconv.FormatInt(time.Now().UnixNano(), 36),
		state: t.TempDir(),
	}
	l.env = append(os.Environ(), "XDG_STATE_HOME="+l.state, "KUBEBUILDER_ASSETS=")
	t.Cleanup(func() {
		if t.Failed() {
			l.showLogs()
		}
		l.must("down")
	})
	return l
}

// in returns the same lab for a part of the test.
func (l *lab) in(t *testing.T) *lab {
	part := *l
	part.t = t
	return &part
}

func (l *lab) command(verb string, args ...string) *exec.Cmd {
	cmd := exec.Command(binary, append([]string{verb, "--name", l.name}, args...)...)
	cmd.Env = l.env
	return cmd
}

// try runs the lab command and returns what it prints.
func (l *lab) try(verb string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := l.command(verb, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("lab %s %s: %w\n%s", verb, strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), nil
}

func (l *lab) must(verb string, args ...string) string {
	l.t.Helper()
	output, err := l.try(verb, args...)
	require.NoError(l.t, err)
	return output
}

// mustRun runs a command of the lab that concerns no lab in particular.
func (l *lab) mustRun(args ...string) string {
	l.t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Env = l.env
	output, err := cmd.Output()
	require.NoError(l.t, err)
	return string(output)
}

func (l *lab) kubectl(args ...string) string {
	l.t.Helper()
	return l.must("kubectl", append([]string{"--"}, args...)...)
}

func (l *lab) tryKubectl(args ...string) error {
	_, err := l.try("kubectl", append([]string{"--"}, args...)...)
	return err
}

// apply creates or changes objects.
func (l *lab) apply(objects string) {
	l.t.Helper()
	file := filepath.Join(l.t.TempDir(), "objects.yaml")
	require.NoError(l.t, os.WriteFile(file, []byte(objects), 0o600))
	l.kubectl("apply", "--filename="+file)
}

// eventually waits until check returns no error.
func (l *lab) eventually(check func() error) {
	l.t.Helper()
	require.EventuallyWithT(l.t, func(c *assert.CollectT) { require.NoError(c, check()) }, patience, interval)
}

// path returns a path in the lab's state folder.
func (l *lab) path(elem ...string) string {
	return filepath.Join(append([]string{l.state, "subrelay-lab", l.name}, elem...)...)
}

// supervisor returns the process whose death ends the lab.
func (l *lab) supervisor() int {
	l.t.Helper()
	data, err := os.ReadFile(l.path("supervisor.json"))
	require.NoError(l.t, err)
	var supervisor struct{ PID int }
	require.NoError(l.t, json.Unmarshal(data, &supervisor))
	require.NotZero(l.t, supervisor.PID)
	return supervisor.PID
}

// process returns the lab's process that runs a program, 0 if there is none.
func (l *lab) process(program string) int {
	l.t.Helper()
	for _, pid := range l.processes() {
		if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil && strings.TrimSpace(string(name)) == program {
			return pid
		}
	}
	return 0
}

// processes returns the lab's processes: those in its cgroups and those whose command line names it.
func (l *lab) processes() []int {
	l.t.Helper()
	entries, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(l.t, err)
	var found []int
	for _, entry := range entries {
		groups, _ := os.ReadFile(filepath.Join(entry, "cgroup"))
		arguments, _ := os.ReadFile(filepath.Join(entry, "cmdline"))
		if !bytes.Contains(append(groups, arguments...), []byte(l.name)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(entry))
		require.NoError(l.t, err)
		found = append(found, pid)
	}
	return found
}

// requireGone fails if anything of the lab is left on the host.
func (l *lab) requireGone() {
	l.t.Helper()
	// The last trace of a process vanishes when the host's init process has taken note of its end.
	l.eventually(func() error {
		if left := l.processes(); len(left) > 0 {
			return fmt.Errorf("processes %v are left", left)
		}
		return nil
	})
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(l.t, err)
	require.NotContains(l.t, string(mounts), l.name, "mounts")
	cgroups, err := filepath.Glob("/sys/fs/cgroup/*/*" + l.name + "*")
	require.NoError(l.t, err)
	unified, err := filepath.Glob("/sys/fs/cgroup/*" + l.name + "*")
	require.NoError(l.t, err)
	require.Empty(l.t, append(cgroups, unified...), "cgroups")
	left, err := os.ReadDir(l.state)
	require.NoError(l.t, err)
	require.Empty(l.t, left, "state")
}

// showLogs prints the last lines of the components' logs of a lab that failed its test.
func (l *lab) showLogs() {
	logs, _ := filepath.Glob(l.path("logs", "*.log"))
	for _, log := range logs {
		data, _ := os.ReadFile(log)
		lines := strings.Split(strings.TrimSpace(string(data)), "\n")
		l.t.Logf("%s:\n%s", log, strings.Join(lines[max(0, len(lines)-5):], "\n"))
	}
}

// hostState is what a lab could change of the host by mistake.
func hostState(t *testing.T) map[string]string {
	t.Helper()
	state := map[string]string{}
	for _, command := range []string{"ip -brief link", "ip -brief address", "ip route", "nft list ruleset", "iptables --list-rules"} {
		words := strings.Fields(command)
		output, err := exec.Command(words[0], words[1:]...).Output()
		require.NoError(t, err, command)
		state[command] = string(output)
	}
	for _, setting := range []string{"kernel/panic", "kernel/panic_on_oops", "vm/overcommit_memory", "net/ipv4/ip_forward", "net/bridge/bridge-nf-call-iptables"} {
		value, err := os.ReadFile("/proc/sys/" + setting)
		require.NoError(t, err)
		state[setting] = string(value)
	}
	for _, folder := range []string{"/etc/cni", "/run/containerd", "/var/lib/kubelet", "/var/lib/containerd", "/var/log/pods"} {
		entries, _ := os.ReadDir(folder)
		state[folder] = fmt.Sprint(entries)
	}
	return state
}

// startUp begins `lab up` in the background and returns once the lab's components start.
func (l *lab) startUp(args ...string) *exec.Cmd {
	l.t.Helper()
	up := l.command("up", args...)
	up.Stdout, up.Stderr = io.Discard, io.Discard
	require.NoError(l.t, up.Start())
	require.Eventually(l.t, func() bool {
		_, err := os.Stat(l.path("logs", "kube-apiserver.log"))
		return err == nil
	}, upPatience, 10*time.Millisecond)
	return up
}

func kill(t *testing.T, pid int, signal syscall.Signal) {
	t.Helper()
	require.NoError(t, syscall.Kill(pid, signal))
}
