// Command cpa-manager stands in for CPA-Manager-Plus in tests of the operator.
// It keeps the real program's contract where the operator and the users of a
// pool touch it; ../README.md lists the points.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Getenv)
	stop()
	if err != nil {
		slog.Error("cpa-manager stopped", "error", err)
		os.Exit(1)
	}
}
