// Package preflight finds out before anything is built or started whether this machine can run a lab.
package preflight

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	gibibyte = 1 << 30
	// A cold build needs about 8 GiB for the Go build cache and the programs.
	diskToBuild = 10 * gibibyte
	// Images, volumes and logs of a running lab.
	diskToRun = 3 * gibibyte
	// A lab with a pool in it was measured below 2 GiB; the rest is for the linker and the page cache.
	memory = 4 * gibibyte
)

// Needs says what the lab to be started asks of the machine.
type Needs struct {
	// FullNode says that Pods will run.
	FullNode bool
	// Build says that programs are missing from the cache.
	Build bool
	// Cache and State are the folders that will be written to; they may not exist yet.
	Cache string
	State string
}

// Check returns everything that is missing as one error, a line for each.
func Check(needs Needs) error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("the lab runs on Linux only, this is %s: use a Linux machine or virtual machine", runtime.GOOS)
	}
	problems := []error{checkDisk("state", needs.State, diskToRun)}
	if needs.Build {
		problems = append(problems, checkDisk("cache", needs.Cache, diskToBuild))
	}
	if needs.FullNode {
		problems = append(problems, checkRoot(), checkMemory(), checkNamespaces())
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("this machine cannot run the lab:\n%w", err)
	}
	return nil
}

func checkRoot() error {
	if os.Geteuid() == 0 {
		return nil
	}
	return errors.New("- a lab with a node needs root: run it with sudo, or use --control-plane-only")
}

func checkDisk(use, folder string, want uint64) error {
	existing := folder
	for {
		var disk unix.Statfs_t
		err := unix.Statfs(existing, &disk)
		if errors.Is(err, fs.ErrNotExist) && existing != filepath.Dir(existing) {
			existing = filepath.Dir(existing)
			continue
		}
		if err != nil {
			return fmt.Errorf("- free space for the %s folder %s cannot be determined: %w", use, folder, err)
		}
		free := disk.Bavail * uint64(disk.Bsize)
		if free >= want {
			return nil
		}
		return fmt.Errorf("- the disk of the %s folder %s has %s free, the lab needs %s: free some or choose another folder",
			use, folder, inGibibytes(free), inGibibytes(want))
	}
}

func checkMemory() error {
	file, err := os.Open("/proc/meminfo")
	if err != nil {
		return fmt.Errorf("- the machine's memory cannot be determined: %w", err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		// MemTotal:       24684084 kB
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 || fields[0] != "MemTotal:" {
			continue
		}
		kibibytes, err := strconv.ParseUint(fields[1], 10, 64)
		if err != nil {
			return fmt.Errorf("- the machine's memory cannot be determined: %w", err)
		}
		// A machine sold with 4 GiB shows a little less: the kernel keeps some for itself.
		if total := kibibytes * 1024; total < memory/10*9 {
			return fmt.Errorf("- the machine has %s of memory, the lab needs %s", inGibibytes(total), inGibibytes(memory))
		}
		return nil
	}
	return errors.New("- the machine's memory cannot be determined: /proc/meminfo has no MemTotal")
}

func checkNamespaces() error {
	var missing []string
	for _, kind := range []string{"ipc", "mnt", "net", "pid", "uts"} {
		if _, err := os.Stat("/proc/self/ns/" + kind); err != nil {
			missing = append(missing, kind)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("- the kernel lacks namespaces of the kinds %s: use one that has them", strings.Join(missing, ", "))
	}
	return nil
}

func inGibibytes(bytes uint64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/gibibyte) }
