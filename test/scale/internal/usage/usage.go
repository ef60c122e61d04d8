// Package usage measures what a process of the operator takes from its machine.
package usage

import (
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

// Usage is what a process has taken so far. Memory is in bytes.
type Usage struct {
	// Resident is the memory that it holds now, Peak the most that it ever held; both as the kernel counts, with the program's
	// own code.
	Resident, Peak uint64
	// LiveHeap is what was in use when the process last collected garbage.
	LiveHeap uint64
	CPU      time.Duration
}

// OfProcess reads a process of this machine from the kernel. LiveHeap, which the kernel does not know, stays 0.
func OfProcess(pid int) (Usage, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return Usage{}, fmt.Errorf("find process %d: %w", pid, err)
	}
	status, err := process.NewStatus()
	if err != nil {
		return Usage{}, fmt.Errorf("read the status of process %d: %w", pid, err)
	}
	stat, err := process.Stat()
	if err != nil {
		return Usage{}, fmt.Errorf("read the times of process %d: %w", pid, err)
	}
	return Usage{
		Resident: status.VmRSS, Peak: status.VmHWM,
		CPU: time.Duration(stat.CPUTime() * float64(time.Second)),
	}, nil
}
