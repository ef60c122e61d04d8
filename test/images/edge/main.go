// Command edge stands in for Envoy in the data plane that Envoy Gateway makes: it takes Envoy's arguments, asks the real
// controller for its configuration as Envoy does, over xDS, and follows the listeners, routes and endpoints that it gets.
// Called envoy-gateway it stands in for the sidecar beside Envoy. ../README.md lists what it keeps and what it leaves out.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	name := filepath.Base(os.Args[0])
	log := slog.New(slog.NewJSONHandler(os.Stdout, nil))
	run := runEnvoy
	if name == "envoy-gateway" {
		run = runSidecar
	}
	err := run(ctx, os.Args[1:], log)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

func runEnvoy(ctx context.Context, arguments []string, log *slog.Logger) error {
	options, err := parseOptions(arguments)
	if err != nil {
		return err
	}
	return serve(ctx, options, log)
}

// serve follows the controller until ctx ends, then at once ends all connections, as Envoy does.
func serve(ctx context.Context, options options, log *slog.Logger) error {
	connection, err := options.connect()
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	sites := newSites(log)
	defer sites.close()
	follow(ctx, connection, options.node(), sites.update, log)
	return nil
}
