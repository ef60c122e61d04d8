package progress

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// screen is a writer that a test may read while steps run.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func TestPlainLines(t *testing.T) {
	out := &screen{}
	report := newWriter(out, 0, time.Hour)
	report.Step("one")(nil)
	report.Step("two")(errors.New("no luck"))

	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 4)
	assert.Regexp(t, `^\[\d+\.\ds\] one \.\.\.$`, lines[0])
	assert.Regexp(t, `^\[\d+\.\ds\] one: done in \d+\S*s$`, lines[1])
	assert.Regexp(t, `two: failed after`, lines[3])
}

func TestPlainLinesShowThatALongStepIsAlive(t *testing.T) {
	out := &screen{}
	report := newWriter(out, 0, time.Millisecond)
	outer := report.Step("outer")
	inner := report.Step("inner")
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "inner: still working after") },
		10*time.Second, time.Millisecond)
	inner(nil)
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "outer: still working after") },
		10*time.Second, time.Millisecond)
	outer(nil)
}

func TestTerminalKeepsOneLiveLine(t *testing.T) {
	out := &screen{}
	report := newWriter(out, 20, time.Hour)
	done := report.Step("a step with a name longer than the terminal is wide")
	live := []rune(strings.TrimPrefix(out.String(), "\r\033[K"))
	assert.Len(t, live, 19, "a line as wide as the terminal would wrap")

	done(nil)
	assert.Contains(t, out.String(), "\r\033[K✓ a step with a name longer than the terminal is wide (0s)\n")
	report.Step("bad")(errors.New("no luck"))
	assert.Contains(t, out.String(), "✗ bad")
}

func TestNothingIsWrittenAfterTheLastStep(t *testing.T) {
	out := &screen{}
	report := newWriter(out, 80, time.Microsecond)
	for range 200 {
		report.Step("short")(nil)
		assert.True(t, strings.HasSuffix(out.String(), "\n"), "the live line came back")
	}
}

func TestAFileIsNoTerminal(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	defer file.Close()
	New(file).Step("one")(nil)
	text, err := os.ReadFile(file.Name())
	require.NoError(t, err)
	assert.NotContains(t, string(text), "\033")
	assert.Contains(t, string(text), "one: done in")
}
