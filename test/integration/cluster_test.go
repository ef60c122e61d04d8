//go:build integration

package integration

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// Namespaces of the product itself.
const (
	systemNamespace = "subpool-system"
	sharedNamespace = "subpool-gateway"
)

// parallelTests is how many tests may run side by side unless -parallel says otherwise. They wait far more than
// they compute, so the number of processors is no measure.
const parallelTests = 12

// cluster is the control plane under test, and who acts on it.
var cluster struct {
	// admin may do everything. It reads from the API server itself.
	admin  client.WithWatch
	config *rest.Config
	audit  auditLog

	// operator is the process that runs during all tests. A test that stops or disturbs it does not run in
	// parallel with others.
	operator *operator
}

// runTests is the second process: it brings the cluster to life, runs the tests and returns the exit code.
func runTests(m *testing.M, kubeconfig string) (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := connect(kubeconfig); err != nil {
		return 1, err
	}
	if err := createShared(ctx); err != nil {
		return 1, err
	}
	if err := startKubelet(ctx); err != nil {
		return 1, err
	}
	if cluster.operator, err = startOperator(ctx); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, cluster.operator.stop()) }()

	if err := allowParallel(); err != nil {
		return 1, err
	}
	code = m.Run()
	if code != 0 {
		fmt.Fprintln(os.Stderr, cluster.operator.logTail())
	}
	return code, cluster.audit.checkRights(ctx)
}

// allowParallel sets -parallel if the command line does not.
func allowParallel() error {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return nil
	}
	return flag.Set("test.parallel", fmt.Sprint(parallelTests))
}

func connect(kubeconfig string) error {
	// Controller-runtime complains at length when nobody has said where its log goes.
	ctrl.SetLogger(zap.New(zap.WriteTo(io.Discard)))
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read the control plane's kubeconfig: %w", err)
	}
	config.QPS, config.Burst = -1, -1 // the tests poll a lot
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("build the scheme: %w", err)
	}
	cluster.config = config
	cluster.audit = auditLog{path: filepath.Join(filepath.Dir(kubeconfig), "audit.log")}
	cluster.admin, err = client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("make a client for the administrator: %w", err)
	}
	return nil
}

// createShared makes what pools share: the Service of Mihomo with a ready endpoint.
func createShared(ctx context.Context) error {
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: sharedNamespace}},
		mihomoService(),
		mihomoSlice(readyEndpoint()),
	} {
		if err := cluster.admin.Create(ctx, object); err != nil {
			return fmt.Errorf("create the shared %T: %w", object, err)
		}
	}
	return nil
}
