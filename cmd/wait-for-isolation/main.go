// Command wait-for-isolation is the first init container of a pool's Pod. It ends with 0 when the Pod is isolated, and
// with 1 and one line that says why when it is not. It takes no secret and is given none.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/example-org/subrelay-operator/internal/isolation"
)

// terminationLog is where the kubelet picks up a container's last words for the Pod's status.
const terminationLog = "/dev/termination-log"

func main() {
	message, err := run(os.Args[1:])
	if err != nil {
		message = err.Error()
	}
	fmt.Println(message)
	if writeErr := os.WriteFile(terminationLog, []byte(message), 0o600); writeErr != nil { //nolint:gosec // a constant path
		fmt.Fprintln(os.Stderr, "cannot leave a message for the Pod's status:", writeErr)
	}
	if err != nil {
		os.Exit(1)
	}
}

func run(args []string) (string, error) {
	flags := flag.NewFlagSet("wait-for-isolation", flag.ContinueOnError)
	forbidden := flags.String("forbidden", "",
		"Addresses, host:port, separated by commas, that must refuse this Pod. Default: the API server's, as the Pod's environment has it.")
	proxy := flags.String("proxy", "", "Address, host:port, of the proxy that is the only way out. Required.")
	budget := flags.Duration("budget", time.Minute, "How long to wait.")
	if err := flags.Parse(args); err != nil {
		return "", err
	}
	addresses := strings.FieldsFunc(*forbidden, func(r rune) bool { return r == ',' })
	if len(addresses) == 0 {
		host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
		if host == "" || port == "" {
			return "", errors.New("give --forbidden: this environment does not say where the API server is")
		}
		addresses = []string{net.JoinHostPort(host, port)}
	}
	if *proxy == "" {
		return "", errors.New("--proxy must be given")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	gate := isolation.Gate{
		Forbidden: addresses, Proxy: *proxy, Budget: *budget,
		Dialer: &net.Dialer{}, Resolver: net.DefaultResolver,
	}
	return gate.Wait(ctx)
}
