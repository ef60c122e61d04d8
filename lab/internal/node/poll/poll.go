// Package poll waits for conditions that nobody announces.
package poll

import (
	"context"
	"fmt"
	"time"
)

const interval = 50 * time.Millisecond

// Until repeats a question until it is answered without an error. When patience or ctx ends, the
// error tells which of the two it was and wraps the last answer.
func Until(ctx context.Context, patience time.Duration, question func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not within %s", patience))
	defer cancel()
	for {
		err := question(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(interval):
		}
	}
}
