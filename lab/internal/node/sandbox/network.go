package sandbox

import (
	"fmt"
	"net"
	"os"

	"github.com/vishvananda/netlink"
)

const (
	// NodeIP is the node's address in the lab's own network.
	NodeIP = "172.30.0.2"

	nodeInterface = "eth0"
	nodePrefix    = 24
	// Nobody answers at the gateway: the default route only gives packets to unknown
	// addresses, of Services above all, a way through the rules that rewrite them.
	gatewayIP = "172.30.0.1"
)

// startNetwork brings up loopback, the node's interface, the default route and forwarding.
func startNetwork() error {
	if err := startLoopback(); err != nil {
		return err
	}
	// A bridge, because not every kernel has dummy interfaces.
	node := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: nodeInterface}}
	if err := netlink.LinkAdd(node); err != nil {
		return fmt.Errorf("add bridge %s: %w", nodeInterface, err)
	}
	address := &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(NodeIP), Mask: net.CIDRMask(nodePrefix, 32)}}
	if err := netlink.AddrAdd(node, address); err != nil {
		return fmt.Errorf("add address %s: %w", NodeIP, err)
	}
	if err := netlink.LinkSetUp(node); err != nil {
		return fmt.Errorf("bring up bridge %s: %w", nodeInterface, err)
	}
	route := &netlink.Route{LinkIndex: node.Attrs().Index, Gw: net.ParseIP(gatewayIP)}
	if err := netlink.RouteAdd(route); err != nil {
		return fmt.Errorf("add the default route: %w", err)
	}
	// A setting of the network namespace, not of the host.
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
		return fmt.Errorf("switch on forwarding: %w", err)
	}
	return nil
}

func startLoopback() error {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find the loopback interface: %w", err)
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		return fmt.Errorf("bring up the loopback interface: %w", err)
	}
	return nil
}
