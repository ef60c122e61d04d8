package usage

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOfProcess(t *testing.T) {
	before, err := OfProcess(os.Getpid())
	require.NoError(t, err)
	assert.Positive(t, before.Resident)
	assert.GreaterOrEqual(t, before.Peak, before.Resident)

	const size = 64 << 20
	held := make([]byte, size)
	for begun := time.Now(); time.Since(begun) < 100*time.Millisecond; {
		for at := 0; at < size; at += os.Getpagesize() {
			held[at]++
		}
	}
	after, err := OfProcess(os.Getpid())
	require.NoError(t, err)
	assert.Greater(t, after.Resident, before.Resident+size/2, "a large slice that is in use: %d", held[0])
	assert.Greater(t, after.CPU, before.CPU)
}

func TestOfNoProcess(t *testing.T) {
	_, err := OfProcess(1 << 30)
	require.ErrorContains(t, err, "find process")
}
