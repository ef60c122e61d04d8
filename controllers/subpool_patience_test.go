package controllers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCTL05Patience: pools that stay in trouble are looked at ever more seldom, until something new is seen; what events make
// the operator look at in between neither hurries nor delays that.
func TestCTL05Patience(t *testing.T) {
	var p patience
	now := time.Now()
	require.False(t, p.over("sick", now))
	for _, want := range []time.Duration{20 * time.Second, 40 * time.Second, 2 * time.Minute, 6 * time.Minute, checkPeriod, checkPeriod} {
		require.Equal(t, want, p.wait("sick", false, now))
		require.Equal(t, want-time.Second, p.wait("sick", false, now.Add(time.Second)))
		require.False(t, p.over("sick", now.Add(want-1)))
		now = now.Add(want)
		require.True(t, p.over("sick", now))
	}
	require.Equal(t, troubleDelay, p.wait("other", false, now))
	require.Equal(t, troubleDelay, p.wait("sick", true, now))
	p.end("sick")
	require.False(t, p.over("sick", now.Add(time.Hour)))
	require.Equal(t, troubleDelay, p.wait("sick", false, now))
}
