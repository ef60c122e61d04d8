package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/example-org/subrelay-operator/lab/internal/node/control"
	"github.com/example-org/subrelay-operator/lab/internal/node/state"
	"github.com/example-org/subrelay-operator/lab/internal/progress"
)

const (
	pollInterval = 100 * time.Millisecond
	// How many lines of the supervisor's log an error repeats.
	lastWords = 5
)

func newClient(folder state.Folder) *control.Client { return control.NewClient(folder.Socket()) }

// awaitReady follows the supervisor's steps until all are done or one failed.
func awaitReady(ctx context.Context, folder state.Folder, report progress.Reporter) error {
	client := newClient(folder)
	shown := &shownSteps{report: report}
	defer shown.abandon()
	for {
		status, err := client.Status(ctx)
		if err == nil {
			shown.update(status)
			if status.Failure != "" {
				return fmt.Errorf("lab %s did not become ready: %s; `lab status --name %s` shows its parts, "+
					"`lab down --name %s` removes it", folder.Name(), status.Failure, folder.Name(), folder.Name())
			}
			if status.Ready {
				return nil
			}
		}
		running, err := folder.Running()
		if err != nil {
			return err
		}
		if !running {
			return fmt.Errorf("the supervisor of lab %s ended%s", folder.Name(), lastLines(folder.Log("supervisor")))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollInterval):
		}
	}
}

// shownSteps repeats the supervisor's steps to a reporter.
type shownSteps struct {
	report progress.Reporter
	// done holds a function for each step that was announced, nil once it has ended.
	done []func(error)
}

func (s *shownSteps) update(status control.Status) {
	for i, step := range status.Steps {
		if i == len(s.done) {
			s.done = append(s.done, s.report.Step(step.Name))
		}
		if s.done[i] == nil || step.Took == 0 {
			continue
		}
		var err error
		if !step.Done {
			err = errors.New(status.Failure)
		}
		s.done[i](err)
		s.done[i] = nil
	}
}

// abandon ends the steps that are still shown as running.
func (s *shownSteps) abandon() {
	for _, done := range s.done {
		if done != nil {
			done(errors.New("abandoned"))
		}
	}
}

func lastLines(path string) string {
	data, err := os.ReadFile(path)
	if err != nil || len(data) == 0 {
		return " without a word"
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return ":\n" + strings.Join(lines[max(0, len(lines)-lastWords):], "\n")
}
