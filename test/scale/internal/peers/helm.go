package peers

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/example-org/subrelay-operator/test/harness"
	"github.com/example-org/subrelay-operator/test/scale/internal/objects"
)

const (
	// helmAgent is the user agent of Helm's requests.
	helmAgent = "Helm"

	// helmBurst is how many requests Helm's command sends before it slows itself down.
	helmBurst = 100

	// poolValue is the chart's only value: the pool's id.
	poolValue = "pool"
)

// helm installs a chart once for each pool, within this process. It keeps what it has learned about the API from one release
// to the next, which the command cannot.
type helm struct {
	template []byte
	getter   *genericclioptions.ConfigFlags
	folder   folder
}

func (h *helm) Name() string { return "Helm install" }

func (h *helm) Start(ctx context.Context, cluster *harness.Cluster) (err error) {
	blueprint, err := objects.ReadBlueprint(ctx, cluster)
	if err != nil {
		return err
	}
	parts, err := blueprint.Pool(mark)
	if err != nil {
		return err
	}
	if h.template, err = helmTemplate(parts); err != nil {
		return err
	}
	if h.folder, err = makeFolder(cluster.Config); err != nil {
		return err
	}
	const keepClients = true
	h.getter = genericclioptions.NewConfigFlags(keepClients)
	h.getter.KubeConfig = ptr.To(h.folder.kubeconfig())
	h.getter.CacheDir = ptr.To(h.folder.cache())
	h.getter.WrapConfigFn = func(config *rest.Config) *rest.Config {
		config.UserAgent = helmAgent
		config.Burst = helmBurst
		return config
	}
	return nil
}

// Make installs without waiting for Pods. The release is in a namespace that exists, since the pool's is part of the chart.
func (h *helm) Make(ctx context.Context, poolID string) error {
	// An installation writes into its configuration and its chart, so they are not shared.
	configuration := action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	if err := configuration.Init(h.getter, metav1.NamespaceDefault, "secret"); err != nil {
		return fmt.Errorf("prepare Helm: %w", err)
	}
	install := action.NewInstall(configuration)
	install.ReleaseName, install.Namespace = poolID, metav1.NamespaceDefault
	install.WaitStrategy = kube.HookOnlyStrategy
	if _, err := install.RunWithContext(ctx, helmChart(h.template), map[string]any{poolValue: poolID}); err != nil {
		return fmt.Errorf("install release %s: %w", poolID, err)
	}
	return nil
}

// helmTemplate returns the objects of the pool with the mark as a template of a chart for any pool.
func helmTemplate(parts []*unstructured.Unstructured) ([]byte, error) {
	template, err := manifest(parts)
	if err != nil {
		return nil, err
	}
	template = bytes.ReplaceAll(template, []byte("{"), []byte(`{{ "{" }}`))
	return bytes.ReplaceAll(template, []byte(mark), []byte("{{ .Values."+poolValue+" }}")), nil
}

func helmChart(template []byte) *chart.Chart {
	return &chart.Chart{
		Metadata:  &chart.Metadata{APIVersion: chart.APIVersionV2, Name: "pool", Version: "1.0.0"},
		Templates: []*common.File{{Name: "templates/pool.yaml", Data: template}},
	}
}

func (h *helm) Workers() int         { return workers }
func (h *helm) Processes() []int     { return nil }
func (h *helm) UserAgents() []string { return []string{helmAgent} }
func (h *helm) Stop() error          { return h.folder.remove() }
