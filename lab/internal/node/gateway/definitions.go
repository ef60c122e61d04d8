package gateway

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/example-org/subrelay-operator/lab/internal/node/kubectl"
	"github.com/example-org/subrelay-operator/lab/internal/node/poll"
)

// removalPatience is how long the API server may take to remove definitions before it is reminded.
const removalPatience = 10 * time.Second

// Definitions returns the definitions of the Gateway API and of Envoy Gateway's own kinds as YAML. printer is the path of
// the program that holds them.
func Definitions(ctx context.Context, printer string) ([]byte, error) {
	output, err := kubectl.Output(exec.CommandContext(ctx, printer))
	return []byte(output), err
}

// InstallDefinitions brings the definitions to a cluster and returns when their kinds can be used.
func InstallDefinitions(ctx context.Context, cluster kubectl.Client, definitions []byte) error {
	if err := apply(ctx, cluster, definitions); err != nil {
		return err
	}
	_, err := cluster.Run(ctx, bytes.NewReader(definitions), "wait", "--for=condition=Established", "--timeout="+patience.String(),
		"--filename=-")
	return err
}

// RemoveDefinitions removes the definitions from a cluster, and with them every object of their kinds.
func RemoveDefinitions(ctx context.Context, cluster kubectl.Client, definitions []byte) error {
	if err := releaseClasses(ctx, cluster); err != nil {
		return err
	}
	run := func(args ...string) (string, error) {
		return cluster.Run(ctx, bytes.NewReader(definitions), append(args, "--filename=-")...)
	}
	if _, err := run("delete", "--ignore-not-found", "--wait=false"); err != nil {
		return err
	}
	return poll.Until(ctx, patience, func(ctx context.Context) error {
		if _, err := run("wait", "--for=delete", "--timeout="+removalPatience.String()); err == nil {
			return nil
		}
		left, err := run("get", "--ignore-not-found", "--output=name")
		if err != nil {
			return err
		}
		return wake(ctx, cluster, strings.Fields(left))
	})
}

// wake changes definitions that are being deleted. The API server gives up on one that something else changes at the same
// moment, and takes it up again after another change.
func wake(ctx context.Context, cluster kubectl.Client, names []string) error {
	if len(names) == 0 {
		return nil
	}
	mark := "subrelay.example.com/lab-woken=" + time.Now().Format(time.RFC3339Nano)
	if _, err := cluster.Run(ctx, nil, slices.Concat([]string{"annotate", "--overwrite"}, names, []string{mark})...); err != nil {
		return err
	}
	return fmt.Errorf("still there: %s", strings.Join(names, ", "))
}

// releaseClasses takes the finalizers off all GatewayClasses: the controller that set them may not run any more.
func releaseClasses(ctx context.Context, cluster kubectl.Client) error {
	kinds, err := cluster.Run(ctx, nil, "api-resources", "--api-group=gateway.networking.k8s.io", "--output=name", "--cached=false")
	if err != nil || !strings.Contains(kinds, "gatewayclasses.") {
		return err
	}
	classes, err := cluster.Run(ctx, nil, "get", "gatewayclasses", "--output=name")
	if err != nil {
		return err
	}
	for class := range strings.FieldsSeq(classes) {
		if _, err := cluster.Run(ctx, nil, "patch", class, "--type=merge", `--patch={"metadata":{"finalizers":null}}`); err != nil {
			return err
		}
	}
	return nil
}

func apply(ctx context.Context, cluster kubectl.Client, objects []byte) error {
	_, err := cluster.Run(ctx, bytes.NewReader(objects), "apply", "--server-side", "--force-conflicts", "--filename=-")
	return err
}
