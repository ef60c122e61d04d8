package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Settings below /proc/sys that belong to the whole kernel and so to the host.
var hostSettings = []string{"kernel", "vm", "fs"}

// Settings among them that the kubelet insists on changing.
var kubeletSettings = []string{
	"kernel/keys/root_maxbytes",
	"kernel/keys/root_maxkeys",
	"kernel/panic",
	"kernel/panic_on_oops",
	"vm/overcommit_memory",
	"vm/panic_on_oom",
}

// mountProc mounts the PID namespace's own /proc at target. The host's settings in it are
// read-only; the kubelet gets copies of those that it changes, in the folder copies.
func mountProc(target, copies string) error {
	if err := mountNew("proc", target, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return err
	}
	for _, name := range hostSettings {
		path := filepath.Join(target, "sys", name)
		if err := bind(path, path, unix.MS_RDONLY); err != nil {
			return err
		}
	}
	if err := os.Mkdir(copies, 0o755); err != nil {
		return err
	}
	for _, name := range kubeletSettings {
		original := filepath.Join(target, "sys", name)
		value, err := os.ReadFile(original)
		if errors.Is(err, os.ErrNotExist) {
			continue // a kernel without keyrings, for example
		}
		if err != nil {
			return err
		}
		private := filepath.Join(copies, strings.ReplaceAll(name, "/", "."))
		if err := os.WriteFile(private, value, 0o644); err != nil {
			return err
		}
		if err := bindMounted(private, original); err != nil {
			return err
		}
	}
	return nil
}
