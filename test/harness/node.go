package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/types"
)

// Restart ends a component of the lab, which starts again at once.
func (l *Lab) Restart(ctx context.Context, component string) error {
	_, err := output(l.cmd(ctx, "restart", component))
	return err
}

// Process is one of this machine's.
type Process struct {
	PID int
	// Command is the base name of the program, which the kernel cuts after 15 bytes.
	Command string
	parent  int
}

// Processes returns those that run in the Pods with these UIDs, the ones that hold the Pods' networks included. The lab
// runs on this machine, so they can be seen and signalled from here.
func Processes(pods ...types.UID) ([]Process, error) {
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return nil, err
	}
	var found []Process
	for _, path := range groups {
		content, err := os.ReadFile(path)
		if gone(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("find the processes of a Pod: %w", err)
		}
		for _, pod := range pods {
			if !bytes.Contains(content, []byte(pod)) {
				continue
			}
			process, err := readProcess(filepath.Dir(path))
			if err != nil && !gone(err) {
				return nil, err
			}
			if err == nil {
				found = append(found, process)
			}
		}
	}
	return found, nil
}

// gone tells whether a process ended before it could be read.
func gone(err error) bool { return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) }

func readProcess(folder string) (Process, error) {
	pid, err := strconv.Atoi(filepath.Base(folder))
	if err != nil {
		return Process{}, err
	}
	status, err := os.ReadFile(filepath.Join(folder, "status"))
	if err != nil {
		return Process{}, err
	}
	process := Process{PID: pid}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); name {
		case "Name":
			process.Command = value
		case "PPid":
			if process.parent, err = strconv.Atoi(value); err != nil {
				return Process{}, err
			}
		}
	}
	return process, nil
}

// Shims returns the processes by which containerd commands a Pod.
func Shims(pod types.UID) ([]Process, error) {
	children, err := Processes(pod)
	if err != nil {
		return nil, err
	}
	seen := map[int]bool{}
	var shims []Process
	for _, child := range children {
		parent, err := readProcess(filepath.Join("/proc", strconv.Itoa(child.parent)))
		if err != nil && !gone(err) {
			return nil, err
		}
		if err == nil && strings.HasPrefix(parent.Command, "containerd-shim") && !seen[parent.PID] {
			seen[parent.PID] = true
			shims = append(shims, parent)
		}
	}
	return shims, nil
}

// Signal sends a signal to processes; one that has ended is no error.
func Signal(processes []Process, signal syscall.Signal) error {
	for _, process := range processes {
		if err := syscall.Kill(process.PID, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("send %s to %s (%d): %w", signal, process.Command, process.PID, err)
		}
	}
	return nil
}
