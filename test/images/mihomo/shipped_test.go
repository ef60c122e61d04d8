package main

import (
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shippedGroup is the way out of the shipped configuration.
const shippedGroup = "nodes-or-nothing"

// shipped is the configuration that the operator's manifests ship, as it is.
func shipped(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("../../../deploy/gateway/mihomo/config.yaml")
	require.NoError(t, err)
	return string(content)
}

func TestShippedRules(t *testing.T) {
	cfg, err := loadConfig(home(t, shipped(t), ""))
	require.NoError(t, err)
	decide := func(method, host string) string {
		wanted, err := parseTarget(method, net.JoinHostPort(host, "443"))
		require.NoError(t, err)
		// A name must not be looked up: the answer could be another one by the time of the dial, and which
		// names a pool asks for would be told to the cluster's resolver.
		return matchRule(t.Context(), cfg.rules, wanted, nil).outbound
	}
	for about, hosts := range map[string][]string{
		"this machine": {
			"127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "::1", "::", "localhost", "LocalHost.", "a.localhost",
		},
		"private": {"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "fd00::1", "fc00::1"},
		"link-local and metadata": {
			"169.254.169.254", "fe80::1", "fe80::1%eth0", "fd00:ec2::254", "100.100.100.200", "192.0.0.192", "168.63.129.16",
			"metadata.google.internal", "Metadata.Google.Internal.",
		},
		"multicast, reserved": {"224.0.0.1", "239.1.1.1", "255.255.255.255", "240.0.0.1", "198.18.0.1", "ff02::1", "5f00::1"},
		"IPv4 as IPv6": {
			"::ffff:10.0.0.1", "::ffff:a00:1", "::ffff:100.64.0.1", "::10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::1", "2001:0:a00:1::1",
		},
		"names of the cluster": {
			"kubernetes", "kubernetes.default", "kubernetes.default.svc", "KUBERNETES.Default.SVC", "kube-dns.kube-system",
			"kubernetes.default.svc.cluster.local", "kubernetes.default.svc.Cluster.Local..", "cpa.subpool-a", "cpa.Subpool-a",
			"mihomo-gateway.subpool-gateway.svc", "cluster.local", "svc", "printer.local",
		},
		"addresses in disguise": {
			"2130706433", "0x7f000001", "017700000001", "127.1", "127.0.1", "0x7f.0.0.1", "127.0.0.0x1", "0177.0.0.1", "127.000.000.001",
		},
		"no host name": {"127。0。0。1", "１２７.0.0.1", "a.example/", "user@a.example", "a%2eexample.com", "a b.example"},
	} {
		for _, host := range hosts {
			assert.Equal(t, rejectName, decide(http.MethodConnect, host), "CONNECT, %s: %s", about, host)
			assert.Equal(t, rejectName, decide(http.MethodGet, host), "GET, %s: %s", about, host)
		}
	}
	for _, host := range []string{
		"api.example.com", "API.Example.COM.", "a-b.c_d.example", "xn--bcher-kva.example", "1.example", "svc.example", "svc.cluster.local.example",
		"203.0.113.1", "172.15.0.1", "172.32.0.1", "100.63.0.1", "100.128.0.1", "223.255.255.255", "2001:db8::1", "2606:4700::1",
	} {
		assert.Equal(t, shippedGroup, decide(http.MethodConnect, host), "CONNECT, public: %s", host)
		assert.Equal(t, shippedGroup, decide(http.MethodGet, host), "GET, public: %s", host)
	}
}

// The rules reject what a test on loopback could reach, so only MATCH is kept.
func TestShippedGroup(t *testing.T) {
	plain, overTLS := startOrigin(t)
	upstream, _ := startProxy(t, "rules: ['MATCH,DIRECT']", "", "u:p")
	before, _, found := strings.Cut(shipped(t), "rules:")
	require.True(t, found)
	config := strings.Replace(before, "port: 7890\n", "", 1) + "rules: ['MATCH," + shippedGroup + "']"
	node := httpNodeYAML(t, "upstream", upstream)
	for name, test := range map[string]struct {
		nodes, want string
		plain, tls  int
	}{
		"file missing":         {"", rejectName, http.StatusBadGateway, 0},
		"list empty":           {noProxies, rejectName, http.StatusBadGateway, 0},
		"one bad entry":        {badFile, rejectName, http.StatusBadGateway, 0},
		"nodes dead":           {deadNodes, rejectName, http.StatusBadGateway, 0},
		"direct connection":    {liveNode, rejectName, http.StatusBadGateway, 0},
		"live node":            {"proxies:\n" + node, "upstream", http.StatusOK, http.StatusOK},
		"direct and live node": {liveNode + node, "upstream", http.StatusOK, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			proxy, log := startProxy(t, config, test.nodes)
			status, _ := get(t, proxy, plain)
			assert.Equal(t, test.plain, status)
			status, _ = get(t, proxy, overTLS)
			assert.Equal(t, test.tls, status)
			decision := "decision=" + shippedGroup + "[" + test.want + "]"
			assert.Equal(t, 2, strings.Count(log.String(), decision), log.String())
		})
	}
}
