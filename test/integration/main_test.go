//go:build integration

// Package integration tests the operator as a process of its own against a real API server and the real
// controllers of Kubernetes, with the shipped manifests and the shipped rights. There is no node: a small kubelet of
// the tests' own binds Pods and says that they run.
package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/example-org/subrelay-operator/test/harness"
)

// Namespaces of the product itself.
const (
	systemNamespace = harness.SystemNamespace
	sharedNamespace = harness.SharedNamespace
)

// What tests look for in objects has short names here.
const (
	operatorAccount = harness.OperatorAccount
	operatorConfig  = harness.OperatorConfig
	brokenTag       = harness.BrokenTag
	imageDigest     = harness.ImageDigest
)

// cluster is the control plane under test, and who acts on it.
var cluster struct {
	*harness.Cluster

	// operator is the process that runs during all tests. A test that stops or disturbs it does not run in
	// parallel with others.
	operator *harness.Operator
}

func TestMain(m *testing.M) {
	suite := harness.Suite{
		Name:     "integration",
		Parallel: 12,
		Start:    func(ctx context.Context, lab *harness.Lab) error { return lab.StartControlPlane(ctx) },
		Run:      func(lab *harness.Lab) (int, error) { return run(m, lab) },
	}
	os.Exit(suite.Main())
}

// run brings the cluster to life, runs the tests and returns the exit code.
func run(m *testing.M, lab *harness.Lab) (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if cluster.Cluster, err = lab.ConnectWithPaperNode(ctx); err != nil {
		return 1, err
	}
	record, err := cluster.RecordStatuses(ctx)
	if err != nil {
		return 1, err
	}
	if cluster.operator, err = cluster.StartOperator(ctx); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, cluster.operator.Stop()) }()

	code = m.Run()
	if code != 0 {
		fmt.Fprintln(os.Stderr, cluster.operator.LogTail())
	}
	if code == 0 && allTestsRun() {
		err = checkVocabulary(ctx, record)
	}
	return code, errors.Join(err, checkRights(ctx))
}
