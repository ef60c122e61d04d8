package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The folders in which the kubelet counts memory nodes with their processors, and processors alone.
const (
	sysNodes = "/sys/devices/system/node"
	sysCPUs  = "/sys/devices/system/cpu"
)

// showCPUs makes the kubelet find a number of processors, whatever the machine has, by covering the
// part of /sys where it counts them. Containers get a /sys of their own and the kernel's scheduler
// is not involved: the processors are merely promised more often than they exist.
//
// The processors come without a place in cores and memory nodes. Were they given one, the kubelet
// would pin the Pods' cgroup to processors that do not exist.
func showCPUs(count int) error {
	const tree = "/run/lab-cpus"
	if err := writeCPUTree(tree, count); err != nil {
		return err
	}
	if err := bind(filepath.Join(tree, "cpus"), sysCPUs, unix.MS_RDONLY); err != nil {
		return err
	}
	if _, err := os.Stat(sysNodes); errors.Is(err, os.ErrNotExist) {
		return nil // a kernel without memory nodes
	}
	return bind(filepath.Join(tree, "nodes"), sysNodes, unix.MS_RDONLY)
}

// writeCPUTree writes the folders that count, and no more of what sysfs has.
func writeCPUTree(tree string, count int) error {
	if err := os.MkdirAll(filepath.Join(tree, "nodes"), 0o755); err != nil {
		return err
	}
	for cpu := range count {
		if err := os.MkdirAll(filepath.Join(tree, "cpus", fmt.Sprintf("cpu%d", cpu)), 0o755); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(tree, "cpus", "online"), fmt.Appendf(nil, "0-%d\n", count-1), 0o444)
}
