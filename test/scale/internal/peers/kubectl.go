package peers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"

	"github.com/example-org/subrelay-operator/test/harness"
	"github.com/example-org/subrelay-operator/test/scale/internal/objects"
)

// kubectl applies a file with a pool's objects, in a process of its own for each pool.
type kubectl struct {
	blueprint *objects.Blueprint
	program   string
	folder    folder
}

func (k *kubectl) Name() string { return "kubectl apply --server-side" }

// Start also lets kubectl learn the API, which it keeps on disk.
func (k *kubectl) Start(ctx context.Context, cluster *harness.Cluster) (err error) {
	if k.program, err = harness.LabTool("kubernetes", "kubectl"); err != nil {
		return err
	}
	if k.blueprint, err = objects.ReadBlueprint(ctx, cluster); err != nil {
		return err
	}
	if k.folder, err = makeFolder(cluster.Config); err != nil {
		return err
	}
	return k.run(ctx, nil, "api-resources")
}

func (k *kubectl) Make(ctx context.Context, poolID string) error {
	parts, err := k.blueprint.Pool(poolID)
	if err != nil {
		return err
	}
	file, err := manifest(parts)
	if err != nil {
		return err
	}
	return k.run(ctx, file, "apply", "--server-side", "--filename=-")
}

// run calls kubectl. Keys are in the file, which therefore goes through a pipe.
func (k *kubectl) run(ctx context.Context, file []byte, args ...string) error {
	args = append([]string{"--kubeconfig=" + k.folder.kubeconfig(), "--cache-dir=" + k.folder.cache()}, args...)
	cmd := exec.CommandContext(ctx, k.program, args...)
	cmd.Stdin = bytes.NewReader(file)
	if _, err := cmd.Output(); err != nil {
		exit := &exec.ExitError{}
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
		}
		return fmt.Errorf("kubectl %s: %w", args[len(args)-1], err)
	}
	return nil
}

func (k *kubectl) Workers() int         { return workers }
func (k *kubectl) Processes() []int     { return nil }
func (k *kubectl) UserAgents() []string { return []string{"kubectl/"} }
func (k *kubectl) Stop() error          { return k.folder.remove() }
