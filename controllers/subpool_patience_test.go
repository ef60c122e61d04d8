package controllers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCTL05Patience: pools that stay in trouble are looked at ever more seldom, until something happens to them.
func TestCTL05Patience(t *testing.T) {
	var p patience
	for _, want := range []time.Duration{20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 320 * time.Second, checkPeriod, checkPeriod} {
		require.Equal(t, want, p.wait("sick", false))
	}
	require.Equal(t, troubleDelay, p.wait("other", false))
	require.Equal(t, troubleDelay, p.wait("sick", true))
	require.Equal(t, 2*troubleDelay, p.wait("sick", false))
	p.end("sick")
	require.Equal(t, troubleDelay, p.wait("sick", false))
}
