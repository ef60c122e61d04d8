package main

import (
	"net"
	"net/netip"
	"slices"
)

// allowedListener closes connections from addresses outside the allowed ranges
// without an answer. No ranges: everybody is allowed.
type allowedListener struct {
	net.Listener
	allowed []netip.Prefix
}

func (l allowedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || l.allows(conn.RemoteAddr()) {
			return conn, err
		}
		_ = conn.Close()
	}
}

func (l allowedListener) allows(peer net.Addr) bool {
	if len(l.allowed) == 0 {
		return true
	}
	addrPort, err := netip.ParseAddrPort(peer.String())
	if err != nil {
		return false
	}
	address := addrPort.Addr().Unmap()
	return slices.ContainsFunc(l.allowed, func(p netip.Prefix) bool { return p.Contains(address) })
}
