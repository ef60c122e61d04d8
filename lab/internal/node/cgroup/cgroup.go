// Package cgroup keeps one lab's processes in a cgroup tree of its own, in every mounted hierarchy.
//
// Both versions work: with version 1 each hierarchy gets the same tree, with version 2 there is one
// hierarchy and its controllers are handed down.
package cgroup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/example-org/subrelay-operator/lab/internal/node/poll"
)

// Processes and Pods sit in sub-trees of the lab's tree: in version 2 a cgroup that hands
// controllers down may hold no process itself.
const systemCgroup = "system"

// Hierarchy is one mounted cgroup hierarchy.
type Hierarchy struct {
	// Mount is where its root is visible.
	Mount string
	// Unified says that it is version 2.
	Unified bool
}

// Tree is the cgroup tree of one lab.
type Tree struct {
	hierarchies []Hierarchy
	path        string
}

// ForLab returns the tree of the lab that id tells from all others. Nothing is created yet.
func ForLab(id string) (Tree, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return Tree{}, fmt.Errorf("look for cgroup hierarchies: %w", err)
	}
	defer func() { _ = file.Close() }()
	hierarchies, err := parseMounts(file)
	if err != nil {
		return Tree{}, fmt.Errorf("look for cgroup hierarchies: %w", err)
	}
	if len(hierarchies) == 0 {
		return Tree{}, errors.New("no cgroup hierarchy is mounted: mount cgroup2 at /sys/fs/cgroup")
	}
	return Tree{hierarchies: hierarchies, path: "/subrelay-lab-" + id}, nil
}

// parseMounts reads proc(5) mountinfo. Of hierarchies mounted several times the first mount counts.
func parseMounts(mountinfo io.Reader) ([]Hierarchy, error) {
	var found []Hierarchy
	var devices []string
	lines := bufio.NewScanner(mountinfo)
	for lines.Scan() {
		before, after, ok := strings.Cut(lines.Text(), " - ")
		mount, super := strings.Fields(before), strings.Fields(after)
		if !ok || len(mount) < 5 || len(super) < 1 {
			return nil, fmt.Errorf("unexpected line %q", lines.Text())
		}
		device, point, kind := mount[2], mount[4], super[0]
		if (kind != "cgroup" && kind != "cgroup2") || slices.Contains(devices, device) {
			continue
		}
		devices = append(devices, device)
		found = append(found, Hierarchy{Mount: point, Unified: kind == "cgroup2"})
	}
	return found, lines.Err()
}

// Path is the tree's path below the root of each hierarchy.
func (t Tree) Path() string { return t.path }

// Mounts returns where the hierarchies are mounted.
func (t Tree) Mounts() []string {
	mounts := make([]string, 0, len(t.hierarchies))
	for _, hierarchy := range t.hierarchies {
		mounts = append(mounts, hierarchy.Mount)
	}
	return mounts
}

// Join creates the tree and moves the calling process into it. Its children start there.
func (t Tree) Join() error {
	for _, hierarchy := range t.hierarchies {
		if err := hierarchy.join(t.path); err != nil {
			return fmt.Errorf("join the lab's cgroup in %s: %w", hierarchy.Mount, err)
		}
	}
	return nil
}

func (h Hierarchy) join(path string) error {
	lab := filepath.Join(h.Mount, path)
	system := filepath.Join(lab, systemCgroup)
	if err := os.MkdirAll(system, 0o755); err != nil {
		return err
	}
	if h.Unified {
		if err := handDownControllers(h.Mount, lab); err != nil {
			return err
		}
	} else if err := inheritCPUSet(h.Mount, lab, system); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(system, "cgroup.procs"), []byte("0"), 0)
}

// handDownControllers makes the controllers that the root has available in the lab's tree.
func handDownControllers(root, lab string) error {
	data, err := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for controller := range strings.FieldsSeq(string(data)) {
		for _, folder := range []string{root, lab} {
			control := filepath.Join(folder, "cgroup.subtree_control")
			if err := os.WriteFile(control, []byte("+"+controller), 0); err != nil {
				return fmt.Errorf("hand down controller %s: %w", controller, err)
			}
		}
	}
	return nil
}

// inheritCPUSet copies the parent's CPUs and memory nodes: a version 1 cpuset is born empty and
// accepts no process until it has both.
func inheritCPUSet(root, lab, system string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(root, file))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, folder := range []string{lab, system} {
			if err := os.WriteFile(filepath.Join(folder, file), value, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// Exists reports whether any part of the tree exists.
func (t Tree) Exists() bool {
	for _, hierarchy := range t.hierarchies {
		if _, err := os.Stat(filepath.Join(hierarchy.Mount, t.path)); err == nil {
			return true
		}
	}
	return false
}

// Remove deletes the tree once its processes have ended, which it awaits for at most patience.
func (t Tree) Remove(ctx context.Context, patience time.Duration) error {
	for _, hierarchy := range t.hierarchies {
		root := filepath.Join(hierarchy.Mount, t.path)
		err := poll.Until(ctx, patience, func(context.Context) error { return removeTree(root) })
		if err != nil {
			return fmt.Errorf("remove the lab's cgroup: %w; `find %s -name cgroup.procs -exec cat {} +` names what is in it", err, root)
		}
	}
	return nil
}

// removeTree removes cgroups from the leaves up. The files in a cgroup go with it.
func removeTree(folder string) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeTree(filepath.Join(folder, entry.Name())); err != nil {
				return err
			}
		}
	}
	// unix.Rmdir, because os.Remove tries to unlink first and reports that failure.
	if err := unix.Rmdir(folder); err != nil && !errors.Is(err, unix.ENOENT) {
		return &fs.PathError{Op: "rmdir", Path: folder, Err: err}
	}
	return nil
}
