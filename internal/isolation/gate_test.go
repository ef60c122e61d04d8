package isolation_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/example-org/subrelay-operator/internal/isolation"
)

const (
	server   = "10.96.0.1:443"
	metadata = "169.254.169.254:80"
	proxy    = "mihomo-gateway.subpool-gateway.svc:7890"
)

// network lets the first connections to an address through, as many as open says; -1 means all.
type network struct {
	mu       sync.Mutex
	open     map[string]int
	attempts map[string]int
	unnamed  bool
}

func (n *network) DialContext(_ context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.attempts[address]++
	if open := n.open[address]; open >= 0 && n.attempts[address] > open {
		return nil, errors.New("connection refused")
	}
	near, far := net.Pipe()
	return near, far.Close()
}

func (n *network) LookupHost(_ context.Context, host string) ([]string, error) {
	if n.unnamed {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return []string{"10.96.7.7"}, nil
}

func TestGate(t *testing.T) {
	const always = -1
	for name, test := range map[string]struct {
		open    map[string]int
		unnamed bool
		message string
		problem string
	}{
		"walls stand, proxy answers": {
			open:    map[string]int{proxy: always},
			message: "refused: " + server + ", " + metadata + "; reachable: " + proxy,
		},
		"walls rise": {
			open:    map[string]int{server: 3, proxy: always},
			message: "refused: " + server + ", " + metadata + "; reachable: " + proxy,
		},
		"proxy does not answer": {
			message: "refused: " + server + ", " + metadata + "; resolvable, but does not answer: " + proxy,
		},
		"no walls": {
			open:    map[string]int{server: always, metadata: always, proxy: always},
			problem: "this Pod still reached " + server + ", " + metadata + " after 1m0s",
		},
		"one hole": {
			open:    map[string]int{metadata: always, proxy: always},
			problem: "this Pod still reached " + metadata + " after 1m0s",
		},
		"no name service": {
			unnamed: true,
			problem: "cannot resolve the proxy's name within 1m0s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := &network{open: test.open, attempts: map[string]int{}, unnamed: test.unnamed}
				gate := isolation.Gate{
					Forbidden: []string{server, metadata}, Proxy: proxy, Budget: time.Minute,
					Dialer: network, Resolver: network,
				}
				message, err := gate.Wait(t.Context())
				if test.problem != "" {
					require.ErrorContains(t, err, test.problem)
					require.NotContains(t, err.Error(), "\n")
					return
				}
				require.NoError(t, err)
				require.Equal(t, test.message, message)
				require.GreaterOrEqual(t, network.attempts[server], 5+test.open[server], "one refusal is no proof")
			})
		})
	}
}

// A wall that comes and goes, as while an agent rebuilds its rules, is none.
func TestGateWantsRefusalsInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flapping := dialer(func(attempt int) bool { return attempt%3 == 0 })
		gate := isolation.Gate{
			Forbidden: []string{server}, Proxy: proxy, Budget: time.Minute, Dialer: flapping, Resolver: &network{},
		}
		_, err := gate.Wait(t.Context())
		require.ErrorContains(t, err, "still reached "+server)
	})
}

// dialer returns one that tells by the number of the attempt whether it is let through.
func dialer(accepts func(attempt int) bool) isolation.Dialer {
	attempts := 0
	return dialFunc(func() (net.Conn, error) {
		attempts++
		if !accepts(attempts) {
			return nil, errors.New("connection refused")
		}
		near, far := net.Pipe()
		return near, far.Close()
	})
}

type dialFunc func() (net.Conn, error)

func (dial dialFunc) DialContext(context.Context, string, string) (net.Conn, error) { return dial() }
