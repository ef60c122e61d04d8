package supervise

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/example-org/subrelay-operator/lab/internal/node/addons"
	"github.com/example-org/subrelay-operator/lab/internal/node/cgroup"
	"github.com/example-org/subrelay-operator/lab/internal/node/controlplane"
	"github.com/example-org/subrelay-operator/lab/internal/node/kubectl"
	"github.com/example-org/subrelay-operator/lab/internal/node/poll"
	"github.com/example-org/subrelay-operator/lab/internal/node/process"
	"github.com/example-org/subrelay-operator/lab/internal/node/sandbox"
	"github.com/example-org/subrelay-operator/lab/internal/node/state"
	"github.com/example-org/subrelay-operator/lab/internal/node/worker"
)

const (
	// The node promises at least this many processors, however few the machine has: an example
	// pool asks for 2.4, and what really runs in a lab is idle most of the time.
	minimumCPUs = 4

	etcdPort = 2379
)

// node is what a full lab has beyond the control plane.
type node struct {
	config worker.Config
	plane  controlplane.Config
	// images is the folder of the archives that are imported before the first Pod.
	images string
	// cache is where the lab's programs are on the host.
	cache string
}

// runNode supervises a full lab. The calling process is in namespaces made for it.
func runNode(ctx context.Context, folder state.Folder, record state.Record, listenerFile *os.File) error {
	listener, err := listenerOf(listenerFile)
	if err != nil {
		return err
	}
	tree, err := cgroup.ForLab(folder.ID())
	if err != nil {
		return err
	}
	err = sandbox.Enter(sandbox.Config{
		State:        folder.Path(),
		Cache:        record.Cache,
		Hostname:     worker.NodeName,
		CgroupMounts: tree.Mounts(),
		CPUs:         max(runtime.NumCPU(), minimumCPUs),
	})
	if err != nil {
		return err
	}
	folder = state.At(folder.Name(), sandbox.StatePath)

	n, err := newNode(folder, record, tree)
	if err != nil {
		return err
	}
	s := &supervisor{node: n, components: process.NewGroup(folder.Logs(), environment("/root"))}
	if s.api, err = newAPI(n.plane); err != nil {
		return err
	}
	s.gateway = func(program string) (process.Spec, error) { return n.gatewayController(folder, program) }
	go forward(ctx, listener, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(controlplane.NodePort)))
	return s.serve(ctx, folder, s.bringUpNode)
}

// newNode prepares everything that the cluster's programs read.
func newNode(folder state.Folder, record state.Record, tree cgroup.Tree) (*node, error) {
	binaries := make(map[string]string, len(record.Binaries))
	for name, path := range record.Binaries {
		var err error
		if binaries[name], err = insidePath(record.Cache, path); err != nil {
			return nil, err
		}
	}
	binary := func(name string) string { return binaries[name] }
	plane := controlplane.Config{
		Folder:           folder.Path("control-plane"),
		Data:             "/var/lib/etcd",
		AuditLog:         folder.AuditLog(),
		Binary:           binary,
		BindAddress:      "0.0.0.0",
		AdvertiseAddress: sandbox.NodeIP,
		Port:             controlplane.NodePort,
		EtcdPort:         etcdPort,
		HostKubeconfig:   folder.Kubeconfig(),
		HostPort:         record.Port,
		Nodes:            true,
	}
	if err := plane.Prepare(worker.Users()); err != nil {
		return nil, err
	}
	n := &node{plane: plane, images: folder.Images(), cache: record.Cache, config: worker.Config{
		Folder:      folder.Path("node"),
		Credentials: plane.File,
		Binary:      binary,
		CgroupRoot:  tree.Path(),
		Snapshotter: worker.ChooseSnapshotter("/var/tmp"),
	}}
	return n, n.config.Prepare()
}

// insidePath returns where a program of the cache, by its path on the host, is inside of the sandbox.
func insidePath(cache, program string) (string, error) {
	relative, err := filepath.Rel(cache, program)
	if err != nil || !filepath.IsLocal(relative) {
		return "", fmt.Errorf("program %s lies outside of the cache %s that the lab was started with: "+
			"give this command the same XDG_CACHE_HOME", program, cache)
	}
	return filepath.Join(sandbox.CachePath, relative), nil
}

// bringUpNode starts everything in the order in which the parts need each other.
func (s *supervisor) bringUpNode(ctx context.Context) error {
	n := s.node
	first, firstCtx := errgroup.WithContext(ctx)
	first.Go(func() error {
		return s.steps.run("control plane", func() error {
			if err := s.startControlPlane(firstCtx, n.plane); err != nil {
				return err
			}
			s.components.Start(n.plane.Scheduler())
			return n.applyAddons(firstCtx)
		})
	})
	first.Go(func() error {
		return s.steps.run("container runtime and its images", func() error { return s.startRuntime(firstCtx) })
	})
	if err := first.Wait(); err != nil {
		return err
	}
	if err := s.steps.run("node", func() error { return s.startNode(ctx) }); err != nil {
		return err
	}
	return s.steps.run("cluster DNS", func() error {
		_, err := n.kubectl(ctx, nil, "wait", "--namespace=kube-system", "--for=condition=Available", "deployment/coredns",
			"--timeout="+startPatience.String())
		return err
	})
}

func (s *supervisor) startRuntime(ctx context.Context) error {
	s.components.Start(s.node.config.Containerd())
	err := poll.Until(ctx, startPatience, func(ctx context.Context) error {
		_, err := s.node.ctr(ctx, nil, "version")
		return err
	})
	if err != nil {
		return fmt.Errorf("%w; see `lab logs containerd`", err)
	}
	archives, err := filepath.Glob(filepath.Join(s.node.images, "*.tar"))
	if err != nil {
		return fmt.Errorf("look for the lab's images: %w", err)
	}
	for _, archive := range archives {
		if err := s.node.importFile(ctx, archive); err != nil {
			return err
		}
	}
	return nil
}

func (s *supervisor) startNode(ctx context.Context) error {
	config := s.node.config
	s.components.Start(config.Kubelet())
	s.components.Start(config.Proxy())
	if err := poll.Until(ctx, startPatience, s.api.probe("/api/v1/nodes/"+worker.NodeName)); err != nil {
		return fmt.Errorf("the node does not register: %w; see `lab logs kubelet`", err)
	}
	s.components.Start(config.PolicyAgent())
	s.components.Start(config.Provisioner())
	err := poll.Until(ctx, startPatience, func(ctx context.Context) error {
		if node := s.api.node(ctx, worker.NodeName); !node.Ready {
			return errors.New(node.Message)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("the node does not become Ready: %w; see `lab logs kubelet`", err)
	}
	// Until the agent works, network policies are accepted and not enforced.
	if err := poll.Until(ctx, startPatience, httpProbe(worker.PolicyAgentHealth())); err != nil {
		return fmt.Errorf("network policies are not enforced: %w; see `lab logs kube-router`", err)
	}
	return nil
}

// applyAddons creates the objects that the cluster starts with.
func (n *node) applyAddons(ctx context.Context) error {
	manifests, err := addons.Manifests()
	if err != nil {
		return err
	}
	_, err = n.kubectl(ctx, bytes.NewReader(manifests), "apply", "--server-side", "--filename=-")
	return err
}

func (n *node) importFile(ctx context.Context, path string) error {
	archive, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open an image archive: %w", err)
	}
	defer func() { _ = archive.Close() }()
	return n.importImages(ctx, archive)
}

func (n *node) importImages(ctx context.Context, archive io.Reader) error {
	_, err := n.ctr(ctx, archive, "--namespace=k8s.io", "images", "import", "--snapshotter="+n.config.Snapshotter, "-")
	return err
}

func (n *node) ctr(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, n.config.Binary("ctr"), append([]string{"--address=" + worker.ContainerdSocket}, args...)...)
	cmd.Stdin = stdin
	return kubectl.Output(cmd)
}

func (n *node) kubectl(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	client := kubectl.Client{
		Program:    n.config.Binary("kubectl"),
		Kubeconfig: n.plane.File(controlplane.AdminFile + ".kubeconfig"),
		Cache:      "/tmp/kubectl-cache",
	}
	return client.Run(ctx, stdin, args...)
}
