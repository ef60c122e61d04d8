package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// Cluster is a lab that runs, seen by its administrator.
type Cluster struct {
	// Config is without limits to the rate of calls, since tests poll a lot.
	Config *rest.Config
	// Admin may do everything. It reads from the API server itself.
	Admin client.WithWatch
	Audit *AuditLog
}

// Connect makes the administrator's clients.
func (l *Lab) Connect(ctx context.Context) (*Cluster, error) {
	// Controller-runtime complains at length when nobody has said where its log goes.
	ctrl.SetLogger(zap.New(zap.WriteTo(io.Discard)))
	kubeconfig, err := l.Kubeconfig(ctx)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the lab's kubeconfig: %w", err)
	}
	config.QPS, config.Burst = -1, -1
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme),
		gatewayv1.Install(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("build the scheme: %w", err)
	}
	admin, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make a client for the administrator: %w", err)
	}
	audit := &AuditLog{path: filepath.Join(filepath.Dir(kubeconfig), "audit.log"), admin: admin}
	return &Cluster{Config: config, Admin: admin, Audit: audit}, nil
}

// ConnectWithPaperNode is Connect for a control plane without a node: it also makes what pools share, and starts a kubelet
// that acts until ctx ends.
func (l *Lab) ConnectWithPaperNode(ctx context.Context) (*Cluster, error) {
	cluster, err := l.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := cluster.CreateShared(ctx); err != nil {
		return nil, err
	}
	if err := cluster.StartKubelet(ctx); err != nil {
		return nil, err
	}
	return cluster, nil
}
