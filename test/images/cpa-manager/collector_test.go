package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// runUntil runs the collector without really waiting, until enough says so. It
// returns the waits that the collector asked for.
func runUntil(t *testing.T, c *collector, enough func(waits []time.Duration) bool) []time.Duration {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), waitFor)
	defer stop()
	var waits []time.Duration
	c.wait = func(_ context.Context, d time.Duration) {
		if waits = append(waits, d); enough(waits) {
			stop()
		}
	}
	c.run(ctx)
	require.NotErrorIs(t, ctx.Err(), context.DeadlineExceeded)
	return waits
}

func after(count int) func([]time.Duration) bool {
	return func(waits []time.Duration) bool { return len(waits) == count }
}

func TestCollectorStoresEvents(t *testing.T) {
	fake := startFakeCPA(t, []string{`{"n":1}`, `{"n":2}`}, []string{`{"n":3}`})
	cfg := testConfig(t, fake.URL)
	db := openTestStore(t, cfg.dbPath)
	c := newCollector(cfg, db)

	waits := runUntil(t, c, after(1))
	assert.Equal(t, []time.Duration{cfg.pollInterval}, waits, "no wait after a full batch")
	assert.Equal(t, 2, fake.polls)
	count, err := db.countEvents(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 3, count)
	status := c.currentStatus()
	assert.Equal(t, stateRunning, status.Collector)
	assert.EqualValues(t, 3, status.TotalInserted)
	assert.Equal(t, fake.URL, status.Upstream)
	assert.NotZero(t, status.LastInsertedAt)
}

func TestCollectorBacksOff(t *testing.T) {
	fake := startFakeCPA(t)
	cfg := testConfig(t, fake.URL)
	cfg.managementKey = "wrong"
	c := newCollector(cfg, openTestStore(t, cfg.dbPath))

	waits := runUntil(t, c, after(7))
	assert.Equal(t, []time.Duration{
		time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second,
	}, waits)
	status := c.currentStatus()
	assert.Equal(t, stateError, status.Collector)
	assert.Contains(t, status.LastError, "401")
	assert.Contains(t, status.LastError, "invalid management key")
	assert.NotContains(t, status.LastError, "wrong")
}

func TestCollectorRecovers(t *testing.T) {
	fake := startFakeCPA(t)
	cfg := testConfig(t, fake.URL)
	cfg.managementKey = "wrong"
	c := newCollector(cfg, openTestStore(t, cfg.dbPath))
	waits := runUntil(t, c, func(waits []time.Duration) bool {
		if len(waits) == 2 {
			c.cfg.managementKey = managementKey
		}
		if len(waits) == 3 {
			c.cfg.managementKey = "wrong"
		}
		return len(waits) == 4
	})
	assert.Equal(t, []time.Duration{time.Second, 2 * time.Second, cfg.pollInterval, time.Second}, waits)
}

func TestCollectorWithoutConnectionIsStopped(t *testing.T) {
	for _, upstream := range []string{"", "http://127.0.0.1:1"} {
		cfg := testConfig(t, upstream)
		cfg.managementKey = ""
		c := newCollector(cfg, openTestStore(t, cfg.dbPath))
		c.run(t.Context())
		assert.Equal(t, stateStopped, c.currentStatus().Collector)
	}
}
