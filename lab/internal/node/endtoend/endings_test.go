//go:build lab

package endtoend

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestKilledSupervisorTakesEverythingWithIt(t *testing.T) {
	l := newLab(t)
	l.must("up")
	kill(t, l.supervisor(), syscall.SIGKILL)
	require.Eventually(t, func() bool { return len(l.processes()) == 0 }, 20*time.Second, interval)
	_, err := l.try("status")
	require.ErrorContains(t, err, "not running")

	// What is left does not hinder a new start.
	require.Contains(t, l.must("up"), "is ready")
	kill(t, l.supervisor(), syscall.SIGKILL)
	l.must("down")
	l.requireGone()
}

func TestKilledUp(t *testing.T) {
	l := newLab(t)
	up := l.startUp()
	require.NoError(t, up.Process.Kill())
	require.Error(t, up.Wait())
	l.must("down")
	l.requireGone()
}

func TestInterruptedUpTakesTheLabDown(t *testing.T) {
	l := newLab(t)
	up := l.startUp()
	require.NoError(t, up.Process.Signal(os.Interrupt))
	require.Error(t, up.Wait())
	l.requireGone()
}

func TestUpJoinsAnUpThatIsUnderWay(t *testing.T) {
	l := newLab(t)
	first := l.startUp("--control-plane-only")
	l.must("up", "--control-plane-only")
	require.NoError(t, first.Wait())
	_, err := l.try("up")
	require.ErrorContains(t, err, "lab down --name "+l.name)
}
