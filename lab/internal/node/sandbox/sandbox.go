// Package sandbox turns a process's fresh namespaces into the machine that a lab runs on.
//
// The machine has a root file system of its own in which the host's programs are read-only, the
// lab's state folder and a few memory-backed folders are writable and nothing else of the host is
// visible; and a network of its own without a way out. It ends with its last process.
package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Namespaces are the clone flags of the namespaces that Enter expects to be fresh.
const Namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

const (
	// StatePath is where the lab's state folder is seen inside.
	StatePath = "/lab/state"
	// CachePath is where the cache folder is seen inside, read-only.
	CachePath = "/lab/cache"
)

// Config says what the machine gets from the host.
type Config struct {
	// State and Cache are folders on the host.
	State string
	Cache string
	// Hostname of the machine.
	Hostname string
	// CgroupMounts are the host's cgroup hierarchies; the kubelet needs them.
	CgroupMounts []string
	// CPUs is the number of processors that the kubelet is to find.
	CPUs int
}

// Enter prepares the machine and moves the calling process, and all others of its mount
// namespace, into it.
func Enter(cfg Config) error {
	if err := unix.Sethostname([]byte(cfg.Hostname)); err != nil {
		return fmt.Errorf("name the lab's machine: %w", err)
	}
	root := filepath.Join(cfg.State, "root")
	if err := buildRoot(root, cfg); err != nil {
		return fmt.Errorf("prepare the lab's root file system: %w", err)
	}
	if err := changeRoot(root); err != nil {
		return fmt.Errorf("enter the lab's root file system: %w", err)
	}
	if err := showCPUs(cfg.CPUs); err != nil {
		return fmt.Errorf("present %d processors: %w", cfg.CPUs, err)
	}
	if err := startNetwork(); err != nil {
		return fmt.Errorf("prepare the lab's network: %w", err)
	}
	return nil
}

// buildRoot assembles the root file system at root, an empty folder or none.
func buildRoot(root string, cfg Config) error {
	// Nothing that is mounted from here on may reach the host.
	if err := mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := mountNew("tmpfs", root, 0, "mode=0755"); err != nil {
		return err
	}
	in := func(path string) string { return filepath.Join(root, path) }
	if err := shareSystem(root); err != nil {
		return err
	}
	if err := bind(cfg.State, in(StatePath), 0); err != nil {
		return err
	}
	if err := bind(cfg.Cache, in(CachePath), unix.MS_RDONLY); err != nil {
		return err
	}
	// What programs keep in /var is large (images, volumes), so it goes to the state folder's disk.
	variable := filepath.Join(cfg.State, "var")
	for _, folder := range []string{"lib", "log", "tmp"} {
		if err := os.MkdirAll(filepath.Join(variable, folder), 0o755); err != nil {
			return err
		}
	}
	if err := bind(variable, in("/var"), 0); err != nil {
		return err
	}
	if err := os.Symlink("../run", in("/var/run")); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	for path, options := range map[string]string{"/run": "mode=0755", "/tmp": "mode=1777", "/root": "mode=0700"} {
		if err := mountNew("tmpfs", in(path), unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
			return err
		}
	}
	if err := bind("/dev", in("/dev"), 0); err != nil {
		return err
	}
	if err := mountProc(in("/proc"), in("/run/lab-settings")); err != nil {
		return err
	}
	return mountSys(in("/sys"), cfg.CgroupMounts)
}

// shareSystem makes the host's programs, libraries and settings visible, read-only.
func shareSystem(root string) error {
	for _, name := range []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc"} {
		source, target := filepath.Join("/", name), filepath.Join(root, name)
		info, err := os.Lstat(source)
		switch {
		case errors.Is(err, os.ErrNotExist):
			continue
		case err != nil:
			return err
		case info.Mode().Type() == os.ModeSymlink:
			link, err := os.Readlink(source)
			if err != nil {
				return err
			}
			if err := os.Symlink(link, target); err != nil {
				return err
			}
		default:
			if err := bind(source, target, unix.MS_RDONLY); err != nil {
				return err
			}
		}
	}
	return nil
}

// mountSys mounts a read-only /sys that shows the network namespace's devices, and the host's cgroups in it.
func mountSys(target string, cgroups []string) error {
	if err := mountNew("sysfs", target, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY, ""); err != nil {
		return err
	}
	folder := filepath.Join(target, "fs/cgroup")
	if len(cgroups) == 1 {
		return bindMounted(cgroups[0], folder)
	}
	if err := mountNew("tmpfs", folder, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0755"); err != nil {
		return err
	}
	for _, hierarchy := range cgroups {
		if err := bind(hierarchy, filepath.Join(folder, filepath.Base(hierarchy)), 0); err != nil {
			return err
		}
	}
	return nil
}

// changeRoot makes root the root of all processes in the mount namespace and drops the old one.
func changeRoot(root string) error {
	if err := unix.Chdir(root); err != nil {
		return err
	}
	// With the same folder twice the old root ends up mounted over the new one and needs no place of its own.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return err
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	// Volumes that the kubelet mounts must reach containers that are already running.
	return mount("", "/", "", unix.MS_REC|unix.MS_SHARED, "")
}

// bind makes source visible at target, which it creates, including what is mounted below source.
func bind(source, target string, flags uintptr) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	if info.IsDir() {
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
	}
	if err := bindMounted(source, target); err != nil {
		return err
	}
	if flags == 0 {
		return nil
	}
	return mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|flags, "")
}

func bindMounted(source, target string) error {
	return mount(source, target, "", unix.MS_BIND|unix.MS_REC, "")
}

// mountNew mounts a new file system of a kind at target, which it creates.
func mountNew(kind, target string, flags uintptr, options string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	return mount(kind, target, kind, flags, options)
}

func mount(source, target, kind string, flags uintptr, options string) error {
	if err := unix.Mount(source, target, kind, flags, options); err != nil {
		return fmt.Errorf("mount %s: %w", target, err)
	}
	return nil
}
