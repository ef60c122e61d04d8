package sandbox

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// CellNamespaces are the clone flags of the namespaces that EnterCell expects to be fresh.
const CellNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID

// EnterCell moves the calling process, and all others of its mount namespace, to a root file system that holds nothing
// but what shown names, and to a network that is loopback alone. It needs no root if the process is in a user namespace
// of its own. root is an empty folder, or none; shown maps paths inside to files and folders of the host.
func EnterCell(root string, shown map[string]string) error {
	// Nothing that is mounted from here on may reach the host.
	if err := mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := mountNew("tmpfs", root, 0, "mode=0755"); err != nil {
		return err
	}
	for inside, outside := range shown {
		if err := show(outside, filepath.Join(root, inside)); err != nil {
			return err
		}
	}
	if err := changeRoot(root); err != nil {
		return fmt.Errorf("enter the cell's root file system: %w", err)
	}
	return startLoopback()
}

// show makes a file or folder visible at target, which it creates.
func show(source, target string) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return bind(source, target, 0)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(target, nil, 0o600); err != nil {
		return err
	}
	return bindMounted(source, target)
}
