package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"

	"go.yaml.in/yaml/v3"
)

// router decides where connections go. It does not change once made; a reload
// makes a new one.
type router struct {
	rules     []rule
	outbounds map[string]outbound
	lookup    lookupFunc
}

// newRouter reads the provider files. An unusable one counts as empty.
func newRouter(cfg *config, log *slog.Logger) *router {
	up := uplink{ipv6: cfg.IPv6}
	r := &router{rules: cfg.rules, lookup: up.lookup, outbounds: map[string]outbound{
		rejectName: reject{},
		directName: direct{name: directName, up: up},
	}}
	for _, node := range cfg.Proxies {
		r.outbounds[node.Name] = newNode(node, up)
	}
	provided := map[string][]outbound{}
	for name, provider := range cfg.ProxyProviders {
		nodes, err := readProvider(provider)
		if err != nil {
			log.Error("provider counts as empty", "provider", name, "error", err)
		}
		for _, node := range nodes {
			provided[name] = append(provided[name], newNode(node, up))
		}
	}
	for _, groupCfg := range cfg.ProxyGroups {
		r.outbounds[groupCfg.Name] = r.newGroup(groupCfg, provided, direct{name: compatibleName, up: up})
	}
	return r
}

// newGroup collects the members. A group without any, not even REJECT, gets
// the substitute: the real program fails open here.
func (r *router) newGroup(cfg groupConfig, provided map[string][]outbound, substitute outbound) group {
	g := group{name: cfg.Name, loadBalance: cfg.Type == "load-balance"}
	for _, name := range cfg.Proxies {
		if name == rejectName {
			g.failClosed = true
			continue
		}
		g.members = append(g.members, r.outbounds[name])
	}
	for _, name := range cfg.Use {
		g.members = append(g.members, provided[name]...)
	}
	if len(g.members) == 0 && !g.failClosed {
		g.members = []outbound{substitute}
	}
	return g
}

// readProvider returns the nodes of the file without those of excluded types.
// It refuses the whole file for one bad node, as the real program does.
func readProvider(provider *providerConfig) ([]nodeConfig, error) {
	content, err := os.ReadFile(provider.Path)
	if err != nil {
		return nil, err
	}
	var file struct {
		Proxies []nodeConfig `yaml:"proxies"`
	}
	if err := yaml.Unmarshal(content, &file); err != nil {
		return nil, err
	}
	for i, node := range file.Proxies {
		if err := node.check(); err != nil {
			return nil, fmt.Errorf("proxies[%d]: %w", i, err)
		}
	}
	nodes := slices.DeleteFunc(file.Proxies, provider.excludes)
	if len(nodes) == 0 {
		return nil, errors.New("the file has no proxies to use")
	}
	return nodes, nil
}

// decision says why and how a connection left, for the access log.
type decision struct {
	rule string
	via  string
}

// dial connects to host:port by the rules. The method is that of the request.
func (r *router) dial(ctx context.Context, method, hostPort string) (net.Conn, decision, error) {
	t, err := parseTarget(method, hostPort)
	if err != nil {
		return nil, decision{}, err
	}
	chosen := matchRule(ctx, r.rules, t, r.lookup)
	conn, via, err := r.outbounds[chosen.outbound].dial(ctx, t)
	return conn, decision{rule: chosen.text, via: via}, err
}
