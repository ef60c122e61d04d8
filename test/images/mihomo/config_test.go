package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFullConfigIsAccepted(t *testing.T) {
	p := home(t, full(t), "")
	cfg, err := loadConfig(p)
	require.NoError(t, err)
	assert.Len(t, cfg.rules, 3)
	assert.Equal(t, filepath.Join(p.home, "providers", "nodes.yaml"), cfg.ProxyProviders["nodes"].Path)
}

func TestConfigIsRefused(t *testing.T) {
	replace := func(old, changed string) string { return strings.Replace(full(t), old, changed, 1) }
	for name, test := range map[string]struct{ config, want string }{
		"empty":                  {"", "port"},
		"not YAML":               {"port: [", "yaml"},
		"port is text":           {"port: http", "into int"},
		"port out of range":      {"port: 70000", "port"},
		"bind-address":           {replace(`bind-address: "*"`, "bind-address: everywhere"), "bind-address"},
		"lan-allowed-ips":        {replace("127.0.0.0/8", "127.0.0.0/99"), "prefix"},
		"authentication":         {replace("subrelay:password", "subrelay"), "user:password"},
		"mode":                   {replace("mode: rule", "mode: global"), "mode"},
		"log-level":              {replace("log-level: info", "log-level: loud"), "log-level"},
		"own resolver":           {replace("enable: false", "enable: true"), "dns.enable"},
		"provider type":          {replace("type: file", "type: http"), "proxy-providers.nodes"},
		"provider path outside":  {replace("./providers/nodes.yaml", "/etc/nodes.yaml"), "SAFE_PATHS"},
		"provider path above":    {replace("./providers/nodes.yaml", "../nodes.yaml"), "SAFE_PATHS"},
		"group without name":     {replace("name: GW", "name: ''"), "name is missing"},
		"group type":             {replace("type: fallback", "type: relay"), "type"},
		"group of nothing":       {replace("    proxies: [REJECT]\n    use: [nodes]\n", ""), "proxies or use"},
		"group of unknown":       {replace("[REJECT]", "[NODE-1]"), "not defined above"},
		"group of itself":        {replace("[REJECT]", "[GW]"), "not defined above"},
		"group with taken name":  {replace("name: GW", "name: DIRECT"), "taken"},
		"unknown provider":       {replace("use: [nodes]", "use: [others]"), "provider"},
		"rule type":              {replace("MATCH,GW", "SCRIPT,x,GW"), "does not know"},
		"rule with database":     {replace("GEOIP,LAN", "GEOIP,CN"), "database"},
		"rule with bad range":    {replace("GEOIP,LAN", "IP-CIDR,10.0.0.0"), "rules[1]"},
		"rule without outbound":  {replace("MATCH,GW", "MATCH"), "MATCH,outbound"},
		"rule with few fields":   {replace("DOMAIN-SUFFIX,cluster.local,REJECT", "DOMAIN,a"), "payload"},
		"rule with bad option":   {replace("no-resolve", "resolve"), "no-resolve"},
		"rule with bad regex":    {replace("GEOIP,LAN,REJECT,no-resolve", "DOMAIN-REGEX,(,REJECT"), "missing closing"},
		"regex without outbound": {replace("GEOIP,LAN,REJECT,no-resolve", "DOMAIN-REGEX,a"), "expression"},
		"rule to nowhere":        {replace("MATCH,GW", "MATCH,GATEWAY"), "not defined"},
		"node without server":    {"proxies: [{name: a, type: http, port: 1}]\n" + full(t), "server"},
		"node without port":      {"proxies: [{name: a, type: http, server: s}]\n" + full(t), "port"},
		"two nodes of one name":  {"proxies: [{name: a, type: direct}, {name: a, type: direct}]\n" + full(t), "taken"},
		"node without a type":    {"proxies: [{name: a}]\n" + full(t), "type"},
		"node without a name":    {"proxies: [{type: direct}]\n" + full(t), "name"},
		"the same key two times": {"mode: rule\n" + full(t), "already defined"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loadConfig(home(t, test.config, ""))
			assert.ErrorContains(t, err, test.want)
		})
	}
}

func TestSafePaths(t *testing.T) {
	p := home(t, strings.Replace(full(t), "./providers/nodes.yaml", "/etc/mihomo/nodes.yaml", 1), "")
	p.safe = []string{"/srv", "/etc/mihomo"}
	_, err := loadConfig(p)
	assert.NoError(t, err)
}

func TestListenAddress(t *testing.T) {
	for want, cfg := range map[string]config{
		"127.0.0.1:7890": {Port: 7890, BindAddress: "*"},
		":7890":          {Port: 7890, BindAddress: "*", AllowLAN: true},
		"10.0.0.1:7890":  {Port: 7890, BindAddress: "10.0.0.1", AllowLAN: true},
	} {
		assert.Equal(t, want, cfg.listenAddress())
	}
}

func TestPaths(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	p, err := findPaths("", "")
	require.NoError(t, err)
	assert.DirExists(t, p.home)
	assert.Equal(t, filepath.Join(p.home, "config.yaml"), p.file)

	t.Setenv("HOME", "/proc")
	_, err = findPaths("", "")
	require.ErrorContains(t, err, "-d")

	t.Setenv("SAFE_PATHS", "/a:/b")
	p, err = findPaths(t.TempDir(), "config.yaml")
	require.NoError(t, err)
	assert.Equal(t, []string{"/a", "/b"}, p.safe)
	assert.True(t, filepath.IsAbs(p.file))
}
