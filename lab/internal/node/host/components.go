package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/example-org/subrelay-operator/lab/internal/build"
	"github.com/example-org/subrelay-operator/lab/internal/hostpkg"
	"github.com/example-org/subrelay-operator/lab/internal/node/preflight"
	"github.com/example-org/subrelay-operator/lab/internal/node/state"
	"github.com/example-org/subrelay-operator/lab/internal/progress"
)

// AssetsVariable names a folder of ready-made programs for a control plane, as test suites for
// controllers use it.
const AssetsVariable = "KUBEBUILDER_ASSETS"

var (
	// nodeComponents are the components of a full lab.
	nodeComponents = []string{
		"kubernetes", "containerd", "runc", "cni", "kube-router", "coredns", "local-path-provisioner", "pause",
	}
	// controlPlaneComponents hold every program of a control plane.
	controlPlaneComponents = []string{"kubernetes"}
)

// provide checks the machine and makes sure that all programs are there.
func provide(ctx context.Context, folder state.Folder, mode state.Mode, report progress.Reporter) (state.Record, error) {
	components, ready := nodeComponents, map[string]string{}
	if mode == state.ControlPlaneOnly {
		var err error
		if components, ready, err = readyMade(os.Getenv(AssetsVariable)); err != nil {
			return state.Record{}, err
		}
	}
	var dirs build.Dirs
	var noDirs error
	if len(components) > 0 {
		dirs, noDirs = build.FindDirs()
	}
	if err := errors.Join(checkMachine(ctx, folder, mode, dirs, components, report), noDirs); err != nil {
		return state.Record{}, err
	}
	binaries := map[string]string{}
	if len(components) > 0 {
		var err error
		if binaries, err = build.Ensure(ctx, dirs, components, report); err != nil {
			return state.Record{}, err
		}
	}
	maps.Copy(binaries, ready)
	return state.Record{Mode: mode, Binaries: binaries, Cache: dirs.Cache, Created: time.Now().UTC()}, nil
}

// readyMade returns which components have to be built for a control plane alone, and the programs
// that the folder assets already has; it may be empty. Etcd and the API server have to be there;
// the controller manager and kubectl are built when they are not.
func readyMade(assets string) (components []string, ready map[string]string, err error) {
	if assets == "" {
		return controlPlaneComponents, nil, nil
	}
	ready = map[string]string{}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kubectl"} {
		path, err := filepath.Abs(filepath.Join(assets, name))
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", AssetsVariable, err)
		}
		switch _, err := os.Stat(path); {
		case err == nil:
			ready[name] = path
		case !errors.Is(err, fs.ErrNotExist):
			return nil, nil, fmt.Errorf("%s: %w", AssetsVariable, err)
		case name == "etcd" || name == "kube-apiserver":
			return nil, nil, fmt.Errorf("%s is %s, which has no %s: point it at a folder with etcd and kube-apiserver, "+
				"or unset it to use the lab's own", AssetsVariable, assets, name)
		default:
			components = controlPlaneComponents
		}
	}
	return components, ready, nil
}

// checkMachine fails with everything that this machine lacks, and installs the packages that a node needs.
func checkMachine(ctx context.Context, folder state.Folder, mode state.Mode, dirs build.Dirs, components []string,
	report progress.Reporter) error {
	done := report.Step("checking this machine")
	err := preflight.Check(preflight.Needs{
		FullNode: mode == state.FullNode,
		Build:    !wereBuilt(dirs.Cache, components),
		Cache:    dirs.Cache,
		State:    folder.Path(),
	})
	done(err)
	if err != nil || mode == state.ControlPlaneOnly {
		return err
	}
	if err := hostpkg.Ensure(ctx, hostpkg.Node(), report); err != nil {
		return err
	}
	// The kernel is tried through programs of those packages.
	done = report.Step("trying the kernel")
	err = preflight.CheckKernel()
	done(err)
	return err
}

// wereBuilt reports whether the cache has some version of every component, so that at most
// a changed one has to be built.
func wereBuilt(cache string, components []string) bool {
	for _, component := range components {
		versions, err := filepath.Glob(filepath.Join(cache, "components", component, "[^.]*"))
		if err != nil || len(versions) == 0 {
			return false
		}
	}
	return true
}
