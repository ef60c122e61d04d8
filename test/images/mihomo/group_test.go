package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/example-org/subrelay-operator/test/images/internal/process"
)

func groupConfigYAML(kind, members string) string {
	return fmt.Sprintf(`
proxy-providers: {nodes: {type: file, path: ./providers/nodes.yaml}}
proxy-groups: [{name: GW, type: %s, %s}]
rules: ["MATCH,GW"]`, kind, members)
}

const (
	failClosed = "proxies: [REJECT], use: [nodes]"
	failOpen   = "use: [nodes]"

	noProxies = "proxies: []\n"
	badFile   = "proxies:\n  - {name: a, type: direct}\n  - {name: b}\n"
	deadNodes = "proxies:\n  - {name: a, type: vmess, server: a.example, port: 443}\n"
	liveNode  = "proxies:\n  - {name: a, type: direct}\n"
)

func TestGroupWithoutLiveNodes(t *testing.T) {
	plain, overTLS := startOrigin(t)
	for name, nodes := range map[string]string{
		"file missing": "", "list empty": noProxies, "one bad entry": badFile, "no YAML": "proxies: [", "nodes dead": deadNodes,
	} {
		for _, kind := range groupTypes {
			t.Run(name+" "+kind, func(t *testing.T) {
				proxy, log := startProxy(t, groupConfigYAML(kind, failClosed), nodes)
				status, _ := get(t, proxy, plain)
				assert.Equal(t, http.StatusBadGateway, status)
				status, _ = get(t, proxy, overTLS)
				assert.Zero(t, status)
				assert.Contains(t, log.String(), "decision=GW[REJECT]")
			})
		}
	}
}

func TestGroupWithoutRejectFailsOpen(t *testing.T) {
	plain, _ := startOrigin(t)
	for name, nodes := range map[string]string{"file missing": "", "list empty": noProxies, "one bad entry": badFile} {
		proxy, log := startProxy(t, groupConfigYAML("fallback", failOpen), nodes)
		status, _ := get(t, proxy, plain)
		assert.Equal(t, http.StatusOK, status, name)
		assert.Contains(t, log.String(), "decision=GW[COMPATIBLE]", name)
	}
	proxy, log := startProxy(t, groupConfigYAML("fallback", failOpen), deadNodes)
	status, _ := get(t, proxy, plain)
	assert.Equal(t, http.StatusBadGateway, status, "dead nodes are no reason to go out directly")
	assert.Contains(t, log.String(), "decision=GW[none]")
}

func TestRejectIsNotChosenBesideALiveNode(t *testing.T) {
	plain, overTLS := startOrigin(t)
	for _, kind := range groupTypes {
		proxy, log := startProxy(t, groupConfigYAML(kind, failClosed), liveNode)
		for _, address := range []string{plain, overTLS} {
			status, _ := get(t, proxy, address)
			assert.Equal(t, http.StatusOK, status, kind)
		}
		assert.Equal(t, 2, strings.Count(log.String(), "decision=GW[a]"), kind)
	}
}

func TestHTTPNode(t *testing.T) {
	plain, overTLS := startOrigin(t)
	upstream, upstreamLog := startProxy(t, "rules: ['MATCH,DIRECT']", "", "u:p")
	dead := &url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", process.FreePort(t))}
	nodes := "proxies:\n" + httpNodeYAML(t, "first", dead) + httpNodeYAML(t, "second", upstream)
	proxy, log := startProxy(t, groupConfigYAML("fallback", failClosed), nodes)
	for _, address := range []string{plain, overTLS} {
		status, body := get(t, proxy, address)
		assert.Equal(t, http.StatusOK, status)
		assert.Equal(t, "hello GET ", body)
		assert.Contains(t, upstreamLog.String(), "method=CONNECT host="+hostOf(t, address))
	}
	assert.Equal(t, 2, strings.Count(log.String(), "decision=GW[second]"))
}

func TestHTTPNodeThatRefuses(t *testing.T) {
	plain, _ := startOrigin(t)
	upstream, _ := startProxy(t, "rules: ['MATCH,DIRECT']", "", "u:another password")
	proxy, log := startProxy(t, groupConfigYAML("fallback", failClosed), "proxies:\n"+httpNodeYAML(t, "a", upstream))
	status, _ := get(t, proxy, plain)
	assert.Equal(t, http.StatusBadGateway, status)
	assert.Contains(t, log.String(), "decision=GW[REJECT]")
	assert.Contains(t, log.String(), "403 Forbidden")
}

func TestNodesAndGroupsAsMembersAndTargets(t *testing.T) {
	plain, _ := startOrigin(t)
	proxy, log := startProxy(t, `
proxies: [{name: out, type: direct}]
proxy-groups:
  - {name: INNER, type: url-test, proxies: [out]}
  - {name: OUTER, type: fallback, proxies: [INNER, REJECT]}
rules: ["DOMAIN,node.example,out", "MATCH,OUTER"]`, "")
	status, _ := get(t, proxy, plain)
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, log.String(), "decision=OUTER[INNER[out]]")
}

func TestLoadBalanceKeepsAHostOnItsNode(t *testing.T) {
	g := group{name: "GW", loadBalance: true}
	for _, name := range []string{"a", "b", "c"} {
		g.members = append(g.members, dead{name: name})
	}
	used := map[outbound]bool{}
	for i := range 50 {
		host := target{host: fmt.Sprintf("host-%d.example", i)}
		order := g.order(host)
		require.ElementsMatch(t, g.members, order)
		assert.Equal(t, order, g.order(host))
		used[order[0]] = true
	}
	assert.Len(t, used, 3, "hosts are spread over all nodes")
}
