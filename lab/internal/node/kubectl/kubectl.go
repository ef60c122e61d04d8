// Package kubectl runs kubectl and other programs to their end.
package kubectl

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Client is a kubectl that talks to one cluster as its administrator. It reads and writes nothing of the user's own ~/.kube.
type Client struct {
	// Program is the path of kubectl.
	Program string
	// Kubeconfig names the cluster and the user.
	Kubeconfig string
	// Cache is the folder for what kubectl remembers of the cluster.
	Cache string
}

// Run executes one command and returns what it prints.
func (c Client) Run(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, c.Program, c.Arguments(args...)...)
	cmd.Env = c.Environment()
	cmd.Stdin = stdin
	return Output(cmd)
}

// Arguments puts those that choose the cluster in front of args.
func (c Client) Arguments(args ...string) []string {
	return append([]string{"--kubeconfig=" + c.Kubeconfig, "--cache-dir=" + c.Cache}, args...)
}

// Environment is what kubectl gets to see of the caller's.
func (c Client) Environment() []string { return append(os.Environ(), "KUBERC=off") }

// Output runs a command to its end. The error holds the command's last words.
func Output(cmd *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		said := strings.TrimSpace(stderr.String())
		return "", fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, said[strings.LastIndexByte(said, '\n')+1:])
	}
	return stdout.String(), nil
}
