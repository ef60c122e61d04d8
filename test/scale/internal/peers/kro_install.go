package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const (
	// kroFolder is the module that pins kro, seen from the folder of test/scale.
	kroFolder  = "peers-modules/kro"
	kroModule  = "github.com/kubernetes-sigs/kro"
	kroPackage = kroModule + "/cmd/controller"

	definitionTick     = 100 * time.Millisecond
	definitionPatience = 30 * time.Second
)

// kroBuild is what the module of kro has given.
type kroBuild struct {
	program string
	// definitions are the files with the definitions of kro's kinds.
	definitions []string
}

// buildKro compiles kro into the lab's cache. The go command sees by itself whether there is anything to do.
func buildKro(ctx context.Context) (*kroBuild, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("find a folder for kro: %w: set HOME or XDG_CACHE_HOME", err)
	}
	version, err := goCommand(ctx, "list", "-m", "-f", "{{.Version}}", kroModule)
	if err != nil {
		return nil, err
	}
	program := filepath.Join(cache, "subrelay-lab", "components", "kro", version, "kro")
	variable := "sigs.k8s.io/release-utils/version.gitVersion=" + version
	if _, err := goCommand(ctx, "build", "-trimpath", "-ldflags=-s -w -X "+variable, "-o", program, kroPackage); err != nil {
		return nil, err
	}
	source, err := goCommand(ctx, "list", "-m", "-f", "{{.Dir}}", kroModule)
	if err != nil {
		return nil, err
	}
	definitions, err := filepath.Glob(filepath.Join(source, "helm", "crds", "*.yaml"))
	if err != nil || len(definitions) == 0 {
		return nil, errors.Join(err, fmt.Errorf("no definitions of kinds in %s/helm/crds: has this version of kro moved them?", source))
	}
	return &kroBuild{program: program, definitions: definitions}, nil
}

// goCommand calls the go command on the module of kro and returns its trimmed output.
func goCommand(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = kroFolder
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off")
	// It ends its compilers before it ends itself.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.Output()
	if err != nil {
		exit := &exec.ExitError{}
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return "", fmt.Errorf("build kro: go %s: %w: if modules are missing, run `go -C test/scale/%s mod download` where a module "+
			"proxy can be reached", args[0], err, kroFolder)
	}
	return strings.TrimSpace(string(out)), nil
}

// install makes the definitions of kro's kinds and waits until the API server serves them.
func (b *kroBuild) install(ctx context.Context, admin client.Client) error {
	for _, path := range b.definitions {
		document, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read a definition of kro's kinds: %w", err)
		}
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(document, definition); err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		if err := admin.Create(ctx, definition); err != nil {
			return fmt.Errorf("install %s: %w", definition.Name, err)
		}
		if err := awaitEstablished(ctx, admin, definition); err != nil {
			return err
		}
	}
	return nil
}

func awaitEstablished(ctx context.Context, admin client.Client, definition *apiextensionsv1.CustomResourceDefinition) error {
	err := wait.PollUntilContextTimeout(ctx, definitionTick, definitionPatience, true, func(ctx context.Context) (bool, error) {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(definition), definition); err != nil {
			return false, err
		}
		for _, condition := range definition.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("wait until %s is served: %w", definition.Name, err)
	}
	return nil
}
