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
	if len(os.Args) > 1 && (os.Args[1] == resetCommand || os.Args[1] == resetCommandAlias) {
		if err := resetAdminKey(context.Background(), os.Getenv, os.Args[2:], os.Stdout, os.Stderr); err != nil {
			slog.Error("the admin key was not replaced", "error", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Getenv)
	stop()
	if err != nil {
		slog.Error("cpa-manager stopped", "error", err)
		os.Exit(1)
	}
}
