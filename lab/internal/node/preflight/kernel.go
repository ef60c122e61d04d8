package preflight

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ProbeVerb is the hidden command that runs ProbeKernel.
const ProbeVerb = "probe-kernel"

// CheckKernel tries what a node needs of the kernel, in namespaces of a short-lived process of
// this program, so that the host is left as it is.
func CheckKernel() error {
	var output bytes.Buffer
	probe := exec.Command("/proc/self/exe", ProbeVerb)
	probe.Stdout, probe.Stderr = &output, &output
	probe.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS}
	if err := probe.Run(); err != nil {
		return fmt.Errorf("this machine's kernel cannot run the lab: %w\n%s", err, strings.TrimSpace(output.String()))
	}
	return nil
}

// ProbeKernel tries kernel features in the calling process's own network namespace. It returns
// everything that is missing.
func ProbeKernel() error {
	features := []struct {
		name string
		try  func() error
	}{
		{"bridges (CONFIG_BRIDGE)", tryBridge},
		{"virtual Ethernet pairs (CONFIG_VETH)", tryVeth},
		{"nftables (CONFIG_NF_TABLES)", tryTool("nft", "add", "table", "inet", "lab-probe")},
		{"iptables through nftables (CONFIG_NFT_COMPAT)", tryTool("iptables", "-A", "FORWARD", "-m", "conntrack", "--ctstate",
			"ESTABLISHED", "-m", "comment", "--comment", "probe", "-j", "ACCEPT")},
		{"address sets (CONFIG_IP_SET_HASH_IP)", tryTool("ipset", "create", "lab-probe", "hash:ip")},
		{"packets of bridges in iptables (CONFIG_BRIDGE_NETFILTER)", tryFile("/proc/sys/net/bridge/bridge-nf-call-iptables")},
	}
	var problems []error
	for _, feature := range features {
		if err := feature.try(); err != nil {
			problems = append(problems, fmt.Errorf("- no %s: %w", feature.name, err))
		}
	}
	return errors.Join(problems...)
}

func tryBridge() error {
	return netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "probe0"}})
}

func tryVeth() error {
	return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "probe1"}, PeerName: "probe2"})
}

func tryTool(name string, args ...string) func() error {
	return func() error {
		output, err := exec.Command(name, args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(string(output)))
		}
		return nil
	}
}

func tryFile(path string) func() error {
	return func() error {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("%w; try `modprobe br_netfilter`", err)
		}
		return nil
	}
}
