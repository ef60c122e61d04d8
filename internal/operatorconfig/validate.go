package operatorconfig

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// maxPreStopSleep leaves the application 10 of the Pod's 30 s of grace to end after SIGTERM.
const maxPreStopSleep = 20

// maxProbeSetting, in seconds: a probe that waits longer than an hour guards nothing.
const maxProbeSetting = 3600

// reservedEnv are the variables that follow from what a pool is. Setting them here would bypass the proxy,
// put a credential into the environment, or part an application from its volume, port or neighbour.
var reservedEnv = []string{
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "MANAGEMENT_PASSWORD",
	"CPA_MANAGEMENT_KEY", "CPA_MANAGEMENT_KEY_FILE", "CPA_MANAGER_ADMIN_KEY", "CPA_MANAGER_ADMIN_KEY_FILE",
	"CPA_MANAGER_DATA_KEY", "CPA_MANAGER_DATA_KEY_FILE", "CPA_MANAGER_DATA_KEY_PATH",
	"CPA_UPSTREAM_URL", "HTTP_ADDR", "USAGE_DATA_DIR", "USAGE_DB_PATH",
}

// maxBaseDomain leaves room for the longest pool id and a dot in a host name of 253 characters.
const maxBaseDomain = 253 - 55 - 1

// maxPaths is what one rule of an HTTPRoute can hold.
const maxPaths = 64

// unpublishable are the administrator's parts of CPA. Whoever reaches them may try keys.
var unpublishable = []string{"/v0/management", "/management.html"}

func (c *Config) validate() error {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...)))
	}
	if c.APIVersion != APIVersion || c.Kind != Kind {
		bad("apiVersion, kind", "must be %s, %s", APIVersion, Kind)
	}
	if msgs := validation.IsDNS1123Subdomain(c.BaseDomain); len(msgs) > 0 {
		bad("baseDomain", "%s", strings.Join(msgs, "; "))
	} else if len(c.BaseDomain) > maxBaseDomain {
		bad("baseDomain", "must have at most %d characters, has %d", maxBaseDomain, len(c.BaseDomain))
	}
	c.Gateway.validate(bad)
	c.StartGate.validate(bad)
	checkName(bad, "mihomo.namespace", c.Mihomo.Namespace)
	checkName(bad, "mihomo.service", c.Mihomo.Service)
	checkPort(bad, "mihomo.port", c.Mihomo.Port)
	if len(c.DNS) == 0 {
		bad("dns", "at least one resolver is needed: without DNS no pool reaches the proxy")
	}
	for i, peer := range c.DNS {
		peer.validate(func(field, format string, args ...any) {
			bad(fmt.Sprintf("dns[%d].%s", i, field), format, args...)
		})
	}
	if name := c.Storage.ClassName; name != "" {
		if msgs := validation.IsDNS1123Subdomain(name); len(msgs) > 0 {
			bad("storage.className", "%s", strings.Join(msgs, "; "))
		}
	}
	c.MaxPerPool.validate(bad)
	if most := *c.Runtime.MaxUnavailable; most < 0 || most > 1 {
		bad("runtime.maxUnavailable", "must be 1 (a node can be drained) or 0 (a pool holds the drain up), is %d", most)
	}
	if most := *c.Runtime.MaxRestarting; most < 0 {
		bad("runtime.maxRestarting", "must not be negative, is %d", most)
	}
	c.Runtime.CPA.validate("runtime.cpa", bad)
	c.Runtime.CPAManager.validate("runtime.cpaManager", bad)
	return errors.Join(errs...)
}

type report func(field, format string, args ...any)

func (g *Gateway) validate(bad report) {
	checkName(bad, "gateway.namespace", g.Namespace)
	checkName(bad, "gateway.name", g.Name)
	checkName(bad, "gateway.sectionName", g.SectionName)
	if len(g.DataPlane) == 0 {
		bad("gateway.dataPlane", "at least one selector is needed: it names the Pods that may reach CPA in Gateway mode")
	}
	g.validatePaths(bad)
	for i, peer := range g.DataPlane {
		field := fmt.Sprintf("gateway.dataPlane[%d]", i)
		checkName(bad, field+".namespace", peer.Namespace)
		checkLabels(bad, field+".podLabels", peer.PodLabels)
	}
}

func (g *Gateway) validatePaths(bad report) {
	if len(g.Paths) == 0 || len(g.Paths) > maxPaths {
		bad("gateway.paths", "must have between 1 and %d prefixes; leave it out for the default", maxPaths)
	}
	for i, prefix := range g.Paths {
		field := fmt.Sprintf("gateway.paths[%d]", i)
		if prefix != path.Clean(prefix) || !path.IsAbs(prefix) || strings.ContainsAny(prefix, "%?# ") {
			bad(field, "%q is not a plain absolute path such as /v1", prefix)
			continue
		}
		for _, secret := range unpublishable {
			if within(secret, prefix) || within(prefix, secret) {
				bad(field, "%q would publish %s, which belongs to administrators", prefix, secret)
			}
		}
	}
}

// within tells whether a path is the prefix itself or below it.
func within(name, prefix string) bool {
	return strings.HasPrefix(strings.TrimSuffix(name, "/")+"/", strings.TrimSuffix(prefix, "/")+"/")
}

func (g *StartGate) validate(bad report) {
	if !*g.Enabled {
		return
	}
	if g.Image == "" {
		bad("startGate.image", "name the operator's image, "+
			"or set startGate.enabled to false if the cluster does not enforce NetworkPolicies")
	} else if named, err := reference.ParseNormalizedNamed(g.Image); err != nil || reference.IsNameOnly(named) {
		bad("startGate.image", "%q is not an image with a tag or a digest", g.Image)
	}
	for i, address := range g.Forbidden {
		field := fmt.Sprintf("startGate.forbidden[%d]", i)
		host, port, err := net.SplitHostPort(address)
		if err != nil || host == "" || strings.ContainsAny(address, ", ") {
			bad(field, "%q is not an address such as 10.96.0.1:443", address)
			continue
		}
		number, err := strconv.ParseInt(port, 10, 32)
		if err != nil {
			bad(field, "%q has no port number", address)
			continue
		}
		checkPort(bad, field, int32(number))
	}
	if g.BudgetSeconds < 1 || g.BudgetSeconds > maxProbeSetting {
		bad("startGate.budgetSeconds", "must be between 1 and %d, is %d", maxProbeSetting, g.BudgetSeconds)
	}
}

func (p DNSPeer) validate(bad report) {
	checkPort(bad, "port", p.Port)
	if p.CIDR != "" {
		if p.Namespace != "" || len(p.PodLabels) > 0 {
			bad("cidr", "give either cidr, or namespace and podLabels, not both")
		}
		if prefix, err := netip.ParsePrefix(p.CIDR); err != nil {
			bad("cidr", "%q is not an address block such as 169.254.20.10/32", p.CIDR)
		} else if prefix != prefix.Masked() {
			bad("cidr", "%q has address bits beyond its prefix length, write %s", p.CIDR, prefix.Masked())
		}
		return
	}
	checkName(bad, "namespace", p.Namespace)
	checkLabels(bad, "podLabels", p.PodLabels)
}

func (e *Envelope) validate(bad report) {
	positive := func(field string, q resource.Quantity) {
		if q.Sign() <= 0 {
			bad("maxPerPool."+field, "must be greater than 0")
		}
	}
	positive("requests.cpu", e.Requests.CPU)
	positive("requests.memory", e.Requests.Memory)
	positive("limits.cpu", e.Limits.CPU)
	positive("limits.memory", e.Limits.Memory)
	positive("storage", e.Storage)
	if e.Requests.CPU.Cmp(e.Limits.CPU) > 0 {
		bad("maxPerPool.requests.cpu", "must not exceed maxPerPool.limits.cpu")
	}
	if e.Requests.Memory.Cmp(e.Limits.Memory) > 0 {
		bad("maxPerPool.requests.memory", "must not exceed maxPerPool.limits.memory")
	}
}

func (a *Application) validate(field string, bad report) {
	for _, name := range slices.Sorted(maps.Keys(a.Env)) {
		if msgs := validation.IsEnvVarName(name); len(msgs) > 0 {
			bad(field+".env", "%q: %s", name, strings.Join(msgs, "; "))
		}
		if slices.Contains(reservedEnv, strings.ToUpper(name)) {
			bad(field+".env", "%s is set by the operator and cannot be given here", name)
		}
	}
	if sleep := *a.PreStopSleepSeconds; sleep < 0 || sleep > maxPreStopSleep {
		bad(field+".preStopSleepSeconds", "must be between 0 and %d, is %d", maxPreStopSleep, sleep)
	}
	a.Probes.validate(field+".probes", bad)
}

func (p Probes) validate(field string, bad report) {
	for _, setting := range []struct {
		name  string
		value int32
	}{
		{"startupSeconds", p.StartupSeconds},
		{"readinessPeriodSeconds", p.ReadinessPeriodSeconds},
		{"livenessPeriodSeconds", p.LivenessPeriodSeconds},
		{"timeoutSeconds", p.TimeoutSeconds},
		{"failureThreshold", p.FailureThreshold},
	} {
		if setting.value < 1 || setting.value > maxProbeSetting {
			bad(field+"."+setting.name, "must be between 1 and %d, is %d", maxProbeSetting, setting.value)
		}
	}
}

func checkName(bad report, field, name string) {
	if msgs := validation.IsDNS1123Label(name); len(msgs) > 0 {
		bad(field, "%q: %s", name, strings.Join(msgs, "; "))
	}
}

func checkPort(bad report, field string, port int32) {
	if port < 1 || port > 65535 {
		bad(field, "must be a port between 1 and 65535, is %d", port)
	}
}

func checkLabels(bad report, field string, labels map[string]string) {
	if len(labels) == 0 {
		bad(field, "must not be empty: it would select every Pod of the namespace")
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if msgs := validation.IsQualifiedName(key); len(msgs) > 0 {
			bad(field, "%q: %s", key, strings.Join(msgs, "; "))
		}
		if msgs := validation.IsValidLabelValue(labels[key]); len(msgs) > 0 {
			bad(field, "%q: %s", labels[key], strings.Join(msgs, "; "))
		}
	}
}
