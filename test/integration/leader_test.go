//go:build integration

package integration

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/example-org/subrelay-operator/test/harness"
)

const (
	// handoverBudget: a leader that ends in good order gives up the Lease, for which the other asks every 0.5 to 1.1 s. The
	// test itself takes a part of it. How soon the other one acts is measured in test/availability.
	handoverBudget = 4 * time.Second

	// takeoverBudget: the Lease of a leader that died runs out after 15 s.
	takeoverBudget = 15*time.Second + handoverBudget
)

// CTL-04: of several processes one acts, and another goes on when it ends, well or badly.
func TestCTL04Leadership(t *testing.T) {
	from := markAudit(t)
	first := cluster.operator
	second := startStandby(t, first)
	awaitOperator(t)
	assert.Empty(t, writesOf(t, from, second), "the standby only watches")

	require.NoError(t, first.Stop(), "it ends in good order")
	awaitActs(t, handoverBudget)
	third := startStandby(t, second)
	require.NoError(t, second.Kill())
	awaitActs(t, takeoverBudget)

	// One after the other, never mixed.
	order := []*harness.Operator{first, second, third}
	var turns []*harness.Operator
	writes := operatorCalls(t, from, harness.Call.Write)
	slices.SortStableFunc(writes, func(a, b harness.Call) int { return a.Received.Compare(b.Received.Time) })
	for _, c := range writes {
		by := order[slices.IndexFunc(order, func(o *harness.Operator) bool { return o.TokenID == c.TokenID() })]
		if len(turns) == 0 || turns[len(turns)-1] != by {
			turns = append(turns, by)
		}
	}
	assert.Equal(t, order, turns)
}

// startStandby starts one more process, which becomes the shared operator. The leader ends with the test at the latest.
func startStandby(t *testing.T, leader *harness.Operator) *harness.Operator {
	t.Helper()
	standby, err := cluster.StartOperator(background)
	require.NoError(t, err)
	cluster.operator = standby
	t.Cleanup(func() { assert.NoError(t, leader.Kill()) })
	return standby
}

func writesOf(t *testing.T, since harness.Mark, process *harness.Operator) []harness.Call {
	t.Helper()
	return operatorCalls(t, since, func(c harness.Call) bool { return c.Write() && c.TokenID() == process.TokenID })
}

// awaitActs waits until somebody begins to build a new pool.
func awaitActs(t *testing.T, within time.Duration) {
	t.Helper()
	pool := newPool("turn")
	create(t, pool)
	eventually(t, within, func(c *assert.CollectT) { get(c, bareNamespace(pool.Name)) })
}
