//go:build e2e

package e2e

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every interface gives itself an IPv6 address that is valid on its link, in a cluster without IPv6 too. The lab's agent
// enforces policies for IPv4 alone there, so on the link nothing holds a pool back. This is no promise but a known limit,
// which docs/traffic.md tells with what to do about it.
func TestLinkLocalAddresses(t *testing.T) {
	t.Parallel()
	inside, other := newPool("link"), newPool("link-other")
	create(t, inside)
	create(t, other)
	awaitReady(t, inside.Name)
	awaitReady(t, other.Name)
	bridge := linkLocal(t, prober{"outside", "provider", "prober"}, "cni0")
	neighbour := linkLocal(t, inPool(other.Name), "eth0")

	var rows [][]string
	for _, target := range []struct {
		name    string
		address netip.Addr
		port    int
	}{
		{"kubelet", bridge, 10250},
		{"API server", bridge, 6443},
		{"another pool's cpa", neighbour, cpaPort},
		{"another pool's cpa-manager", neighbour, managerPort},
	} {
		way := fmt.Sprintf("tcp=[%s%%eth0]:%d", target.address, target.port)
		fromFree, fromPool := free.try(t, "", way)[way], inPool(inside.Name).try(t, "", way)[way]
		assert.Equal(t, reached, fromFree, "%s, from a Pod without policies", target.name)
		assert.Equal(t, reached, fromPool, "%s, from a pool: if it is refused now, docs/traffic.md is to say so", target.name)
		rows = append(rows, []string{target.name, string(fromFree), string(fromPool)})
	}
	compareWithPage(t, "on the link", []string{"target", "Pod without policies", "pool's Pod"}, rows)
}

// linkLocal is the IPv6 address that an interface has given itself.
func linkLocal(t *testing.T, at prober, device string) netip.Addr {
	t.Helper()
	table, err := lab.Kubectl(t.Context(), "exec", at.pod, "--namespace="+at.namespace, "--container="+at.container, "--", "cat", "/proc/net/if_inet6")
	require.NoError(t, err)
	for line := range strings.Lines(table) {
		const columns = 6 // the first is the address, the last the interface
		row := strings.Fields(line)
		if len(row) != columns || row[columns-1] != device {
			continue
		}
		bytes, err := hex.DecodeString(row[0])
		require.NoError(t, err)
		address, ok := netip.AddrFromSlice(bytes)
		require.True(t, ok)
		return address
	}
	require.Fail(t, "the interface has no IPv6 address", device)
	return netip.Addr{}
}
