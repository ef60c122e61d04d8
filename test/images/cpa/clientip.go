package main

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// clientIP believes X-Forwarded-For and X-Real-IP from anybody, as the real
// program does: its web framework's default trusts every peer as a proxy.
func clientIP(r *http.Request) string {
	for _, header := range []string{"X-Forwarded-For", "X-Real-IP"} {
		if address, ok := leftmostAddress(r.Header.Get(header)); ok {
			return address
		}
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	return host
}

// leftmostAddress returns the first entry of a list in which every entry is an
// IP address.
func leftmostAddress(list string) (string, bool) {
	entries := strings.Split(list, ",")
	for _, entry := range entries {
		if _, err := netip.ParseAddr(strings.TrimSpace(entry)); err != nil {
			return "", false
		}
	}
	return strings.TrimSpace(entries[0]), true
}
