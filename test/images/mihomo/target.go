package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// Time limits of the real program.
const (
	lookupTimeout = 5 * time.Second
	dialTimeout   = 5 * time.Second
)

// target is where a client wants to go.
type target struct {
	host    string
	port    string
	address netip.Addr // of host; invalid while host is a name that nobody looked up
}

// parseTarget reads host:port. A trailing dot of the host is dropped, so that
// a fully qualified name cannot slip past a domain rule. IPv4 addresses written
// as IPv6 ones are taken for IPv4 ones except in a CONNECT, where no rule for
// IPv4 addresses matches them: the real program does that.
func parseTarget(method, hostPort string) (target, error) {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		return target{}, err
	}
	host = strings.TrimRight(host, ".")
	if host == "" {
		return target{}, fmt.Errorf("%q has no host", hostPort)
	}
	t := target{host: host, port: port}
	if address, err := netip.ParseAddr(host); err == nil {
		t.address = address
		if method != http.MethodConnect {
			t.address = address.Unmap()
		}
	}
	return t, nil
}

// isAddress tells an address from a name, looked up or not.
func (t target) isAddress() bool {
	_, err := netip.ParseAddr(t.host)
	return err == nil
}

func (t target) hostPort() string { return net.JoinHostPort(t.host, t.port) }

// lookupFunc finds an address of a host name.
type lookupFunc func(ctx context.Context, host string) (netip.Addr, error)

// uplink is what the process reaches directly: the system's resolver and, when
// ipv6 is on, IPv6.
type uplink struct {
	ipv6 bool
}

func (u uplink) lookup(ctx context.Context, host string) (netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	family := "ip4"
	if u.ipv6 {
		family = "ip"
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, family, fullName(host))
	if err != nil {
		return netip.Addr{}, err
	}
	return addresses[0].Unmap(), nil
}

func (u uplink) dial(ctx context.Context, host, port string) (net.Conn, error) {
	family := "tcp4"
	if u.ipv6 {
		family = "tcp"
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	return dialer.DialContext(ctx, family, net.JoinHostPort(fullName(host), port))
}

// fullName keeps the search domains of resolv.conf out, which the real program
// ignores as well. The hosts file knows localhost only without the dot.
func fullName(host string) string {
	if _, err := netip.ParseAddr(host); err == nil || host == "localhost" {
		return host
	}
	return host + "."
}
