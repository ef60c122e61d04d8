package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// config is the part of the configuration file that the stand-in knows.
// Unknown keys are tolerated, as the real program tolerates them.
type config struct {
	Port               int                        `yaml:"port"`
	AllowLAN           bool                       `yaml:"allow-lan"`
	BindAddress        string                     `yaml:"bind-address"`
	LANAllowedIPs      []netip.Prefix             `yaml:"lan-allowed-ips"`
	Authentication     []string                   `yaml:"authentication"` // user:password
	Mode               string                     `yaml:"mode"`
	LogLevel           string                     `yaml:"log-level"`
	IPv6               bool                       `yaml:"ipv6"`
	ExternalController string                     `yaml:"external-controller"`
	Secret             string                     `yaml:"secret"`
	DNS                dnsConfig                  `yaml:"dns"`
	Proxies            []nodeConfig               `yaml:"proxies"`
	ProxyProviders     map[string]*providerConfig `yaml:"proxy-providers"`
	ProxyGroups        []groupConfig              `yaml:"proxy-groups"`
	Rules              []string                   `yaml:"rules"`

	rules []rule // parsed Rules
}

type dnsConfig struct {
	Enable bool `yaml:"enable"`
}

type providerConfig struct {
	Type        string `yaml:"type"`
	Path        string `yaml:"path"`         // absolute once loaded
	ExcludeType string `yaml:"exclude-type"` // types of nodes to leave out, with | between them
}

func (p *providerConfig) excludes(node nodeConfig) bool {
	return slices.ContainsFunc(strings.Split(p.ExcludeType, "|"), func(excluded string) bool {
		return strings.EqualFold(excluded, node.Type)
	})
}

// groupConfig has the health check's settings for their types only: a node
// counts as dead when it cannot be dialled.
type groupConfig struct {
	Name           string   `yaml:"name"`
	Type           string   `yaml:"type"`
	Proxies        []string `yaml:"proxies"`
	Use            []string `yaml:"use"`
	URL            string   `yaml:"url"`
	Interval       int      `yaml:"interval"` // seconds
	Timeout        int      `yaml:"timeout"`  // milliseconds
	Lazy           bool     `yaml:"lazy"`
	ExpectedStatus string   `yaml:"expected-status"`
}

// nodeConfig describes an upstream proxy.
type nodeConfig struct {
	Name     string `yaml:"name"`
	Type     string `yaml:"type"`
	Server   string `yaml:"server"`
	Port     int    `yaml:"port"`
	Username string `yaml:"username"`
	Password string `yaml:"password"`
}

var (
	groupTypes = []string{"fallback", "url-test", "load-balance"}
	logLevels  = []string{"silent", "error", "warning", "info", "debug"}
)

// loadConfig reads and checks the configuration. It does not look into the
// provider files: a bad one is found out, and survived, when it is used.
func loadConfig(paths paths) (*config, error) {
	content, err := os.ReadFile(paths.file)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	cfg := &config{BindAddress: "*", Mode: "rule", LogLevel: "info", IPv6: true}
	if err := yaml.Unmarshal(content, cfg); err != nil {
		return nil, fmt.Errorf("configuration %s: %w", paths.file, err)
	}
	if err := errors.Join(cfg.checkSettings(), cfg.checkProviders(paths), cfg.checkProxies(), cfg.parseRules()); err != nil {
		return nil, fmt.Errorf("configuration %s: %w", paths.file, err)
	}
	return cfg, nil
}

func (c *config) checkSettings() error {
	if c.Port < 1 || c.Port > 65535 {
		return fmt.Errorf("port: %d is not between 1 and 65535", c.Port)
	}
	if c.BindAddress != "*" && net.ParseIP(c.BindAddress) == nil {
		return fmt.Errorf("bind-address: %q is neither * nor an IP address", c.BindAddress)
	}
	if c.Mode != "rule" {
		return fmt.Errorf("mode: this stand-in knows rule only, not %q", c.Mode)
	}
	if !slices.Contains(logLevels, c.LogLevel) {
		return fmt.Errorf("log-level: %q is not one of %s", c.LogLevel, strings.Join(logLevels, ", "))
	}
	if c.DNS.Enable {
		return errors.New("dns.enable: this stand-in resolves through /etc/resolv.conf only, set it to false")
	}
	for i, user := range c.Authentication {
		if name, _, ok := strings.Cut(user, ":"); !ok || name == "" {
			return fmt.Errorf("authentication[%d]: not of the form user:password", i)
		}
	}
	return nil
}

func (c *config) checkProviders(paths paths) error {
	for name, provider := range c.ProxyProviders {
		if provider == nil || provider.Type != "file" || provider.Path == "" {
			return fmt.Errorf("proxy-providers.%s: this stand-in needs type: file and a path", name)
		}
		path, err := paths.resolve(provider.Path)
		if err != nil {
			return fmt.Errorf("proxy-providers.%s.path: %w", name, err)
		}
		provider.Path = path
	}
	return nil
}

// checkProxies checks nodes and groups. A group may use groups above it only,
// so that no group can contain itself.
func (c *config) checkProxies() error {
	known := map[string]bool{rejectName: true, directName: true}
	for i, node := range c.Proxies {
		if err := node.check(); err != nil {
			return fmt.Errorf("proxies[%d]: %w", i, err)
		}
		if known[node.Name] {
			return fmt.Errorf("proxies[%d]: the name %q is taken", i, node.Name)
		}
		known[node.Name] = true
	}
	for _, group := range c.ProxyGroups {
		if err := c.checkGroup(group, known); err != nil {
			return fmt.Errorf("proxy-groups: %q: %w", group.Name, err)
		}
		known[group.Name] = true
	}
	return nil
}

func (c *config) checkGroup(group groupConfig, known map[string]bool) error {
	switch {
	case group.Name == "":
		return errors.New("name is missing")
	case known[group.Name]:
		return errors.New("the name is taken")
	case !slices.Contains(groupTypes, group.Type):
		return fmt.Errorf("type %q is not one of %s", group.Type, strings.Join(groupTypes, ", "))
	case len(group.Proxies) == 0 && len(group.Use) == 0:
		return errors.New("proxies or use is missing")
	}
	for _, name := range group.Proxies {
		if !known[name] {
			return fmt.Errorf("proxy %q is not defined above the group", name)
		}
	}
	for _, name := range group.Use {
		if c.ProxyProviders[name] == nil {
			return fmt.Errorf("provider %q is not defined", name)
		}
	}
	return nil
}

func (n nodeConfig) check() error {
	switch {
	case n.Name == "":
		return errors.New("name is missing")
	case n.Type == "":
		return fmt.Errorf("%q: type is missing", n.Name)
	case n.Type == "direct":
		return nil
	case n.Server == "":
		return fmt.Errorf("%q: server is missing", n.Name)
	case n.Port < 1 || n.Port > 65535:
		return fmt.Errorf("%q: port %d is not between 1 and 65535", n.Name, n.Port)
	}
	return nil
}

func (c *config) parseRules() error {
	for i, line := range c.Rules {
		parsed, err := parseRule(line)
		if err != nil {
			return fmt.Errorf("rules[%d] %q: %w", i, line, err)
		}
		if !c.hasOutbound(parsed.outbound) {
			return fmt.Errorf("rules[%d] %q: proxy %q is not defined", i, line, parsed.outbound)
		}
		c.rules = append(c.rules, parsed)
	}
	return nil
}

func (c *config) hasOutbound(name string) bool {
	return name == rejectName || name == directName ||
		slices.ContainsFunc(c.Proxies, func(n nodeConfig) bool { return n.Name == name }) ||
		slices.ContainsFunc(c.ProxyGroups, func(g groupConfig) bool { return g.Name == name })
}

// listenAddress is 127.0.0.1 unless allow-lan is on.
func (c *config) listenAddress() string {
	host := c.BindAddress
	switch {
	case !c.AllowLAN:
		host = "127.0.0.1"
	case host == "*":
		host = ""
	}
	return net.JoinHostPort(host, strconv.Itoa(c.Port))
}
