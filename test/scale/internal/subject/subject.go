// Package subject says what the benchmark measures: one way of making the objects of pools, such as the operator, a peer of
// it, or plain creates.
package subject

import (
	"context"

	"github.com/example-org/subrelay-operator/test/harness"
)

// Subject is one way of making the objects of pools. The benchmark gives each a fresh control plane of its own, on which the
// shared namespaces and the definitions of SubPools and of the Gateway API are, and calls Start, Make for each pool, Stop.
type Subject interface {
	// Name is what the report calls it: "kro", "helm", "kubectl", "raw create, 8 workers".
	Name() string

	// Start gets ready on a cluster, so that Make costs only what belongs to one pool. What it starts runs until Stop; the
	// context ends only what Start itself waits for.
	Start(ctx context.Context, cluster *harness.Cluster) error

	// Make asks for one pool and may return before its objects are there: the benchmark watches for them. Its objects are
	// those of objects.Blueprint, with their names and namespace.
	Make(ctx context.Context, poolID string) error

	// Workers is how many calls of Make run side by side.
	Workers() int

	// Processes are the processes whose CPU time is the subject's own, by their ids. If there are none, it works within the
	// benchmark's process or in its children, which then count.
	Processes() []int

	// UserAgents are prefixes of the user agent of its requests in the audit log, by which they are told from others'.
	UserAgents() []string

	// Stop ends what Start has started, also after Start has failed. Without a Start, and a second time, it does nothing.
	Stop() error
}
