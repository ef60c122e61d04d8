// Command prober is both ends of the traffic that tests look at: it tries targets, from whatever Pod it runs in, and it
// is a target. It lies in the stand-in image for cpa, so that a pool's own Pod has it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

const usage = `usage:
  prober try [-proxy HOST:PORT] [-for DURATION] WAY=HOST:PORT...
      WAY is tcp (a connection), dns-udp, dns-tcp (a question to a resolver), get (a request through the proxy) or
      connect (a request in a tunnel through the proxy); a line of JSON tells what became of each
  prober serve [-relay HOST:PORT=HOST:PORT]... HOST:PORT...
      answers HTTP on the addresses and passes UDP and TCP on between the pairs; a line of JSON tells of each request`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "prober:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	switch verb, rest := args[0], args[1:]; verb {
	case "try":
		return runTry(ctx, rest, os.Stdout)
	case "serve":
		return runServe(ctx, rest, os.Stdout)
	default:
		return fmt.Errorf("there is no %q\n%s", verb, usage)
	}
}
