// Package progress tells a person which step is running and for how long.
package progress

import (
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/term"
)

// Reporter announces steps. Steps may nest and may run side by side.
type Reporter interface {
	// Step announces that name begins. The caller calls done exactly once, with the step's result.
	// The error's text is not printed: whoever handles the error does that.
	Step(name string) (done func(error))
}

// Discard reports nothing.
var Discard Reporter = discard{}

type discard struct{}

func (discard) Step(string) func(error) { return func(error) {} }

const (
	frameEvery = 100 * time.Millisecond // of the spinner on a terminal
	aliveEvery = 30 * time.Second       // between signs of life in a log
)

// New returns a reporter that writes to out: on a terminal one live line with a spinner for what is running above which
// the finished steps scroll away, otherwise one line for each beginning and end and a sign of life during long steps.
func New(out *os.File) Reporter {
	if width, _, err := term.GetSize(int(out.Fd())); err == nil && width > 0 {
		return newWriter(out, width, frameEvery)
	}
	return newWriter(out, 0, aliveEvery)
}

// writer implements Reporter. Its ticker goroutine runs only while a step is open.
type writer struct {
	out   io.Writer
	width int // columns of the terminal; 0 means that out is no terminal
	every time.Duration
	begun time.Time

	mu    sync.Mutex
	open  []*step // in order of their beginning
	stop  chan struct{}
	frame int
}

type step struct {
	name  string
	begun time.Time
}

func newWriter(out io.Writer, width int, every time.Duration) *writer {
	return &writer{out: out, width: width, every: every, begun: time.Now()}
}

func (w *writer) Step(name string) func(error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &step{name: name, begun: time.Now()}
	w.open = append(w.open, s)
	if len(w.open) == 1 {
		w.stop = make(chan struct{})
		go w.tick(w.stop)
	}
	if w.width > 0 {
		w.drawLive()
	} else {
		w.line("%s ...", name)
	}
	return func(err error) { w.finish(s, err) }
}

func (w *writer) finish(s *step, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open = slices.DeleteFunc(w.open, func(o *step) bool { return o == s })
	if len(w.open) == 0 {
		close(w.stop)
	}
	took := round(time.Since(s.begun))
	result, mark := "done in", "✓"
	if err != nil {
		result, mark = "failed after", "✗"
	}
	if w.width == 0 {
		w.line("%s: %s %s", s.name, result, took)
		return
	}
	fmt.Fprintf(w.out, "\r\033[K%s %s (%s)\n", mark, s.name, took)
	w.drawLive()
}

func (w *writer) tick(stop <-chan struct{}) {
	ticker := time.NewTicker(w.every)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			w.showAlive(stop)
		}
	}
}

func (w *writer) showAlive(stop <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-stop: // the last step ended while this goroutine waited for the lock
		return
	default:
	}
	if w.width > 0 {
		w.frame++
		w.drawLive()
		return
	}
	newest := w.open[len(w.open)-1]
	w.line("%s: still working after %s", newest.name, round(time.Since(newest.begun)))
}

// drawLive rewrites the terminal's last line with the newest open step. The line is cut to the terminal's width,
// because a line that wraps cannot be rewritten.
func (w *writer) drawLive() {
	if len(w.open) == 0 {
		return
	}
	spinner := []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
	newest := w.open[len(w.open)-1]
	text := []rune(fmt.Sprintf("%c %s (%s)", spinner[w.frame%len(spinner)], newest.name, time.Since(newest.begun).Truncate(time.Second)))
	fmt.Fprintf(w.out, "\r\033[K%s", string(text[:min(len(text), w.width-1)]))
}

func (w *writer) line(format string, args ...any) {
	fmt.Fprintf(w.out, "[%.1fs] %s\n", time.Since(w.begun).Seconds(), fmt.Sprintf(format, args...))
}

// round keeps a tenth of a second below ten seconds and whole seconds above.
func round(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}
