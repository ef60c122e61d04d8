package usage

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCalmBusy(t *testing.T) {
	begun := time.Now()
	calm := Calm{Most: map[int]float64{1: 0.08, 2: 0.02}}
	at := func(seconds int, one, two time.Duration) sample {
		return sample{begun.Add(time.Duration(seconds) * time.Second), map[int]time.Duration{1: one, 2: two}}
	}
	first := at(0, time.Second, time.Second)
	assert.Zero(t, calm.busy(first, at(5, time.Second+390*time.Millisecond, time.Second+90*time.Millisecond)))
	assert.Equal(t, 1, calm.busy(first, at(5, time.Second+410*time.Millisecond, time.Second)))
	assert.Equal(t, 2, calm.busy(first, at(5, time.Second, time.Second+110*time.Millisecond)))
}

func TestCalmAwait(t *testing.T) {
	self := os.Getpid()
	begun := time.Now()
	at, err := Calm{Span: 300 * time.Millisecond, Patience: time.Minute, Most: map[int]float64{self: 1000}}.Await(t.Context())
	require.NoError(t, err)
	assert.WithinRange(t, at, begun, time.Now().Add(-300*time.Millisecond))

	_, err = Calm{Span: 300 * time.Millisecond, Patience: time.Second, Most: map[int]float64{self: -1}}.Await(t.Context())
	require.ErrorContains(t, err, fmt.Sprintf("process %d", self))
}
