package controlplane

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// The ports that FreePort chooses from. They lie below those that the kernel gives to outgoing
// connections, one of which could otherwise take the port before its server listens.
const (
	firstPort = 20000
	ports     = 10000
	attempts  = 100
)

// FreePort returns a port of the host's loopback on which nobody listens.
func FreePort() (int, error) {
	for range attempts {
		port := firstPort + rand.IntN(ports)
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue // most likely somebody listens there
		}
		if err := listener.Close(); err != nil {
			return 0, fmt.Errorf("look for a free port: %w", err)
		}
		return port, nil
	}
	return 0, errors.New("no free port found on 127.0.0.1: end programs that listen there")
}
