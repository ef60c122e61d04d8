// Package isolation is the start gate of a pool's Pod: it watches, from inside the Pod, for the moment from which the
// NetworkPolicies hold. A network agent enforces them some time after the Pod got its address, and some clusters never do.
package isolation

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// refusalsNeeded is how many rounds in a row must be refused. One may be a lost packet, or a moment in which the
	// network agent rebuilds its rules.
	refusalsNeeded = 5

	// dialTimeout bounds one attempt. Inside a cluster a connection is made within milliseconds; an agent that drops
	// packets instead of rejecting them costs this long each time.
	dialTimeout = 500 * time.Millisecond

	// roundPause is the time between two rounds.
	roundPause = 200 * time.Millisecond
)

// Dialer is the part of net.Dialer that the gate needs.
type Dialer interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// Resolver is the part of net.Resolver that the gate needs.
type Resolver interface {
	LookupHost(ctx context.Context, host string) ([]string, error)
}

// Gate waits until the Pod that it runs in cannot reach what it must not reach, and can find its proxy.
type Gate struct {
	// Forbidden are addresses, host:port, that answer connections, but not to an isolated Pod.
	Forbidden []string
	// Proxy is the address, host:port, of the only way out.
	Proxy string
	// Budget is how long the walls may take to stand.
	Budget time.Duration

	Dialer   Dialer
	Resolver Resolver
}

// Wait returns what it saw as one line for a person. The error, of one line too, says what is still reachable, or that
// the proxy's name cannot be resolved, when the budget is used up.
func (g *Gate) Wait(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, g.Budget)
	defer cancel()
	var reachable []string // by the newest round that was let through
	for refusals := 0; ; {
		accepted := g.reachable(ctx)
		refusals++
		if len(accepted) > 0 {
			reachable, refusals = accepted, 0
		}
		if refusals == refusalsNeeded {
			break
		}
		if pause(ctx) != nil {
			return "", fmt.Errorf("this Pod still reached %s after %s: the cluster's network does not enforce NetworkPolicies "+
				"here, so nothing is started", strings.Join(reachable, ", "), g.Budget)
		}
	}
	proxy, err := g.findProxy(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("refused: %s; %s", strings.Join(g.Forbidden, ", "), proxy), nil
}

// reachable dials all forbidden addresses at once and returns those that accept.
func (g *Gate) reachable(ctx context.Context) []string {
	accepted := make([]bool, len(g.Forbidden))
	var group errgroup.Group
	for i, address := range g.Forbidden {
		group.Go(func() error {
			accepted[i] = g.accepts(ctx, address)
			return nil
		})
	}
	_ = group.Wait() // no attempt returns an error: not to be let through is what is hoped for
	var reachable []string
	for i, address := range g.Forbidden {
		if accepted[i] {
			reachable = append(reachable, address)
		}
	}
	return reachable
}

func (g *Gate) accepts(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	connection, err := g.Dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	_ = connection.Close() // nothing was sent
	return true
}

// findProxy is satisfied by a proxy that does not answer, since pools start without it too; but its name must resolve:
// that shows the door for DNS to be open.
func (g *Gate) findProxy(ctx context.Context) (string, error) {
	host, _, err := net.SplitHostPort(g.Proxy)
	if err != nil {
		return "", fmt.Errorf("the proxy's address: %w", err)
	}
	for {
		if g.accepts(ctx, g.Proxy) {
			return "reachable: " + g.Proxy, nil
		}
		_, err := g.Resolver.LookupHost(ctx, host)
		if err == nil {
			return "resolvable, but does not answer: " + g.Proxy, nil
		}
		if pause(ctx) != nil {
			return "", fmt.Errorf("cannot resolve the proxy's name within %s: look at the Service, and at dns in the operator "+
				"configuration: %w", g.Budget, withoutNewlines(err))
		}
	}
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(roundPause):
		return nil
	}
}

func withoutNewlines(err error) error {
	return errors.New(strings.ReplaceAll(err.Error(), "\n", " "))
}
