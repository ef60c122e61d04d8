package main

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func match(t *testing.T, hostPort string, lines ...string) string {
	t.Helper()
	var rules []rule
	for _, line := range lines {
		parsed, err := parseRule(line)
		require.NoError(t, err)
		rules = append(rules, parsed)
	}
	wanted, err := parseTarget(http.MethodGet, hostPort)
	require.NoError(t, err)
	resolver := names{"inside.example": "10.0.0.1", "outside.example": "203.0.113.1"}
	return matchRule(t.Context(), rules, wanted, resolver.lookup).text
}

func TestRules(t *testing.T) {
	const none = "no rule"
	for _, test := range []struct {
		rule    string
		matches []string
		not     []string
	}{
		{
			"DOMAIN,a.example,REJECT",
			[]string{"a.example:80", "a.example.:80"},
			[]string{"A.Example:80", "b.a.example:80", "a.example.org:80"},
		}, {
			"DOMAIN-SUFFIX, Cluster.local, REJECT",
			[]string{"cluster.local:80", "kubernetes.default.svc.cluster.local:443", "x.cluster.local.:1"},
			[]string{"X.CLUSTER.LOCAL:80", "notcluster.local:80", "cluster.local.example:80", "10.0.0.1:80"},
		}, {
			`DOMAIN-REGEX,^[a-z]{1,3}\.example$,REJECT`,
			[]string{"a.example:80", "ABC.Example.:80"},
			[]string{"abcd.example:80", "example:80"},
		}, {
			"DOMAIN-REGEX,[0-9],REJECT",
			[]string{"127.1:80", "2130706433:80", "0x7f.1:80"},
			[]string{"127.0.0.1:80", "[::1]:80", "[fe80::1%eth0]:80"},
		}, {
			"IP-CIDR,10.0.0.9/8,REJECT",
			[]string{"10.1.2.3:80", "[::ffff:10.1.2.3]:80", "inside.example:80"},
			[]string{"11.0.0.1:80", "outside.example:80", "unknown.example:80"},
		}, {
			"IP-CIDR,10.0.0.0/8,REJECT,no-resolve",
			[]string{"10.1.2.3:80"},
			[]string{"inside.example:80"},
		}, {
			"IP-CIDR6,fd00::/8,REJECT",
			[]string{"[fd00::1]:80", "[fd00::1%eth0]:80"},
			[]string{"[2001:db8::1]:80", "10.0.0.1:80"},
		}, {
			"GEOIP,lan,REJECT",
			[]string{
				"127.0.0.1:80", "10.0.0.1:80", "172.16.0.1:80", "192.168.1.1:80", "169.254.169.254:80",
				"224.0.0.1:80", "0.0.0.0:80", "[::1]:80", "[fd00::1]:80", "[fe80::1]:80", "inside.example:80",
			},
			[]string{"203.0.113.1:80", "outside.example:80", "unknown.example:80"},
		}, {
			"GEOIP,LAN,REJECT,no-resolve",
			[]string{"127.0.0.1:80"},
			[]string{"inside.example:80"},
		}, {
			"MATCH,REJECT",
			[]string{"unknown.example:80", "10.0.0.1:80"},
			nil,
		},
	} {
		for _, hostPort := range test.matches {
			assert.NotEqual(t, none, match(t, hostPort, test.rule), "%s should match %s", test.rule, hostPort)
		}
		for _, hostPort := range test.not {
			assert.Equal(t, none, match(t, hostPort, test.rule), "%s should not match %s", test.rule, hostPort)
		}
	}
}

func TestTheFirstMatchingRuleWins(t *testing.T) {
	rules := []string{"DOMAIN,inside.example,DIRECT", "IP-CIDR,10.0.0.0/8,REJECT", "MATCH,DIRECT"}
	assert.Equal(t, "DOMAIN,inside.example", match(t, "inside.example:80", rules...))
	assert.Equal(t, "IP-CIDR,10.0.0.0/8", match(t, "10.0.0.1:80", rules...))
	assert.Equal(t, "MATCH", match(t, "unknown.example:80", rules...))
}

func TestALookedUpAddressCountsForLaterRules(t *testing.T) {
	assert.Equal(t, "GEOIP,LAN", match(t, "inside.example:80",
		"IP-CIDR,192.0.2.0/24,DIRECT", "GEOIP,LAN,REJECT,no-resolve"))
}

func TestTargetsAreRefused(t *testing.T) {
	for _, hostPort := range []string{"a.example", ":80", "...:80", "a:b:80"} {
		_, err := parseTarget(http.MethodGet, hostPort)
		assert.Error(t, err, hostPort)
	}
}

func TestCONNECTKeepsMappedAddresses(t *testing.T) {
	for method, want := range map[string]string{
		http.MethodGet:     "10.0.0.1",
		http.MethodConnect: "::ffff:10.0.0.1",
	} {
		wanted, err := parseTarget(method, "[::ffff:10.0.0.1]:443")
		require.NoError(t, err)
		assert.Equal(t, want, wanted.address.String(), method)
	}
}

func TestNamesAreLookedUpWithoutSearchDomains(t *testing.T) {
	assert.Equal(t, "cpa.", fullName("cpa"))
	assert.Equal(t, "10.0.0.1", fullName("10.0.0.1"))
	address, err := uplink{}.lookup(t.Context(), "localhost")
	require.NoError(t, err)
	assert.True(t, address.Is4() && address.IsLoopback(), address)
}
