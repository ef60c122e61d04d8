// Command cpa stands in for CLIProxyAPI in tests of the operator. It keeps the
// real program's contract where the operator, the manager and the users of a
// pool touch it; ../README.md lists the points.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

const version = "standin"

func main() {
	configPath := flag.String("config", "", "path of config.yaml (default: config.yaml in the working directory)")
	localModel := flag.Bool("local-model", false, "do not fetch the model catalogue at start")
	flag.Parse()

	fmt.Printf("CLIProxyAPI Version: %s\n", version)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	err := run(ctx, options{
		configPath:         *configPath,
		localModel:         *localModel,
		managementPassword: os.Getenv("MANAGEMENT_PASSWORD"),
	})
	if err != nil {
		// The real program returns from main after logging: a failed start is exit code 0.
		slog.Error("CLIProxyAPI stopped", "error", err)
	}
}
