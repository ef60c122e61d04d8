// Package report turns what a run of the benchmark has found into figures, tables and a plot. It is pure.
package report

import (
	"time"

	"github.com/example-org/subrelay-operator/test/scale/internal/usage"
)

// Results is all that a run of the benchmark has found. Times are in seconds, memory is in bytes.
type Results struct {
	Started time.Time
	// Operator is the version that the operator names.
	Operator string
	Machine  usage.Machine
	// Quiet is how long the quiet window was.
	Quiet time.Duration
	// Objects is how many objects a pool has.
	Objects int
	Runs    []Run
}

// Run is one round at one number of pools. What was not asked for is empty.
type Run struct {
	Pools, Round int
	// Before and After are plain writes of the same objects, before the operator's turn and after it.
	Before, After []Wave
	Operator      Operator
	Peers         []Wave
	// Unmeasured says why, by the name of a peer.
	Unmeasured map[string]string
}

// Operator is what was measured of the operator, in this order.
type Operator struct {
	Create *Wave
	// Alone has the latencies of single pools on a calm cluster.
	Alone   []float64
	Steady  *Span
	Restart *Restart
	// Repairs were made on a calm cluster, those of Busy while as many pools again were being made.
	Repairs []Repair
	Busy    *Busy
	Changes []Change
	Delete  *Deletion
}

// Wave is the making of many pools at once by one subject.
type Wave struct {
	Subject string
	Pools   int
	// ToMade is what it took until all objects were seen, ToIdle until the machine was calm again; ToIdle may be empty.
	ToMade, ToIdle Cost
	// Latencies of the pools, from asking for one to its last object.
	Latencies []float64
	Traffic
	Memory
}

// Memory is the subject's own at the end, if it is one process.
type Memory struct{ Resident, Peak uint64 }

// Cost is the time that has passed and the CPU time that was taken.
type Cost struct {
	Seconds float64
	CPU     CPU
}

// CPU is CPU time by who has taken it.
type CPU struct {
	APIServer, Etcd, ControllerManager float64
	// Subject is 0 for one that works in the benchmark's own process, Benchmark is that process with its watches.
	Subject, Benchmark float64
}

// All is the sum.
func (c CPU) All() float64 {
	return c.APIServer + c.Etcd + c.ControllerManager + c.Subject + c.Benchmark
}

// Own is what the subject has taken: the benchmark's process is its own if it has no other.
func (c CPU) Own() float64 {
	if c.Subject == 0 {
		return c.Benchmark
	}
	return c.Subject
}

// Traffic is the requests of one client. Writes leave out Events, Reads leave out watches; all leave out Leases.
type Traffic struct {
	Requests, Writes, Reads int
	// ReadsBeforeWrites are reads in a pool's namespace before the last write there.
	ReadsBeforeWrites int
	// ByKind counts by verb and resource.
	ByKind map[string]int
}

// Span is what the operator has taken in a span of time.
type Span struct {
	Seconds, CPU float64
	Traffic
	Memory
}

// Restart is what a new process has taken until it was idle.
type Restart struct {
	Span
	// SecretReads are all requests about pools' Secrets: reads and watches.
	SecretReads int
	// Fresh is how long a pool had to wait that was asked for when a process started.
	Fresh float64
}

// Repair is how long one object was not as it should be, from the answer to who deleted or edited it.
type Repair struct {
	Action, Kind string
	Seconds      float64
	// Requests are those in the pool from this disturbance to the next, or to calm.
	Requests int
}

// Busy is repairs while a wave was under way.
type Busy struct {
	Repairs []Repair
	// Before is the operator's memory when the wave began.
	Before Memory
	Wave   Wave
}

// Change is what something that concerns all pools has caused.
type Change struct {
	Name string
	// Seconds until all pools have it; 0 if pools keep nothing of it.
	Seconds float64
	// Idle is how long until the machine was calm.
	Idle float64
	Traffic
}

// Deletion is the end of all pools.
type Deletion struct {
	Pools   int
	Seconds float64
	Traffic
}
