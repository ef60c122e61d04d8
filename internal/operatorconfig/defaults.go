package operatorconfig

import (
	"maps"

	"k8s.io/utils/ptr"
)

// dnsPort is where resolvers listen unless the configuration says otherwise.
const dnsPort = 53

// cpaPreStopSleep is the default delay, in seconds, before CPA gets SIGTERM: CPA cuts requests in
// flight as soon as it ends, so this is the only drain it has.
const cpaPreStopSleep = 10

// gateBudget is the default time, in seconds, for the walls to stand: a network agent takes well below a second, a busy
// one on a node that has just started may take much longer.
const gateBudget = 60

// maxRestarting keeps nodes, registries and volumes from a storm, and lets somebody who looks at the first pools that come
// back stop the others.
const maxRestarting = 10

// defaultPaths are what CPA offers to clients: the APIs in the dialects of several providers, its health, and where
// providers send a browser back to after a log-in.
func defaultPaths() []string {
	return []string{
		"/v1", "/v1beta", "/openai/v1", "/backend-api/codex",
		"/healthz",
		"/anthropic/callback", "/antigravity/callback", "/codex/callback",
	}
}

// Startup budgets, in seconds: CPA listens within seconds, so 5 minutes are for a slow node; the manager migrates its
// database, which may be large, before it listens.
const (
	cpaStartup     = 300
	managerStartup = 600
)

// defaultProbes: liveness is looser than readiness, so that a Pod is taken out of service long before it is restarted.
func defaultProbes(startup int32) Probes {
	return Probes{
		StartupSeconds:         startup,
		ReadinessPeriodSeconds: 10,
		LivenessPeriodSeconds:  20,
		TimeoutSeconds:         5,
		FailureThreshold:       3,
	}
}

// defaultCPA starts CPA from its working directory. Its configuration is read through a mount of the whole
// folder, because the panel's whole-file editor writes a second file beside it. -local-model keeps CPA
// from fetching model lists at start without its proxy.
func defaultCPA() Application {
	return Application{
		Command:             []string{"./CLIProxyAPI"},
		Args:                []string{"-config", "/cpa/config.yaml", "-local-model"},
		Env:                 map[string]string{"TZ": "UTC"},
		PreStopSleepSeconds: ptr.To[int64](cpaPreStopSleep),
		Probes:              defaultProbes(cpaStartup),
	}
}

// defaultCPAManager leaves the start to the image. The collector mode is fixed to http, polled every 5 s:
// the automatic choice depends on which of the two applications is up first, and a shorter
// period costs CPA a key check each time. Cross-origin calls are allowed only to the address that
// port-forward gives the panel; its own default allows them to everybody.
func defaultCPAManager() Application {
	return Application{
		Env: map[string]string{
			"USAGE_COLLECTOR_MODE":   "http",
			"USAGE_POLL_INTERVAL_MS": "5000",
			"USAGE_CORS_ORIGINS":     "http://127.0.0.1:18317",
			"TZ":                     "UTC",
		},
		PreStopSleepSeconds: ptr.To[int64](0),
		Probes:              defaultProbes(managerStartup),
	}
}

func (c *Config) setDefaults() {
	for i := range c.DNS {
		if c.DNS[i].Port == 0 {
			c.DNS[i].Port = dnsPort
		}
	}
	if c.Gateway.Paths == nil {
		c.Gateway.Paths = defaultPaths()
	}
	c.StartGate.setDefaults()
	if c.Runtime.MaxUnavailable == nil {
		c.Runtime.MaxUnavailable = ptr.To[int32](1)
	}
	if c.Runtime.MaxRestarting == nil {
		c.Runtime.MaxRestarting = ptr.To[int32](maxRestarting)
	}
	c.Runtime.CPA.setDefaults(defaultCPA())
	c.Runtime.CPAManager.setDefaults(defaultCPAManager())
}

func (g *StartGate) setDefaults() {
	if g.Enabled == nil {
		g.Enabled = ptr.To(true)
	}
	if g.BudgetSeconds == 0 {
		g.BudgetSeconds = gateBudget
	}
}

func (a *Application) setDefaults(defaults Application) {
	if a.Command == nil {
		a.Command = defaults.Command
	}
	if a.Args == nil {
		a.Args = defaults.Args
	}
	if a.PreStopSleepSeconds == nil {
		a.PreStopSleepSeconds = defaults.PreStopSleepSeconds
	}
	maps.Copy(defaults.Env, a.Env)
	a.Env = defaults.Env
	a.Probes.setDefaults(defaults.Probes)
}

func (p *Probes) setDefaults(defaults Probes) {
	for _, setting := range []struct {
		value    *int32
		standard int32
	}{
		{&p.StartupSeconds, defaults.StartupSeconds},
		{&p.ReadinessPeriodSeconds, defaults.ReadinessPeriodSeconds},
		{&p.LivenessPeriodSeconds, defaults.LivenessPeriodSeconds},
		{&p.TimeoutSeconds, defaults.TimeoutSeconds},
		{&p.FailureThreshold, defaults.FailureThreshold},
	} {
		if *setting.value == 0 {
			*setting.value = setting.standard
		}
	}
}
