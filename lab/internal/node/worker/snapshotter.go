package worker

import (
	"log"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ChooseSnapshotter returns how containerd can stack image layers on the disk that holds folder:
// with an overlay file system where that works, else by copying, which needs more time and space.
func ChooseSnapshotter(folder string) string {
	if err := tryOverlay(folder); err != nil {
		log.Printf("image layers are copied, for an overlay file system does not work in the state folder: %v", err)
		return "native"
	}
	return "overlayfs"
}

func tryOverlay(folder string) error {
	trial, err := os.MkdirTemp(folder, "overlay-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(trial) }()
	in := func(name string) string { return filepath.Join(trial, name) }
	for _, name := range []string{"lower", "upper", "work", "merged"} {
		if err := os.Mkdir(in(name), 0o755); err != nil {
			return err
		}
	}
	options := "lowerdir=" + in("lower") + ",upperdir=" + in("upper") + ",workdir=" + in("work")
	if err := unix.Mount("overlay", in("merged"), "overlay", 0, options); err != nil {
		return &os.PathError{Op: "mount", Path: in("merged"), Err: err}
	}
	defer func() { _ = unix.Unmount(in("merged"), unix.MNT_DETACH) }()
	return os.WriteFile(filepath.Join(in("merged"), "written"), nil, 0o600)
}
