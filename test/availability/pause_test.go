//go:build chaos

package availability

import (
	"testing"
	"time"
)

// quotaBudget: a pause of more than 10 s may end a claim's creation between Kubernetes counting it and making it. Its quota
// then leaves no room for the claim until Kubernetes counts anew, which it does every 5 minutes.
const quotaBudget = 7 * time.Minute

// CTL-04: pauses that outlast the Lease, in the middle of a wave of creations.
func TestCTL04LongPausesInWave(t *testing.T) {
	for _, duration := range []time.Duration{30 * time.Second, 90 * time.Second} {
		t.Run(duration.String(), func(t *testing.T) {
			leader, standby := startTwo(t)
			from := markAudit(t)
			pools := beginWave(t)
			pause(t, apiServer(t), duration)
			requireExits(t, leader)
			start(t, cluster)
			requireWave(t, from, quotaBudget, pools)
			requireRuns(t, standby)
		})
	}
}
