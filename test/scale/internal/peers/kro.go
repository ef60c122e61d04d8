package peers

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/test/harness"
	"github.com/example-org/subrelay-operator/test/scale/internal/objects"
)

const (
	// graphTick is how often a new graph is looked at, graphPatience how long kro may take to accept it.
	graphTick     = 100 * time.Millisecond
	graphPatience = time.Minute
)

// kro runs kro's controller with the settings of its own chart and the administrator's rights. Its graph has a pool's objects,
// so that each pool is one instance.
type kro struct {
	admin   client.Client
	folder  folder
	process *process
}

func (k *kro) Name() string { return "kro" }

// Start builds kro if this machine has not done so before, which takes minutes.
func (k *kro) Start(ctx context.Context, cluster *harness.Cluster) error {
	k.admin = cluster.Admin
	blueprint, err := objects.ReadBlueprint(ctx, cluster)
	if err != nil {
		return err
	}
	parts, err := blueprint.Pool(mark)
	if err != nil {
		return err
	}
	definition, err := graph(parts)
	if err != nil {
		return err
	}
	build, err := buildKro(ctx)
	if err != nil {
		return err
	}
	if err := build.install(ctx, k.admin); err != nil {
		return err
	}
	if k.folder, err = makeFolder(cluster.Config); err != nil {
		return err
	}
	if k.process, err = startProcess(build.program, k.folder.file("log"),
		"--kubeconfig="+k.folder.kubeconfig(),
		// What the chart sets otherwise than the program does. It also elects a leader, who writes nothing more than Leases.
		"--zap-devel=false",
		"--zap-encoder=console",
		"--zap-log-level=info",
		// Nobody asks, and the usual ports may be taken.
		"--metrics-bind-address=127.0.0.1:0",
		"--health-probe-bind-address=127.0.0.1:0",
	); err != nil {
		return err
	}
	return k.define(ctx, definition)
}

// define makes the graph and waits until kro works with it.
func (k *kro) define(ctx context.Context, definition *unstructured.Unstructured) error {
	if err := k.admin.Create(ctx, definition); err != nil {
		return fmt.Errorf("create kro's graph of a pool: %w", err)
	}
	err := wait.PollUntilContextTimeout(ctx, graphTick, graphPatience, true, func(ctx context.Context) (bool, error) {
		if err := k.process.ended(); err != nil {
			return false, err
		}
		if err := k.admin.Get(ctx, client.ObjectKeyFromObject(definition), definition); err != nil {
			return false, err
		}
		state, _, err := unstructured.NestedString(definition.Object, "status", "state")
		return state == "Active", err
	})
	if err != nil {
		status, _, _ := unstructured.NestedMap(definition.Object, "status")
		return fmt.Errorf("wait until kro accepts its graph of a pool: %w\nits status: %v\n%s", err, status, k.process.logTail())
	}
	return nil
}

func (k *kro) Make(ctx context.Context, poolID string) error {
	instance := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{poolValue: poolID}}}
	instance.SetGroupVersionKind(instanceKind)
	instance.SetNamespace(metav1.NamespaceDefault)
	instance.SetName(poolID)
	if err := k.admin.Create(ctx, instance); err != nil {
		return fmt.Errorf("ask kro for pool %s: %w", poolID, err)
	}
	return nil
}

func (k *kro) Workers() int { return workers }

func (k *kro) Processes() []int {
	if k.process == nil {
		return nil
	}
	return []int{k.process.pid()}
}

// UserAgents leaves out the request for the pool itself, which is not kro's.
func (k *kro) UserAgents() []string { return []string{"kro/"} }

func (k *kro) Stop() error {
	var err error
	if k.process != nil {
		err = k.process.stop()
	}
	return errors.Join(err, k.folder.remove())
}
