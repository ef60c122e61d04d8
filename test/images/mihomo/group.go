package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"slices"
)

// group tries its members until one can be dialled: the dial takes the place
// of the real program's health check.
type group struct {
	name        string
	members     []outbound // proxies first, then the nodes of the providers
	failClosed  bool       // REJECT is listed, it is what is left when no member is alive
	loadBalance bool       // the host decides which member comes first
}

func (g group) dial(ctx context.Context, t target) (net.Conn, string, error) {
	err := errors.New("no member is alive")
	for _, member := range g.order(t) {
		conn, via, memberErr := member.dial(ctx, t)
		if memberErr == nil {
			return conn, g.via(via), nil
		}
		err = errors.Join(err, fmt.Errorf("%s: %w", via, memberErr))
	}
	if g.failClosed {
		return nil, g.via(rejectName), errors.Join(errRejected, err)
	}
	return nil, g.via("none"), err
}

func (g group) via(member string) string { return g.name + "[" + member + "]" }

// order returns the members in the order in which they are tried. The same
// host gets the same order in every replica.
func (g group) order(t target) []outbound {
	if !g.loadBalance || len(g.members) == 0 {
		return g.members
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(t.host)) // never fails
	first := int(hash.Sum32() % uint32(len(g.members)))
	return slices.Concat(g.members[first:], g.members[:first])
}
