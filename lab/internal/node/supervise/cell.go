package supervise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/example-org/subrelay-operator/lab/internal/node/process"
	"github.com/example-org/subrelay-operator/lab/internal/node/sandbox"
)

// CellVerb is the hidden command in which a cell starts.
const CellVerb = "cell"

// cellAPISocket is where the inside of a cell finds APISocket.
const cellAPISocket = "/api.sock"

// cell is a small place of its own for one program on the host: it sees the files that it is shown and reaches the
// lab's API server, at the usual address, and nothing else.
type cell struct {
	// Root is an empty folder, or none.
	Root string `json:"root"`
	// Shown maps paths inside of the cell to files and folders of the host.
	Shown map[string]string `json:"shown"`
	// APISocket leads to the API server, which the program finds on loopback at APIPort.
	APISocket string `json:"apiSocket"`
	APIPort   int    `json:"apiPort"`
	// Command is the program, by its path inside, and its arguments.
	Command []string `json:"command"`
}

// confine returns how to run a program in the cell. The program's path is that inside.
func (c cell) confine(spec process.Spec) (process.Spec, error) {
	c.Command = append([]string{spec.Path}, spec.Args...)
	encoded, err := json.Marshal(c)
	if err != nil {
		return process.Spec{}, fmt.Errorf("describe the cell of %s: %w", spec.Name, err)
	}
	spec.Path, spec.Args = "/proc/self/exe", []string{CellVerb, string(encoded)}
	spec.Namespaces = sandbox.CellNamespaces
	return spec, nil
}

// RunCell is a cell's first process: when it ends the kernel ends all others. encoded is what confine made.
func RunCell(ctx context.Context, encoded string) error {
	var c cell
	if err := json.Unmarshal([]byte(encoded), &c); err != nil {
		return fmt.Errorf("understand the cell: %w", err)
	}
	shown := maps.Clone(c.Shown)
	shown[cellAPISocket] = c.APISocket
	if err := sandbox.EnterCell(c.Root, shown); err != nil {
		return fmt.Errorf("make a cell for %s: %w", filepath.Base(c.Command[0]), err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(c.APIPort)))
	if err != nil {
		return fmt.Errorf("listen for the API server's clients: %w", err)
	}
	go forward(ctx, listener, "unix", cellAPISocket)

	program := exec.CommandContext(ctx, c.Command[0], c.Command[1:]...)
	program.Stdin, program.Stdout, program.Stderr = os.Stdin, os.Stdout, os.Stderr
	program.Cancel = func() error { return program.Process.Signal(syscall.SIGTERM) }
	if err := program.Run(); err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("%s: %w", c.Command[0], err)
	}
	return nil
}
