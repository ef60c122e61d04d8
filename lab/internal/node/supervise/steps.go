package supervise

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/example-org/subrelay-operator/lab/internal/node/control"
)

// steps keeps how far bringing the lab up has got. Steps may run side by side.
type steps struct {
	mu      sync.Mutex
	list    []control.Step
	ready   bool
	failure string
}

// run does one step's work and notes its beginning and end.
func (s *steps) run(name string, work func() error) error {
	started := time.Now()
	s.mu.Lock()
	index := len(s.list)
	s.list = append(s.list, control.Step{Name: name})
	s.mu.Unlock()

	err := work()

	s.mu.Lock()
	defer s.mu.Unlock()
	s.list[index].Took = time.Since(started)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	s.list[index].Done = true
	return nil
}

// finish notes the result of all steps.
func (s *steps) finish(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failure = err.Error()
		return
	}
	s.ready = true
}

func (s *steps) describe(status *control.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	status.Steps, status.Ready, status.Failure = slices.Clone(s.list), s.ready, s.failure
}
