package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// tryTimeout bounds one attempt. Inside a cluster an answer takes milliseconds; a policy that drops packets costs
	// this long.
	tryTimeout = 3 * time.Second

	// tryPause is the time between two attempts at the same target.
	tryPause = 10 * time.Millisecond

	// knownName is one that every cluster's resolver knows.
	knownName = "kubernetes.default.svc.cluster.local."
)

// result is what became of one target.
type result struct {
	Target   string `json:"target"`
	Attempts int    `json:"attempts"`
	// Reached counts the attempts that were answered.
	Reached int `json:"reached"`
	// Detail is what the newest attempt saw.
	Detail string `json:"detail"`
}

// attempt returns what it saw; an error means that the target was not reached.
type attempt func(ctx context.Context) (string, error)

func runTry(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("try", flag.ContinueOnError)
	proxy := flags.String("proxy", "", "the proxy for get and connect")
	lasting := flags.Duration("for", 0, "how long to go on trying, whatever is answered; 0: once")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var attempts []attempt
	for _, target := range flags.Args() {
		try, err := parseTarget(target, *proxy)
		if err != nil {
			return err
		}
		attempts = append(attempts, try)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	end := time.Now().Add(*lasting)
	results := make([]result, len(attempts))
	var group sync.WaitGroup
	for i, try := range attempts {
		group.Go(func() { results[i] = repeat(ctx, flags.Arg(i), try, end) })
	}
	group.Wait()
	encoder := json.NewEncoder(out)
	for _, r := range results {
		if err := encoder.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// repeat makes one attempt, and further ones until the time is over.
func repeat(ctx context.Context, target string, try attempt, end time.Time) result {
	r := result{Target: target}
	for {
		within, cancel := context.WithTimeout(ctx, tryTimeout)
		detail, err := try(within)
		cancel()
		r.Attempts++
		if err == nil {
			r.Reached++
			r.Detail = detail
		} else {
			r.Detail = err.Error()
		}
		if time.Now().Add(tryPause).After(end) {
			return r
		}
		select {
		case <-ctx.Done():
			return r
		case <-time.After(tryPause):
		}
	}
}

func parseTarget(text, proxy string) (attempt, error) {
	way, address, found := strings.Cut(text, "=")
	if _, _, err := net.SplitHostPort(address); !found || err != nil {
		return nil, fmt.Errorf("target %q is not WAY=HOST:PORT", text)
	}
	if (way == "get" || way == "connect") && proxy == "" {
		return nil, fmt.Errorf("target %q needs -proxy", text)
	}
	switch way {
	case "tcp":
		return func(ctx context.Context) (string, error) { return connects(ctx, address) }, nil
	case "dns-udp":
		return func(ctx context.Context) (string, error) { return resolves(ctx, "udp", address) }, nil
	case "dns-tcp":
		return func(ctx context.Context) (string, error) { return resolves(ctx, "tcp", address) }, nil
	case "get":
		return func(ctx context.Context) (string, error) { return asksProxy(ctx, proxy, address) }, nil
	case "connect":
		return func(ctx context.Context) (string, error) { return tunnels(ctx, proxy, address) }, nil
	default:
		return nil, fmt.Errorf("target %q: there is no way %q", text, way)
	}
}

func dial(ctx context.Context, network, address string) (net.Conn, error) {
	var dialer net.Dialer
	return dialer.DialContext(ctx, network, address)
}

func connects(ctx context.Context, address string) (string, error) {
	connection, err := dial(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	return "connected", connection.Close()
}

func resolves(ctx context.Context, network, address string) (string, error) {
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dial(ctx, network, address)
	}}
	addresses, err := resolver.LookupHost(ctx, knownName)
	return strings.Join(addresses, " "), err
}

// asksProxy sends a plain request. The shared Mihomo answers 502 when it does not let it through.
func asksProxy(ctx context.Context, proxy, address string) (string, error) {
	connection, err := dial(ctx, "tcp", proxy)
	if err != nil {
		return "", fmt.Errorf("the proxy: %w", err)
	}
	defer func() { _ = connection.Close() }()
	return exchange(ctx, connection, bufio.NewReader(connection), "GET http://"+address+"/", address)
}

// tunnels sends a request through a CONNECT. The shared Mihomo accepts every CONNECT and closes the tunnel at once when it
// does not let it through.
func tunnels(ctx context.Context, proxy, address string) (string, error) {
	connection, err := dial(ctx, "tcp", proxy)
	if err != nil {
		return "", fmt.Errorf("the proxy: %w", err)
	}
	defer func() { _ = connection.Close() }()
	reader := bufio.NewReader(connection)
	if _, err := exchange(ctx, connection, reader, "CONNECT "+address, address); err != nil {
		return "", err
	}
	return exchange(ctx, connection, reader, "GET /", address)
}

// exchange sends a request without a body and returns the status of the answer. Nothing of the answer's body is read: what
// follows that of a CONNECT is the tunnel.
func exchange(ctx context.Context, connection net.Conn, reader *bufio.Reader, line, host string) (string, error) {
	deadline, _ := ctx.Deadline()
	if err := connection.SetDeadline(deadline); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintf(connection, "%s HTTP/1.1\r\nHost: %s\r\n\r\n", line, host); err != nil {
		return "", err
	}
	method, _, _ := strings.Cut(line, " ")
	response, err := http.ReadResponse(reader, &http.Request{Method: method}) //nolint:bodyclose // the caller closes the connection
	if err != nil {
		return "", err
	}
	if response.StatusCode == http.StatusBadGateway {
		return "", errors.New(response.Status)
	}
	return response.Status, nil
}
