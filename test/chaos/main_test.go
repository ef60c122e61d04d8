//go:build chaos

// Package chaos lets users, careless administrators and a failing cluster loose on many pools at once. Whatever happens in
// which order, afterwards every pool must be what its spec asks for, and on the way nothing may have been lost.
package chaos

import (
	"context"
	"os"
	"testing"

	"github.com/example-org/subrelay-operator/test/harness"
)

// cluster is the control plane under test. Its clients reach the API server directly, whatever the operator has to go
// through.
var cluster *harness.Cluster

// lab is where the cluster's processes are found.
var lab *harness.Lab

func TestMain(m *testing.M) {
	suite := harness.Suite{
		Name:  "chaos",
		Start: func(ctx context.Context, lab *harness.Lab) error { return lab.StartControlPlane(ctx) },
		Run:   func(l *harness.Lab) (int, error) { return runTests(m, l) },
	}
	os.Exit(suite.Main())
}

func runTests(m *testing.M, l *harness.Lab) (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	lab = l
	if cluster, err = lab.ConnectWithPaperNode(ctx); err != nil {
		return 1, err
	}
	return m.Run(), nil
}
