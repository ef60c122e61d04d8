package poll

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestUntilAsksUntilTheAnswerIsGood(t *testing.T) {
	asked := 0
	require.NoError(t, Until(t.Context(), time.Minute, func(context.Context) error {
		asked++
		if asked < 3 {
			return errors.New("not yet")
		}
		return nil
	}))
	require.Equal(t, 3, asked)
}

func TestUntilTellsWhyItGaveUp(t *testing.T) {
	never := errors.New("never")
	question := func(context.Context) error { return never }
	err := Until(t.Context(), time.Millisecond, question)
	require.EqualError(t, err, "not within 1ms: never")
	require.ErrorIs(t, err, never)

	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, Until(ended, time.Minute, question), context.Canceled)
}
