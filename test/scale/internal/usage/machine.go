package usage

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/prometheus/procfs"
)

// Machine is where something was measured.
type Machine struct {
	Cores  int
	CPU    string
	Memory uint64 // in bytes
	Kernel string
	Go     string
}

// DescribeMachine describes this one, and the Go toolchain that built this program.
func DescribeMachine() (Machine, error) {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return Machine{}, fmt.Errorf("describe this machine: %w", err)
	}
	cores, err := proc.CPUInfo()
	if err != nil {
		return Machine{}, fmt.Errorf("describe this machine: %w", err)
	}
	memory, err := proc.Meminfo()
	if err != nil {
		return Machine{}, fmt.Errorf("describe this machine: %w", err)
	}
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return Machine{}, fmt.Errorf("describe this machine: %w", err)
	}
	return Machine{
		Cores: len(cores), CPU: cores[0].ModelName, Memory: *memory.MemTotalBytes,
		Kernel: strings.TrimSpace(string(kernel)), Go: runtime.Version(),
	}, nil
}

// String is the machine as a report names it.
func (m Machine) String() string {
	return fmt.Sprintf("%d cores (%s) with %.0f GiB of memory, Linux %s, %s", m.Cores, m.CPU, float64(m.Memory)/(1<<30), m.Kernel, m.Go)
}
