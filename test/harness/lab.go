package harness

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Lab is a cluster of the project's own command.
type Lab struct {
	command string
	name    string
}

// NewLab finds the lab command. The lab itself need not exist yet.
func NewLab(name string) (*Lab, error) {
	command, err := Program("LAB", "lab")
	if err != nil {
		return nil, err
	}
	return &Lab{command: command, name: name}, nil
}

// Program returns the absolute path of a program of the project: what the environment variable says, or bin/NAME seen
// from a folder of tests.
func Program(variable, name string) (string, error) {
	path := os.Getenv(variable)
	if path == "" {
		path = filepath.Join("../../bin", name)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find the program %s: %w", name, err)
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w: build it with `make build lab`, or set %s to the program", err, variable)
	}
	return path, nil
}

// Up starts the lab and returns when it is ready. Progress goes to standard error.
func (l *Lab) Up(ctx context.Context, flags ...string) error {
	cmd := l.cmd(ctx, "up", flags...)
	cmd.Stderr = os.Stderr
	// An interrupted start takes down what it has started.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	_, err := output(cmd)
	return err
}

// StartGateway runs Envoy Gateway's controller beside the cluster and returns when it judges objects.
func (l *Lab) StartGateway(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, l.command, "gateway", "up", "--name", l.name)
	cmd.Stderr = os.Stderr
	_, err := output(cmd)
	return err
}

// StartControlPlane brings up a control plane without a node and installs the operator.
func (l *Lab) StartControlPlane(ctx context.Context) error {
	if err := l.Up(ctx, "--control-plane-only"); err != nil {
		return err
	}
	return l.Install(ctx)
}

// Install does what a user does to install the operator.
func (l *Lab) Install(ctx context.Context) error {
	for _, args := range [][]string{
		{"apply", "--server-side", "-k", "../../deploy/operator"},
		{"wait", "--for=condition=Established", "--timeout=30s", "crd/" + SubPoolCRD},
	} {
		if _, err := l.Kubectl(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// PID returns the process id of a component, as `lab status` tells it.
func (l *Lab) PID(ctx context.Context, component string) (int, error) {
	table, err := output(l.cmd(ctx, "status"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(table) {
		const columns = 4 // component, state, for how long, process id
		if row := strings.Fields(line); len(row) >= columns && row[0] == component {
			return strconv.Atoi(row[columns-1])
		}
	}
	return 0, fmt.Errorf("the lab does not run a %s:\n%s", component, table)
}

// Down takes the lab down. It is also right after an interrupt, so it takes no context.
func (l *Lab) Down() error {
	cmd := l.cmd(context.Background(), "down")
	cmd.Stderr = os.Stderr
	_, err := output(cmd)
	return err
}

// Load takes image archives into the node.
func (l *Lab) Load(ctx context.Context, archives ...string) error {
	_, err := output(l.cmd(ctx, "load", archives...))
	return err
}

// MakeImage makes an image archive; the flags are those of `lab image`.
func (l *Lab) MakeImage(ctx context.Context, flags ...string) error {
	_, err := output(exec.CommandContext(ctx, l.command, append([]string{"image"}, flags...)...))
	return err
}

// Kubeconfig returns the path of the administrator's kubeconfig.
func (l *Lab) Kubeconfig(ctx context.Context) (string, error) {
	return output(l.cmd(ctx, "kubeconfig"))
}

// KubectlCommand is a call of kubectl on this lab that has not started yet.
func (l *Lab) KubectlCommand(ctx context.Context, args ...string) *exec.Cmd {
	return l.cmd(ctx, "kubectl", append([]string{"--"}, args...)...)
}

// Kubectl calls kubectl and returns its trimmed standard output. The error has its standard error.
func (l *Lab) Kubectl(ctx context.Context, args ...string) (string, error) {
	return output(l.KubectlCommand(ctx, args...))
}

func (l *Lab) cmd(ctx context.Context, verb string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, l.command, append([]string{verb, "--name", l.name}, args...)...)
}

// output runs a command and returns its trimmed standard output. Unless standard error goes somewhere else, it becomes
// part of the error.
func output(cmd *exec.Cmd) (string, error) {
	var complaint bytes.Buffer
	if cmd.Stderr == nil {
		cmd.Stderr = &complaint
	}
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args[1:], " "), err, bytes.TrimSpace(complaint.Bytes()))
	}
	return strings.TrimSpace(string(out)), nil
}
